/**
 * Rate limits of several nodes on one database. Each node counts for itself. Once it has counted a twentieth of a limit,
 * divided by the number of other nodes, it adds that to a table and learns the sum, for many keys in one statement. So
 * clients that are far from their limits cause few statements.
 *
 * Until a node has learned the sum again, it may take a share: a tenth of the limit, divided by the number of other
 * nodes. One request may always go ahead of the sum. So all nodes together exceed a limit by a tenth at most, or by one
 * request for each other node if that is more. A request that needs more than the share waits a few milliseconds for the
 * sum.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ALIVE_MILLIS, sql, type Cluster } from '../database/database.ts'
import type { Clock } from './clock.ts'
import { outsideRequests } from './request-scope.ts'

/** Between two statements of a node. */
const SYNC_MILLIS = 25
/** Pause after a statement that failed. */
const RETRY_MILLIS = 1000
/** How far the clocks of two nodes may be apart. */
const SKEW_MILLIS = 10_000
/** Most keys in one statement. */
const MAX_BATCH = 500
/** Between two deletions of windows that have ended. */
const FORGET_MILLIS = 60_000

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
  /** Points of this node that are not in the table yet, and of these the ones that are on their way. */
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
  nodes: number
}

export class SharedLimits {
  /** Entries to be sent, by their id in the table. */
  readonly #due = new Map<string, Entry>()
  readonly #stopping = new AbortController()
  #sending: Promise<void> | null = null
  #round = Promise.withResolvers<void>()
  #nodes = 1
  #forgotAt = -Infinity

  constructor(
    readonly cluster: Cluster,
    readonly clock: Clock,
  ) {}

  /** Returns how many points this node may take from a window before it learns the sum again. */
  room({ used, share }: SharedWindow, limit: number): number {
    const left = limit - used
    if (this.#nodes === 1 || share === undefined || share.pending === 0) return left
    return Math.min(left, Math.floor(this.#share(limit)) - share.pending)
  }

  /** A node that is alone may get company. */
  #share(limit: number): number {
    return limit / (10 * Math.max(1, this.#nodes - 1))
  }

  /** Points were taken from a window. The other nodes are told when there are enough of them. */
  took(rule: string, key: string, window: SharedWindow, { cost, limit }: { cost: number; limit: number }): void {
    const share = (window.share ??= { pending: 0, sent: 0, learnedAt: -Infinity })
    share.pending += cost
    if (share.pending >= this.#share(limit) / 2) this.ask(rule, key, window)
  }

  /** Tell the other nodes of what was taken, and learn what they have. */
  ask(rule: string, key: string, window: SharedWindow): void {
    if (this.#stopping.signal.aborted) return
    window.share ??= { pending: 0, sent: 0, learnedAt: -Infinity }
    this.#due.set(idOf(rule, key), { rule, key, window: window as Entry['window'] })
    this.#sending ??= outsideRequests(() => this.#send())
  }

  /** Resolves once the next statement has ended, for a request that waits for a sum. */
  async learned(): Promise<void> {
    if (this.#sending !== null) await this.#round.promise
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
    await this.#sending
  }

  async #send(): Promise<void> {
    const { signal } = this.#stopping
    // Requests of one turn share a statement.
    await pause(0)
    while (this.#due.size > 0 && !signal.aborted) {
      const isDone = await this.#sendSome()
      this.#endRound()
      await pause(isDone ? SYNC_MILLIS : RETRY_MILLIS, undefined, { ref: false, signal }).catch(() => undefined)
    }
    this.#endRound()
    this.#sending = null
  }

  #endRound(): void {
    const { resolve } = this.#round
    this.#round = Promise.withResolvers<void>()
    resolve()
  }

  /** Returns false if the database could not be reached. */
  async #sendSome(): Promise<boolean> {
    const batch = new Map([...this.#due].slice(0, MAX_BATCH))
    const now = this.clock.now()
    for (const [id, { window }] of batch) {
      this.#due.delete(id)
      window.share.sent = window.share.pending
    }
    try {
      const sums = await this.#add(batch, now)
      for (const { id, endsAt, used, nodes } of sums) {
        const { window } = batch.get(id)!
        window.share.pending -= window.share.sent
        window.share.sent = 0
        window.share.learnedAt = this.clock.monotonic()
        window.used = used + window.share.pending
        window.endsAt = this.clock.monotonic() + endsAt - now
        this.#nodes = Math.max(1, nodes)
      }
      await this.#forget(now)
      return true
    } catch {
      // What was not added is added next time. Without a database, requests fail anyway.
      for (const [id, entry] of batch) if (!this.#due.has(id)) this.#due.set(id, entry)
      return false
    }
  }

  /** In one order at all nodes, so that two of them do not wait for each other. */
  #add(batch: ReadonlyMap<string, Entry>, now: number): Promise<Sum[]> {
    const rows = [...batch]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, { window }]) => {
        const endsAt = Math.round(now + window.endsAt - this.clock.monotonic())
        return [id, endsAt, window.share.sent, window.used, window.millis].join(' ')
      })
    const part = (place: number) => sql`CAST(split_part(one, ' ', ${place}) AS BIGINT)`
    // A window that ends later than one that begins now was written by a node whose clock was ahead: what this node knows counts.
    return this.cluster.beside(sql`
      WITH sent AS MATERIALIZED (
        SELECT split_part(one, ' ', 1) AS id, ${part(2)} AS ends_at, ${part(3)} AS used, ${part(4)} AS known, ${now + SKEW_MILLIS} + ${part(5)} AS latest
        FROM unnest(string_to_array(${rows.join(',')}, ',')) AS one),
      locked AS MATERIALIZED (SELECT id FROM limit_window WHERE id IN (SELECT id FROM sent) ORDER BY id FOR UPDATE),
      counted AS (
        UPDATE limit_window AS old SET
          used = CASE WHEN old.ends_at <= ${now} THEN sent.used WHEN old.ends_at > sent.latest THEN sent.known ELSE old.used + sent.used END,
          ends_at = CASE WHEN old.ends_at <= ${now} OR old.ends_at > sent.latest THEN sent.ends_at ELSE old.ends_at END
        FROM locked JOIN sent ON sent.id = locked.id WHERE old.id = locked.id
        RETURNING old.id, old.ends_at, old.used),
      begun AS (
        INSERT INTO limit_window AS old (id, ends_at, used)
        SELECT id, ends_at, used FROM sent WHERE NOT EXISTS (SELECT 1 FROM counted WHERE counted.id = sent.id)
        ON CONFLICT (id) DO UPDATE SET used = old.used + excluded.used
        RETURNING old.id, old.ends_at, old.used)
      SELECT id, ends_at AS "endsAt", used, (SELECT count(*) FROM node
        WHERE heartbeat_at > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - ${ALIVE_MILLIS}) AS nodes
      FROM (SELECT * FROM counted UNION ALL SELECT * FROM begun) AS sums`)
  }

  async #forget(now: number): Promise<void> {
    if (this.clock.monotonic() - this.#forgotAt < FORGET_MILLIS) return
    this.#forgotAt = this.clock.monotonic()
    await this.cluster.beside(sql`DELETE FROM limit_window WHERE ends_at <= ${now}`)
  }
}

/** A hash, because keys are addresses of clients and accounts. */
const idOf = (rule: string, key: string): string => new Bun.SHA256().update(`${rule} ${key}`).digest('base64url').slice(0, 22)
