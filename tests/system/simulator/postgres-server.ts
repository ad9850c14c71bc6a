/**
 * PostgreSQL as the server sees it: sessions, transactions at READ COMMITTED, row locks, advisory locks, notifications
 * and the times after which it ends things. Statements of the shared subset of SQL run in SQLite. Those that only
 * PostgreSQL has are listed in `postgres-statements.ts`; one that is not listed there is a fault of the simulator.
 */
import { SqlFault, type Answer } from './sql-fault.ts'
import { Changes, type Changed, type Storage } from './storage.ts'
import { actorNamed, type Actor, type Timeline } from './timeline.ts'
import { runStatement } from './postgres-statements.ts'

/** A COMMIT arrives this late at the latest, which is before the transaction has been idle for too long. */
const MAX_STALL_MILLIS = 400

export interface Settings {
  lock_timeout?: number
  idle_session_timeout?: number
  idle_in_transaction_session_timeout?: number
  application_name?: string
}

export class Transaction {
  readonly changes = new Changes()
  /** Given with the first change. */
  xid: number | null = null
  hasFailed = false
  /** Whether it has added events. */
  hasEvents = false
  /** What it sees if it is a snapshot, once that is not the committed state any more. */
  snapshot: Storage | null = null
  readonly isSnapshot: boolean
  constructor(isSnapshot: boolean) {
    this.isSnapshot = isSnapshot
  }
}

/** Somebody has to wait for others. */
export class Blocked extends Error {
  constructor(readonly by: ReadonlySet<Session>) {
    super('blocked')
  }
}

/** The connection ends with its COMMIT. */
class Interrupted extends Error {
  constructor(readonly fault: 'cut' | 'crash') {
    super('interrupted')
  }
}

type Mode = 'shared' | 'exclusive'

interface Lock {
  holders: Map<Session, Mode>
  waiting: { session: Session; mode: Mode }[]
}

export interface Request {
  text: string
  values: readonly unknown[]
  answer(answer: Answer | SqlFault): void
}

export class Session {
  readonly pid: number
  readonly started: string
  transaction: Transaction | null = null
  readonly requests: Request[] = []
  /** Since when the present request waits for a lock; null if it does not. */
  blockedSince: number | null = null
  blockedBy: ReadonlySet<Session> = nobody
  lastHeardAt: number
  isOver = false
  lockTimeout: number
  readonly locks = new Set<string>()
  readonly transactionLocks = new Set<string>()
  readonly channels = new Map<string, (channel: string) => void>()

  constructor(
    readonly server: PostgresServer,
    /** Who is connected. */
    readonly client: Actor,
    readonly settings: Settings,
    /** Tells the client that the session is over. */
    readonly onOver: () => void,
    pid: number,
  ) {
    this.pid = pid
    this.started = `started ${pid}`
    this.lastHeardAt = server.timeline.now
    this.lockTimeout = settings.lock_timeout ?? 0
  }
}

const nobody: ReadonlySet<Session> = new Set()

/** A transaction as those see it who look on. */
export interface Committed {
  at: number
  client: Actor
  /** Null for a statement on its own. */
  changed: Changed[]
}

export class PostgresServer {
  readonly actor = actorNamed('database')
  readonly sessions = new Set<Session>()
  readonly #locks = new Map<string, Lock>()
  /** Sessions that wait for a lock. */
  #blocked = 0
  #nextPid = 100
  #nextXid = 1000
  nextEventId = 1
  /** How many of the next COMMITs a fault befalls. */
  cutsAtCommit = 0
  crashesAtCommit = 0
  silencesAtCommit = 0
  /** How probable it is that the COMMIT of a transaction with events takes long to arrive. */
  stallShare = 0
  onSilentCommit: (session: Session) => void = () => {}
  onFatalCommit: (session: Session, fault: 'cut' | 'crash') => void = () => {}
  isFull = false
  isDown = false
  timelineId = 1
  /** How often it has forgotten what is in tables that are not logged. */
  crashes = 0
  readonly running = new Set<Transaction>()
  /** Looks at every commit. */
  onCommit: (committed: Committed) => void = () => {}
  counts = { statements: 0, commits: 0, blocked: 0, deadlocks: 0, notifications: 0 }

  constructor(
    public storage: Storage,
    readonly timeline: Timeline,
  ) {}

  /** Milliseconds of the database's own clock. */
  get wallMillis(): number {
    return Math.floor(1_767_225_600_000 + this.timeline.now + this.actor.skewMillis)
  }

  connect(client: Actor, settings: Settings, onOver: () => void): Session {
    const session = new Session(this, client, settings, onOver, this.#nextPid++)
    this.sessions.add(session)
    this.#watch(session)
    return session
  }

  /** A request has arrived. */
  receive(session: Session, request: Request): void {
    if (session.isOver) return
    session.lastHeardAt = this.timeline.now
    const hasEvents = this.stallShare > 0 && request.text === 'COMMIT' && session.transaction?.hasEvents === true
    if (hasEvents && this.timeline.happens(this.stallShare))
      this.timeline.schedule(this.timeline.between(20, MAX_STALL_MILLIS), this.actor, () =>
        this.#arrived(session, request),
      )
    else this.#arrived(session, request)
  }

  #arrived(session: Session, request: Request): void {
    if (session.isOver) return
    session.requests.push(request)
    if (session.requests.length === 1) this.#proceed(session)
  }

  #proceed(session: Session): void {
    while (session.requests.length > 0 && !session.isOver) {
      const request = session.requests[0]!
      let answer: Answer | SqlFault
      try {
        answer = this.#execute(session, request)
      } catch (error) {
        if (error instanceof Blocked) {
          if (!this.#isDeadlock(session, error.by)) return this.#block(session, error.by)
          this.counts.deadlocks++
          this.#leaveQueues(session)
          answer = new SqlFault('40P01', 'deadlock detected')
        } else if (error instanceof Interrupted) {
          this.onFatalCommit(session, error.fault)
          return this.terminate(session)
        } else if (error instanceof SqlFault) answer = error
        else throw error
        if (session.transaction !== null) session.transaction.hasFailed = true
      }
      this.#unblock(session)
      session.requests.shift()
      session.lastHeardAt = this.timeline.now
      request.answer(answer)
    }
  }

  #block(session: Session, by: ReadonlySet<Session>): void {
    session.blockedBy = by
    if (session.blockedSince !== null) return
    this.counts.blocked++
    this.#blocked++
    session.blockedSince = this.timeline.now
    if (session.lockTimeout === 0) return
    const request = session.requests[0]
    this.timeline.schedule(session.lockTimeout, this.actor, () => {
      if (session.isOver || session.blockedSince === null || session.requests[0] !== request) return
      this.#unblock(session)
      session.requests.shift()
      if (session.transaction !== null) session.transaction.hasFailed = true
      request!.answer(new SqlFault('55P03', 'canceling statement due to lock timeout'))
      this.#proceed(session)
    })
  }

  #unblock(session: Session): void {
    if (session.blockedSince === null) return
    this.#blocked--
    session.blockedSince = null
    session.blockedBy = nobody
    this.#leaveQueues(session)
  }

  #leaveQueues(session: Session): void {
    for (const [key, lock] of this.#locks) {
      if (lock.waiting.length === 0) continue
      lock.waiting = lock.waiting.filter((one) => one.session !== session)
      if (lock.waiting.length === 0 && lock.holders.size === 0) this.#locks.delete(key)
    }
  }

  /** Whether one of those who block a session waits for it in turn. */
  #isDeadlock(session: Session, by: ReadonlySet<Session>): boolean {
    const seen = new Set<Session>()
    const waits = (one: Session): boolean => {
      if (one === session) return true
      if (seen.has(one)) return false
      seen.add(one)
      return [...one.blockedBy].some(waits)
    }
    return [...by].some(waits)
  }

  #execute(session: Session, request: Request): Answer {
    this.counts.statements++
    const { text } = request
    const { transaction } = session
    if (text.startsWith('BEGIN')) {
      if (transaction !== null) throw new SqlFault('25001', 'there is already a transaction in progress')
      session.transaction = new Transaction(text.includes('REPEATABLE READ'))
      this.running.add(session.transaction)
      return answerOf('BEGIN')
    }
    if (text === 'ROLLBACK') {
      this.#end(session)
      return answerOf('ROLLBACK')
    }
    if (text === 'ROLLBACK TO work') {
      transaction!.hasFailed = false
      this.storage.rollBackToSavepoint(transaction!.changes)
      return answerOf('ROLLBACK')
    }
    if (transaction?.hasFailed) {
      if (text !== 'COMMIT')
        throw new SqlFault('25P02', 'current transaction is aborted, commands ignored until end of transaction block')
      this.#end(session)
      return answerOf('ROLLBACK')
    }
    if (text === 'COMMIT') {
      const fault = this.#fatalCommit(transaction!)
      // A COMMIT that never arrives, or one whose answer never does.
      if (fault !== null && this.timeline.happens(0.5)) throw new Interrupted(fault)
      this.#commit(session, transaction!)
      this.#end(session)
      if (fault !== null) throw new Interrupted(fault)
      if (transaction!.changes.hasChanged && this.silencesAtCommit > 0) {
        this.silencesAtCommit--
        this.onSilentCommit(session)
      }
      return answerOf('COMMIT')
    }
    if (text === 'SAVEPOINT work') {
      this.storage.savepoint(transaction!.changes)
      return answerOf('SAVEPOINT')
    }
    if (text === 'RELEASE work') {
      this.storage.release(transaction!.changes)
      return answerOf('RELEASE')
    }
    if (transaction !== null) return runStatement(this, session, transaction, request)
    // A statement on its own is a transaction of its own.
    const own = new Transaction(false)
    this.running.add(own)
    try {
      const answer = runStatement(this, session, own, request)
      if (own.changes.hasChanged) this.#commit(session, own)
      return answer
    } finally {
      this.storage.rollBack(own.changes)
      this.#over(own)
      this.#release(session, session.transactionLocks)
    }
  }

  #fatalCommit({ changes }: Transaction): 'cut' | 'crash' | null {
    if (!changes.hasChanged) return null
    if (this.cutsAtCommit > 0) {
      this.cutsAtCommit--
      return 'cut'
    }
    if (this.crashesAtCommit === 0) return null
    this.crashesAtCommit--
    return 'crash'
  }

  #commit(session: Session, transaction: Transaction): void {
    if (!transaction.changes.hasChanged) return
    this.#keepSnapshots()
    const changed = this.storage.commit(transaction.changes)
    this.counts.commits++
    this.onCommit({ at: this.timeline.now, client: session.client, changed })
  }

  #end(session: Session): void {
    const { transaction } = session
    if (transaction === null) return
    this.storage.rollBack(transaction.changes)
    this.#over(transaction)
    session.transaction = null
    this.#forgetSnapshot(transaction)
    this.#release(session, session.transactionLocks)
  }

  /** Open snapshots that see what is committed now. */
  readonly #current = new Set<Transaction>()

  seenBy(transaction: Transaction): Storage {
    if (!transaction.isSnapshot || transaction.snapshot !== null) return transaction.snapshot ?? this.storage
    this.#current.add(transaction)
    return this.storage
  }

  /** What is committed is about to change. */
  #keepSnapshots(): void {
    if (this.#current.size === 0) return
    const copy = this.storage.copy()
    for (const transaction of this.#current) transaction.snapshot = copy
    this.#current.clear()
  }

  #forgetSnapshot(transaction: Transaction): void {
    this.#current.delete(transaction)
    const { snapshot } = transaction
    if (snapshot === null) return
    if (![...this.sessions].some((session) => session.transaction?.snapshot === snapshot)) snapshot.db.close()
  }

  #over(transaction: Transaction): void {
    this.running.delete(transaction)
    if (transaction.xid !== null) this.xmax = Math.max(this.xmax, transaction.xid + 1)
  }

  /** Gives the transaction its id. */
  identify(transaction: Transaction): number {
    return (transaction.xid ??= this.#nextXid++)
  }

  /** All transactions with lower ids have ended. */
  get xmin(): number {
    let lowest = this.#nextXid
    for (const { xid } of this.running) if (xid !== null && xid < lowest) lowest = xid
    return lowest
  }

  /** One more than the highest id of those that have ended. */
  xmax = 0

  /** Throws `Blocked` if others have the lock. */
  lock(session: Session, key: string, mode: Mode, until: 'transaction' | 'session'): void {
    const blocked = this.blockers(session, key, mode)
    const lock = this.#lockAt(key)
    if (blocked.size > 0) {
      if (!lock.waiting.some((one) => one.session === session)) lock.waiting.push({ session, mode })
      throw new Blocked(blocked)
    }
    const { holders } = lock
    if (holders.get(session) !== 'exclusive') holders.set(session, mode)
    if (until === 'session') session.locks.add(key)
    else if (!session.locks.has(key)) session.transactionLocks.add(key)
  }

  /** Those who have a lock that excludes this one, or have waited for one for longer. */
  blockers(session: Session, key: string, mode: Mode): ReadonlySet<Session> {
    const lock = this.#locks.get(key)
    if (lock === undefined || (lock.waiting.length === 0 && lock.holders.size === 0)) return nobody
    const found = new Set<Session>()
    const excludes = (other: Mode) => mode === 'exclusive' || other === 'exclusive'
    for (const [holder, other] of lock.holders) if (holder !== session && excludes(other)) found.add(holder)
    if (lock.holders.has(session)) return found
    for (const waiting of lock.waiting) {
      if (waiting.session === session) break
      if (excludes(waiting.mode)) found.add(waiting.session)
    }
    return found
  }

  /** Whether another session has a lock of a transaction, or waits for one. */
  mayBlock(session: Session): boolean {
    for (const other of this.sessions)
      if (other !== session && (other.transactionLocks.size > 0 || other.blockedSince !== null)) return true
    return false
  }

  #lockAt(key: string): Lock {
    let lock = this.#locks.get(key)
    if (lock === undefined) this.#locks.set(key, (lock = { holders: new Map(), waiting: [] }))
    return lock
  }

  unlock(session: Session, key: string): boolean {
    if (!session.locks.has(key)) return false
    this.#release(session, new Set([key]), session.locks)
    return true
  }

  isLocked(key: string): boolean {
    return (this.#locks.get(key)?.holders.size ?? 0) > 0
  }

  #release(session: Session, keys: Set<string>, from = keys): void {
    if (keys.size === 0) return
    for (const key of keys) {
      from.delete(key)
      const lock = this.#locks.get(key)
      lock?.holders.delete(session)
      if (lock?.holders.size === 0 && lock.waiting.length === 0) this.#locks.delete(key)
    }
    // Those who wait look again, in the order in which they came.
    if (this.#blocked > 0) this.timeline.schedule(0, this.actor, () => this.#lookAgain())
  }

  releaseAll(session: Session): void {
    this.#release(session, session.locks)
  }

  #lookAgain(): void {
    const waiting = [...this.sessions].filter(({ blockedSince }) => blockedSince !== null)
    for (const session of waiting.toSorted((a, b) => a.blockedSince! - b.blockedSince!))
      if (!session.isOver && session.blockedSince !== null) this.#proceed(session)
  }

  /** Ends what is idle for too long. */
  #watch(session: Session): void {
    const look = () => {
      if (session.isOver) return
      const { settings, transaction, requests } = session
      const longest =
        transaction === null ? settings.idle_session_timeout : settings.idle_in_transaction_session_timeout
      const idle = this.timeline.now - session.lastHeardAt
      if (longest && requests.length === 0 && idle >= longest) return this.terminate(session)
      const waits = [settings.idle_session_timeout, settings.idle_in_transaction_session_timeout].filter(
        (wait): wait is number => wait !== undefined && wait > 0,
      )
      if (waits.length > 0) this.timeline.schedule(Math.min(...waits) / 2, this.actor, look)
    }
    look()
  }

  terminate(session: Session): void {
    if (session.isOver) return
    session.isOver = true
    this.sessions.delete(session)
    this.#unblock(session)
    session.requests.length = 0
    this.#end(session)
    this.#release(session, session.locks)
    session.onOver()
  }

  notify(channel: string): void {
    this.counts.notifications++
    for (const { channels } of this.sessions) channels.get(channel)?.(channel)
  }

  #standby: { storage: Storage; since: number } | null = null

  /** A standby that has this state, and gets no more of what is committed from now on. */
  follow(): void {
    this.#standby ??= { storage: this.storage.copy(), since: this.timeline.now }
  }

  /** The standby becomes the database. Returns since when it lacks what was committed, or null if there is none. */
  promote(): number | null {
    if (this.#standby === null) return null
    const { storage, since } = this.#standby
    this.#standby = null
    this.crash()
    storage.begin()
    this.storage = storage
    this.timelineId++
    this.crash()
    return since
  }

  /** The process of PostgreSQL ends, and with it all that was not committed. */
  crash(): void {
    this.crashes++
    for (const session of this.sessions) this.terminate(session)
    this.#locks.clear()
    this.storage.show(null)
    for (const table of ['used_proof', 'limit_window', 'sign_in_attempt', 'failed_request'])
      this.storage.run(`DELETE FROM ${table}`)
    this.storage.run('DELETE FROM sim_touched')
  }
}

export function answerOf(command: string, count = 0): Answer {
  const answer = [] as unknown as Answer
  answer.count = count
  answer.command = command
  return answer
}
