/**
 * The cluster on PostgreSQL: notifications, and leases that end with a connection.
 *
 * A lease is an advisory lock of this node's **session**, a connection for nothing else. PostgreSQL ends the session,
 * and with it every lease, when the connection closes or has been silent for too long. The holder may learn of that
 * late, so its transactions check the fence: a number in the row of the lease that each new holder raises. They lock
 * that row until they end, so that a new holder waits for the last transaction of the former one.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { endsInTime } from '../../base/in-time.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { CLOCK_IDS } from '../../protocol/tid.ts'
import { BatchLoop } from '../running/batch-loop.ts'
import { outsideRequests } from '../running/request-scope.ts'
import {
  ALIVE_MILLIS,
  LeaseLost,
  nowMillis,
  sql,
  type Cluster,
  type ClusterNode,
  type Lease,
  type LeaseState,
  type NodeState,
  type Reader,
  type Sql,
  type Tx,
} from './database.ts'
import { aheadBy, clockError, clockOffset, errorSince, type Reading } from './node-clocks.ts'
import { faultOf } from './postgres-faults.ts'
import { KEPT_MILLIS, type Beat, type PostgresHistory } from './postgres-history.ts'
import { SupervisedPool, type Connect } from './supervised-pool.ts'
import { readerOn, send, statementOf } from './postgres-statements.ts'
import type { Waits } from './postgres-waits.ts'

/** Settings of the session that holds the leases. */
const settingsOf = ({ idleSessionMillis }: Waits) => ({ idle_session_timeout: idleSessionMillis, lock_timeout: 5000 })
/** Settings of the connection for `autocommit` and notifications. Its statements are short: requests wait for some. */
const autocommitSettings = { statement_timeout: 5000 }
/** Between attempts to take a lease, or to listen. */
const RETRY_MILLIS = 1000
/** Answered heartbeats after which a node stops waiting for its own notification, which takes milliseconds. */
const MAX_UNHEARD_BEATS = 3
/** Key of the advisory lock with which nodes that join take turns. */
const JOIN_LOCK = 0x6a_6f_69_6e
const lockOf = (lease: string) => sql`hashtextextended(${`lease ${lease}`}, 0)`

export interface ClusterHooks {
  onJoin(): void
  /** Connections of the node beside those of the cluster. */
  pools: readonly SupervisedPool[]
  waits: Waits
  /** The clock of this machine. */
  now(): Millis
}

/** How PostgreSQL names the connections of a node. */
export const applicationOf = (node: string): string => `holdfast ${node}`

export class PostgresCluster implements Cluster {
  readonly #session: SupervisedPool
  /** Receives notifications, on a connection that does nothing else and that the driver reopens if it is lost. */
  readonly #listener: SupervisedPool
  /** Aborts when the pool that listens is replaced. */
  #listening = new AbortController()
  readonly #autocommit: SupervisedPool
  readonly #held = new Map<string, HeldLease>()
  readonly #due = new Set<string>()
  readonly #ends = new Set<() => Promise<void>>()
  readonly #notifications = new BatchLoop(() => this.#send())
  /** Ends listening for the notifications of this node to itself. */
  #stopHearing: (() => void) | null = null
  /**
   * When this node last notified itself, and how many heartbeats were answered since; null once it has heard itself.
   */
  #soundedAt = performance.now()
  #beatsUnheard: number | null = null
  #version: string | null = null
  #clockId = Math.floor(Math.random() * CLOCK_IDS)
  /** By how much this machine's clock was ahead of PostgreSQL's at its last answer; null before the first. */
  #clockAhead: { millis: number; at: Reading } | null = null
  /** By how much this machine's clock was wrong when it was last compared; if it was right, by how much it differed. */
  #clockError = 0
  #clockOffset = 0
  #comparedAt: Reading = { wall: 0, monotonic: 0 }
  #heartbeat: Timer | null = null
  #pulse: Timer | null = null
  /**
   * Checks during which a heartbeat was unanswered. They are counted because a stalled process has received nothing
   * either.
   */
  #silentLooks = 0
  #isClosed = false

  constructor(
    connect: Connect,
    readonly node: ClusterNode,
    readonly history: PostgresHistory,
    readonly hooks: ClusterHooks,
  ) {
    const { silenceMillis, lastAnswersMillis } = hooks.waits
    this.#listener = new SupervisedPool({
      open: () => connect(1),
      silenceMillis,
      lastAnswersMillis,
      onEnd: () => {
        this.#listening.abort()
        this.#listening = new AbortController()
      },
    })
    this.#autocommit = new SupervisedPool({
      open: (onclose) => connect(1, { connection: autocommitSettings, onclose }),
      silenceMillis,
      lastAnswersMillis,
      onEnd: () => history.doubt(),
    })
    this.#session = new SupervisedPool({
      open: (onclose) => connect(1, { connection: settingsOf(hooks.waits), onclose }),
      silenceMillis,
      lastAnswersMillis,
      onEnd: () => {
        for (const lease of this.#held.values()) lease.end()
        this.#held.clear()
        history.doubt()
      },
    })
  }

  get #pools(): SupervisedPool[] {
    return [this.#session, this.#autocommit, this.#listener, ...this.hooks.pools]
  }

  /** Runs `work` on the session. If the connection is lost in between, later statements run on another one. */
  #ask<T>(work: (session: Reader) => Promise<T>): Promise<T> {
    return this.#session.use((pool) => work(readerOn((query) => send(pool, statementOf(query)))))
  }

  /** As `#ask`, but reports a lost connection as `DatabaseUnavailable`. */
  async #tell<T>(work: (session: Reader) => Promise<T>): Promise<T> {
    try {
      return await this.#ask(work)
    } catch (error) {
      throw faultOf(error)
    }
  }

  async autocommit<Row>(query: Sql): Promise<Row[]> {
    if (this.history.isDoubtful) await this.history.certain(this.hooks.waits.readMillis)
    try {
      return await this.#autocommit.use((pool) => readerOn((one) => send(pool, statementOf(one))).all<Row>(query))
    } catch (error) {
      throw faultOf(error)
    }
  }

  async join(version: string, { isAlone = false } = {}): Promise<void> {
    const { heartbeatMillis, pulseMillis } = this.hooks.waits
    this.#version = version
    const gone = isAlone ? sql`1 = 1` : sql`heartbeat_at < ${nowMillis} - ${KEPT_MILLIS}`
    await this.#ask((session) => session.all(sql`DELETE FROM node WHERE ${gone}`))
    await this.#ask((session) => session.all(sql`DELETE FROM commit_mark WHERE node NOT IN (SELECT id FROM node)`))
    await this.#ask((session) => this.history.join(session, { isAlone }))
    await this.#readClock()
    await this.#ask((session) => this.#register(session))
    this.hooks.onJoin()
    this.#stopHearing = this.listen(this.#ownChannel, () => (this.#beatsUnheard = null))
    this.#heartbeat = outsideRequests(() =>
      setInterval(() => void this.#beat().catch(() => undefined), heartbeatMillis),
    )
    this.#pulse = outsideRequests(() => setInterval(() => this.#hark(), pulseMillis))
    this.#heartbeat.unref()
    this.#pulse.unref()
  }

  /** Fails the pending queries of all connections once the node's own heartbeat has gone unanswered for too long. */
  #hark(): void {
    const { silenceMillis, pulseMillis, heartbeatMillis } = this.hooks.waits
    if (++this.#silentLooks % (silenceMillis / pulseMillis) > 0) return
    this.history.isSilent = true
    for (const pool of this.#pools) pool.renewUnlessAnswered(heartbeatMillis)
  }

  get clockId(): number {
    return this.#clockId
  }

  get clockError(): Millis {
    return this.#clockError === 0 ? 0 : errorSince(this.#clockError, this.#comparedAt, this.#readingNow())
  }

  get clockCorrection(): Millis {
    return this.clockError + this.#clockOffset
  }

  get aheadOfDatabase(): Millis {
    if (this.#clockAhead === null) return 0
    const { millis, at } = this.#clockAhead
    return errorSince(millis, at, this.#readingNow()) - this.clockCorrection
  }

  #readingNow(): Reading {
    return { wall: this.hooks.now(), monotonic: performance.now() }
  }

  /** Learns the time of PostgreSQL, for the first heartbeat. */
  async #readClock(): Promise<void> {
    const asked = this.#readingNow()
    const answer = await this.#ask((session) => session.get<{ at: Millis }>(sql`SELECT ${nowMillis} AS at`))
    this.#noteClock(answer!, asked)
  }

  /** Notes the time that PostgreSQL has told. */
  #noteClock({ at }: { at: Millis }, asked: Reading): void {
    this.#clockAhead = { millis: aheadBy({ at, askedAt: asked.wall, answeredAt: this.hooks.now() }), at: asked }
  }

  async #compareClocks(read: Reading): Promise<void> {
    const { millis } = this.#clockAhead!
    const others = await this.#otherClocks()
    this.#clockError = clockError(millis, others, this.#clockError)
    this.#clockOffset = this.#clockError === 0 ? clockOffset(millis, others, this.#clockOffset) : 0
    this.#comparedAt = read
  }

  /**
   * Returns by how much the clocks of other live nodes are ahead of PostgreSQL's. A heartbeat with a future time is
   * from before PostgreSQL's clock was set back, so what it notes says nothing about the present clock.
   */
  async #otherClocks(): Promise<number[]> {
    const rows = await this.#ask((session) =>
      session.all<{ ahead: number }>(sql`
        SELECT clock_ahead AS ahead FROM node
        WHERE id <> ${this.node.id} AND clock_ahead IS NOT NULL
          AND heartbeat_at > ${nowMillis} - ${ALIVE_MILLIS} AND heartbeat_at <= ${nowMillis}`),
    )
    return rows.map(({ ahead }) => ahead)
  }

  /** Inserts the row of this node, with a clock id that is in no other row. */
  async #register(session: Reader): Promise<void> {
    await session.all(sql`SELECT pg_advisory_lock(CAST(${JOIN_LOCK} AS BIGINT))`)
    try {
      const free = await session.get<{ id: number }>(sql`
        SELECT free.id FROM generate_series(0, CAST(${CLOCK_IDS - 1} AS BIGINT)) AS free (id)
        WHERE NOT EXISTS (SELECT 1 FROM node WHERE clock_id = free.id) ORDER BY random() LIMIT 1`)
      this.#clockId = free?.id ?? this.#clockId
      await this.#beat()
    } finally {
      await session.all(sql`SELECT pg_advisory_unlock(CAST(${JOIN_LOCK} AS BIGINT))`)
    }
  }

  /** Sends the heartbeat that keeps the session alive; other nodes read it from the row. */
  async #beat(): Promise<void> {
    for (const pool of this.#pools) pool.renewIfSilent()
    const { id, name } = this.node
    const before = this.history.acknowledged
    const read = this.#readingNow()
    const asked = this.#ask((session) =>
      session.get<Beat>(sql`
        INSERT INTO node (id, name, version, started_at, heartbeat_at, clock_id, clock_ahead, beats)
        VALUES (${id}, ${name}, ${this.#version}, ${nowMillis}, ${nowMillis}, ${this.#clockId}, ${this.#clockAhead!.millis}, 1)
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, clock_ahead = excluded.clock_ahead,
          beats = node.beats + CASE WHEN node.beats >= ${before.beats} THEN 1 ELSE 0 END
        RETURNING beats, heartbeat_at AS at, (SELECT generation FROM database_history) AS generation,
          (SELECT lost FROM database_history) AS lost`),
    )
    // A connection that was closed, or cannot be opened, is not silent: its queries fail by themselves.
    const beat = await asked.finally(() => (this.#silentLooks = 0))
    this.history.isSilent = false
    this.history.beaten(beat!, before)
    this.#noteClock(beat!, read)
    this.#checkHearing()
    await this.#compareClocks(read)
  }

  get #ownChannel(): string {
    return `node ${this.node.id}`
  }

  /**
   * A connection that only receives may be dead without a sign, as when a firewall in between has restarted. So this
   * node notifies itself from time to time, and listens on another connection if the notification does not arrive.
   */
  #checkHearing(): void {
    if (this.#beatsUnheard !== null && ++this.#beatsUnheard > MAX_UNHEARD_BEATS) {
      this.#beatsUnheard = null
      this.#listener.renewUnlessAnswered(0)
    }
    if (performance.now() - this.#soundedAt < this.hooks.waits.hearingMillis) return
    this.#soundedAt = performance.now()
    this.#beatsUnheard ??= 0
    this.notify({ afterCommit: (act) => act() }, this.#ownChannel)
  }

  /**
   * A heartbeat with a future time is from before PostgreSQL's clock was set back. It does not show that a node without
   * connections is alive.
   */
  async nodes(): Promise<NodeState[]> {
    return this.#tell((session) =>
      session.all<NodeState>(sql`
        SELECT id, name, version, started_at AS "startedAt", heartbeat_at AS "heartbeatAt",
          heartbeat_at > ${nowMillis} - ${ALIVE_MILLIS} AND (heartbeat_at <= ${nowMillis} + ${ALIVE_MILLIS} OR count(pid) > 0) AS "isAlive",
          count(pid) AS connections,
          count(*) FILTER (WHERE state <> 'idle') AS "busyConnections"
        FROM node LEFT JOIN pg_stat_activity ON datname = current_database() AND application_name = ${applicationOf('')} || id
        GROUP BY node.id ORDER BY started_at, id`),
    )
  }

  notify(tx: Pick<Tx, 'afterCommit'>, channel: string): void {
    tx.afterCommit(() => {
      this.#due.add(channel)
      this.#notifications.wake()
    })
  }

  async #send(): Promise<boolean> {
    const channels = [...this.#due]
    this.#due.clear()
    // A lost notification does no harm: listeners also poll, and check whenever their connection was lost.
    await this.#autocommit
      .use((pool) =>
        pool.unsafe("SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel", [pool.array(channels, 'TEXT')]),
      )
      .catch(() => undefined)
    return this.#due.size > 0
  }

  listen(channel: string, act: () => void): () => void {
    const ending = new AbortController()
    const tell = () => {
      if (!ending.signal.aborted) act()
    }
    void outsideRequests(async () => {
      while (!ending.signal.aborted && !this.#isClosed) {
        const { signal } = this.#listening
        const subscription = await this.#listener.current.listen(channel, tell, tell).catch(() => null)
        if (subscription === null) await pause(RETRY_MILLIS, undefined, { ref: false })
        else await aborted(AbortSignal.any([ending.signal, signal]))
        if (ending.signal.aborted) await subscription?.unlisten().catch(() => undefined)
      }
    })
    return () => ending.abort()
  }

  async take(name: string): Promise<HeldLease | null> {
    if (this.#held.has(name)) return null
    // Added before the lock is taken: PostgreSQL would give the same session its own lock a second time.
    const lease: HeldLease = new HeldLease(name, () => this.#release(lease))
    this.#held.set(name, lease)
    try {
      lease.fence = await this.#ask((session) => this.#acquire(session, name))
    } catch (error) {
      this.#forget(lease)
      await this.#unlock(name).catch(() => undefined)
      throw error
    }
    if (lease.fence > 0 && !lease.lost.aborted) return lease
    this.#forget(lease)
    return null
  }

  /** Returns the fence, or 0 if another node holds the lease. */
  async #acquire(session: Reader, name: string): Promise<number> {
    const lock = await session.get<{ taken: boolean; pid: number }>(
      sql`SELECT pg_try_advisory_lock(${lockOf(name)}) AS taken, pg_backend_pid() AS pid`,
    )
    if (!lock!.taken) return 0
    const row = await session.get<{ fence: number; pid: number }>(sql`
      INSERT INTO lease (name, fence, holder, taken_at) VALUES (${name}, 1, ${this.node.id}, ${nowMillis})
      ON CONFLICT (name) DO UPDATE SET fence = lease.fence + 1, holder = excluded.holder, taken_at = excluded.taken_at
      RETURNING fence, pg_backend_pid() AS pid`)
    // If the second statement ran on another connection, the lock ended with the first one.
    return row!.pid === lock!.pid ? row!.fence : 0
  }

  async #release(lease: HeldLease): Promise<void> {
    if (this.#held.get(lease.name) !== lease) return
    lease.end()
    // A lock that cannot be released is gone with its session.
    await this.#unlock(lease.name).catch(() => undefined)
    this.#forget(lease)
  }

  #forget(lease: HeldLease): void {
    if (this.#held.get(lease.name) === lease) this.#held.delete(lease.name)
  }

  #unlock(name: string): Promise<unknown> {
    return this.#ask((session) => session.all(sql`SELECT pg_advisory_unlock(${lockOf(name)})`))
  }

  whileHolding(
    name: string,
    work: (lease: Lease) => Promise<void>,
    report: (error: unknown) => void,
  ): () => Promise<void> {
    const stopping = new AbortController()
    const holding = outsideRequests(async () => {
      while (!stopping.signal.aborted) {
        // While the database is unreachable, no node has the lease.
        const lease = await this.take(name).catch(() => null)
        if (lease !== null) await this.#hold(lease, work, stopping.signal).catch(report)
        await pause(RETRY_MILLIS, undefined, { ref: false, signal: stopping.signal }).catch(() => undefined)
      }
    })
    const end = async () => {
      this.#ends.delete(end)
      stopping.abort()
      await holding
    }
    this.#ends.add(end)
    return end
  }

  /** Runs the work, and then releases the lease, so that another node may take it. */
  async #hold(lease: HeldLease, work: (lease: Lease) => Promise<void>, stopping: AbortSignal): Promise<void> {
    const end = () => lease.end()
    stopping.addEventListener('abort', end)
    if (stopping.aborted) end()
    try {
      await work(lease)
    } finally {
      stopping.removeEventListener('abort', end)
      await lease.release()
    }
  }

  async leases(): Promise<LeaseState[]> {
    return this.#tell((session) =>
      session.all<LeaseState>(sql`
        SELECT name, fence, holder, taken_at AS "takenAt", EXISTS (
          SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT) = hashtextextended('lease ' || name, 0)) AS "isHeld"
        FROM lease ORDER BY name`),
    )
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    const { closeMillis } = this.hooks.waits
    this.#isClosed = true
    this.#stopHearing?.()
    await endsInTime(Promise.all([...this.#ends].map((end) => end())), closeMillis)
    if (this.#heartbeat !== null && this.#pulse !== null) {
      clearInterval(this.#heartbeat)
      clearInterval(this.#pulse)
      this.history.leave()
      await endsInTime(
        this.#ask((session) => session.all(sql`DELETE FROM node WHERE id = ${this.node.id}`)),
        closeMillis,
      )
    }
    await endsInTime(this.#notifications.idle(), closeMillis)
    await Promise.all([this.#session, this.#autocommit, this.#listener].map((pool) => pool.close()))
  }
}

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => (signal.aborted ? resolve(null) : signal.addEventListener('abort', resolve, { once: true })))

class HeldLease implements Lease {
  readonly #ending = new AbortController()
  fence = 0

  constructor(
    readonly name: string,
    readonly release: () => Promise<void>,
  ) {}

  get lost(): AbortSignal {
    return this.#ending.signal
  }

  end(): void {
    this.#ending.abort(new LeaseLost(this.name))
  }

  async guard(tx: Tx): Promise<void> {
    const row = await tx.get(sql`SELECT 1 FROM lease WHERE name = ${this.name} AND fence = ${this.fence} FOR SHARE`)
    if (row === null) throw new LeaseLost(this.name)
  }
}
