/**
 * Rate limits of several nodes on one database. Each node counts for itself. Once it has counted a twentieth of a
 * limit, divided by the number of other nodes, it adds that to a table and learns the sum, for many keys in one
 * statement. So clients that are far from their limits cause few statements.
 *
 * Until a node has learned the sum again, it may take a share: a tenth of the limit, divided by the number of other
 * nodes, and one point at least. So all nodes together exceed a limit by a tenth at most, or by one point for each
 * other node if that is more. A request for which the share has too few points left waits some milliseconds for the
 * sum. A request that costs more than a share is counted in the table itself, if there is room for it. So is every
 * request of a limit that is exact.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import { ALIVE_MILLIS, nowMillis, sql, type Cluster } from '../database/database.ts'
import { BatchLoop } from './batch-loop.ts'
import type { Clock } from './clock.ts'

/** Between two statements of a node. */
const SYNC_MILLIS = 25
/** Pause after a statement that failed. */
const RETRY_MILLIS = 1000
/** After this many failed statements in a row, the requests that wait for them fail as well. */
const MAX_FAILURES = 2
/**
 * How far the clocks of two nodes may be apart. Less than `MAX_SKEW_MILLIS`, which covers nodes of earlier versions
 * too: for this long, a window that ends too late may refuse requests.
 */
const SKEW_MILLIS = 10_000
/** Most keys in one statement. */
const MAX_BATCH = 500
/** Between two deletions of windows that have ended. */
const FORGET_MILLIS = MINUTE_MILLIS

export interface SharedWindow {
  /** What all nodes have used, as far as this one knows, and everything that this one has used. */
  used: number
  /** On the monotonic clock. */
  endsAt: number
  /** Length of the window. */
  readonly millis: number
  share?: Share
}

interface Share {
  /**
   * Points of this node that are not in the table yet, and how many of these are in the statement that is under way.
   * Negative if the node gives points back.
   */
  pending: number
  sent: number
  /** When the sum was learned last, on the monotonic clock. */
  learnedAt: number
}

interface Entry {
  rule: string
  key: string
  window: SharedWindow & { share: Share }
}

interface Sum {
  id: string
  endsAt: number
  used: number
  /** Whether the sum includes the requested extra points; null if the row is new, and that is unknown. */
  granted: boolean | null
  nodes: number
}

interface Kind {
  /** No points are taken before they are in the sum. */
  isExact?: true
}

interface Taken extends Kind {
  cost: number
  limit: number
}

/** Points that are counted in the table if it has room for them. */
interface Wish {
  cost: number
  limit: number
  settle(isGranted: boolean): void
  fail(error: unknown): void
}

export class SharedLimits {
  /** Entries to be sent, by their id in the table. */
  readonly #due = new Map<string, Entry>()
  /** By the same id. A statement carries the first wish of each id. */
  readonly #wishes = new Map<string, Wish[]>()
  readonly #stopping = new AbortController()
  // Requests of one turn share a statement.
  readonly #statements = new BatchLoop(() => this.#send(), { gathering: () => pause(0) })
  /** Resolves with the statement that is under way, or the next one. */
  #round = Promise.withResolvers<void>()
  /** Statements in a row that failed. */
  #failures = 0
  #nodes = 1
  #forgotAt = -Infinity

  constructor(
    readonly cluster: Cluster,
    readonly clock: Clock,
  ) {}

  /**
   * Returns how many points this node may take from a window before it learns the sum again. Points that it gives back
   * do not add to them: until others are told, a request would see room, and find none when it takes all its points.
   */
  room({ used, share }: SharedWindow, limit: number, kind: Kind): number {
    return Math.min(limit - used, this.largest(limit, kind) - Math.max(0, share?.pending ?? 0))
  }

  /** Returns the largest cost that a node may take ahead of the sum. */
  largest(limit: number, { isExact }: Kind): number {
    if (this.#nodes === 1) return limit
    return isExact ? 0 : Math.max(1, Math.floor(this.#share(limit)))
  }

  /** A node that is alone counts with one other, because another may join. */
  #share(limit: number): number {
    return limit / (10 * Math.max(1, this.#nodes - 1))
  }

  /** Points were taken from a window, or given back. The other nodes are told when there are enough of them. */
  took(rule: string, key: string, window: SharedWindow, { cost, limit, isExact }: Taken): void {
    const share = (window.share ??= newShare())
    share.pending += cost
    if (isExact || share.pending >= this.#share(limit) / 2) this.ask(rule, key, window)
  }

  /** Tell the other nodes of what was taken, and learn what they have. */
  ask(rule: string, key: string, window: SharedWindow): void {
    if (this.#stopping.signal.aborted) return
    window.share ??= newShare()
    this.#due.set(idOf(rule, key), { rule, key, window: window as Entry['window'] })
    this.#statements.wake()
  }

  /** Count points in the table, if that does not exceed the limit. Returns false if it would, or if that is unknown. */
  reserve(
    rule: string,
    key: string,
    window: SharedWindow,
    { cost, limit }: { cost: number; limit: number },
  ): Promise<boolean> {
    if (this.#stopping.signal.aborted) return Promise.resolve(false)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const id = idOf(rule, key)
    const wishes = this.#wishes.get(id) ?? []
    wishes.push({ cost, limit, settle: resolve, fail: reject })
    this.#wishes.set(id, wishes)
    this.ask(rule, key, window)
    return promise
  }

  /** Give back points that were counted for nothing. */
  giveBack(rule: string, key: string, window: SharedWindow, cost: number): void {
    window.used -= cost
    ;(window.share ??= newShare()).pending -= cost
    this.ask(rule, key, window)
  }

  /** Resolves once the next statement has ended, for a request that waits for a sum. */
  async learned(): Promise<void> {
    if (this.#statements.isRunning) await this.#round.promise
  }

  /** Whether everything that this node took from a window is part of a sum that it learned at this time or later. */
  isLearned({ share }: SharedWindow, at: number): boolean {
    return share !== undefined && share.pending === 0 && share.learnedAt >= at
  }

  /** Count the nodes. Call it at the start and from time to time; statements of busy nodes count them too. */
  async meet(): Promise<void> {
    this.#nodes = Math.max(1, (await this.cluster.nodes()).filter(({ isAlive }) => isAlive).length)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#statements.idle()
  }

  async #send(): Promise<boolean> {
    const { signal } = this.#stopping
    if (!signal.aborted) {
      try {
        await this.#sendSome()
        this.#failures = 0
        this.#endRound()
        if (this.#wishes.size > 0) return true
      } catch (error) {
        if (++this.#failures >= MAX_FAILURES) this.#failRound(error)
      }
      const waitMillis = this.#failures === 0 ? SYNC_MILLIS : RETRY_MILLIS
      await pause(waitMillis, undefined, { ref: false, signal }).catch(() => undefined)
    }
    if (this.#due.size > 0 && !signal.aborted) return true
    this.#endRound()
    for (const wishes of this.#wishes.values()) for (const { settle } of wishes) settle(false)
    this.#wishes.clear()
    return false
  }

  #settle(id: string, isGranted: boolean): void {
    const wishes = this.#wishes.get(id)
    wishes?.shift()?.settle(isGranted)
    if (wishes?.length === 0) this.#wishes.delete(id)
  }

  #endRound(): void {
    const { resolve } = this.#round
    this.#round = Promise.withResolvers<void>()
    resolve()
  }

  /** Fails the requests that wait for a sum, like all other requests that need the database. */
  #failRound(error: unknown): void {
    const { promise, reject } = this.#round
    promise.catch(() => undefined)
    this.#round = Promise.withResolvers<void>()
    reject(error)
    for (const wishes of this.#wishes.values()) for (const { fail } of wishes) fail(error)
    this.#wishes.clear()
  }

  /** Throws if the database could not be reached. */
  async #sendSome(): Promise<void> {
    const batch = new Map([...this.#due].slice(0, MAX_BATCH))
    const now = this.clock.now()
    const startedAt = this.clock.monotonic()
    for (const [id, { window }] of batch) {
      this.#due.delete(id)
      window.share.sent = window.share.pending
    }
    // Collected now, because more wishes may come while the statement is under way.
    const wishes = new Map([...batch.keys()].map((id) => [id, this.#wishes.get(id)?.[0]]))
    try {
      const sums = await this.#add(batch, wishes, now)
      for (const { id, endsAt, used, granted, nodes } of sums) {
        const entry = batch.get(id)!
        const { window } = entry
        window.share.pending -= window.share.sent
        window.share.sent = 0
        window.share.learnedAt = this.clock.monotonic()
        window.used = used + window.share.pending
        window.endsAt = startedAt + endsAt - now
        this.#nodes = Math.max(1, nodes)
        if (granted !== null && wishes.get(id) !== undefined) this.#settle(id, granted)
        if (this.#wishes.has(id)) this.#due.set(id, entry)
      }
      await this.#forget(now)
    } catch (error) {
      // What was not added is added next time.
      for (const [id, entry] of batch) if (!this.#due.has(id)) this.#due.set(id, entry)
      throw error
    }
  }

  /** Adds rows in an order that is the same at all nodes, so that no two nodes wait for each other. */
  #add(batch: ReadonlyMap<string, Entry>, wishes: ReadonlyMap<string, Wish | undefined>, now: number): Promise<Sum[]> {
    const rows = [...batch]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, { window }]) => {
        const endsAt = Math.round(now + window.endsAt - this.clock.monotonic())
        const { cost = 0, limit = 0 } = wishes.get(id) ?? {}
        return [id, endsAt, window.share.sent, window.used, window.millis, cost, limit].join(' ')
      })
    const part = (place: number) => sql`CAST(split_part(one, ' ', ${place}) AS BIGINT)`
    // A window that ends later than one that begins now was written by a node whose clock was ahead. It is replaced by
    // what this node knows.
    return this.cluster.autocommit(sql`
      WITH sent AS MATERIALIZED (
        SELECT split_part(one, ' ', 1) AS id, ${part(2)} AS ends_at, ${part(3)} AS used, ${part(4)} AS known, ${now + SKEW_MILLIS} + ${part(5)} AS latest,
          ${part(6)} AS wanted, ${part(7)} AS most
        FROM unnest(string_to_array(${rows.join(',')}, ',')) AS one),
      locked AS MATERIALIZED (
        SELECT id, used, ends_at FROM limit_window WHERE id IN (SELECT id FROM sent) ORDER BY id FOR UPDATE),
      summed AS MATERIALIZED (
        SELECT sent.id, wanted, most,
          greatest(0, CASE WHEN old.ends_at <= ${now} THEN sent.used WHEN old.ends_at > latest THEN known ELSE old.used + sent.used END) AS used,
          CASE WHEN old.ends_at <= ${now} OR old.ends_at > latest THEN sent.ends_at ELSE old.ends_at END AS ends_at
        FROM locked AS old JOIN sent ON sent.id = old.id),
      counted AS (
        UPDATE limit_window AS old SET
          used = summed.used + CASE WHEN summed.used + wanted <= most THEN wanted ELSE 0 END,
          ends_at = summed.ends_at
        FROM summed WHERE old.id = summed.id
        RETURNING old.id, old.ends_at, old.used, summed.used + wanted <= most AS granted),
      begun AS (
        INSERT INTO limit_window AS old (id, ends_at, used)
        SELECT id, ends_at, greatest(0, used) FROM sent WHERE NOT EXISTS (SELECT 1 FROM counted WHERE counted.id = sent.id)
        ON CONFLICT (id) DO UPDATE SET used = old.used + excluded.used
        RETURNING old.id, old.ends_at, old.used, CAST(NULL AS BOOLEAN) AS granted)
      SELECT id, ends_at AS "endsAt", used, granted, (SELECT count(*) FROM node
        WHERE heartbeat_at > ${nowMillis} - ${ALIVE_MILLIS}) AS nodes
      FROM (SELECT * FROM counted UNION ALL SELECT * FROM begun) AS sums`)
  }

  async #forget(now: number): Promise<void> {
    if (this.clock.monotonic() - this.#forgotAt < FORGET_MILLIS) return
    this.#forgotAt = this.clock.monotonic()
    await this.cluster.autocommit(sql`DELETE FROM limit_window WHERE ends_at <= ${now}`)
  }
}

const newShare = (): Share => ({ pending: 0, sent: 0, learnedAt: -Infinity })

/** A hash, because keys are addresses of clients and accounts. */
const idOf = (rule: string, key: string): string =>
  new Bun.SHA256().update(`${rule} ${key}`).digest('base64url').slice(0, 22)
