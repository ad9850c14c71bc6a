/**
 * Numbers the events that several nodes write into one PostgreSQL database.
 *
 * A number that is assigned in the writing transaction would let only one transaction of the whole cluster run at a
 * time. Transactions therefore store their events without a number, and one node at a time, the **sequencer**, moves
 * what has been committed into the log, in batches. On SQLite, where transactions run one after another anyway, events
 * get their numbers as they are written (`firehose.ts`).
 *
 * What holds, and why:
 * - Numbers grow and are never used again: a batch takes them from the row of `repo_seq_past` and moves its events in
 *   one statement, which locks that row. Batches take effect one after another, on any node.
 * - No reader sees a number before a lower one: the next batch begins after the one before has committed.
 * - The events of an account keep their order: `insertUnnumbered` gives ids in the order of commits, and a batch takes
 *   the lowest ids that it sees. An event with a lower id that is committed later is of another account.
 * - No event is skipped or numbered twice: the pending events are a set of rows, not a position in a log.
 * - A node that has lost the lease numbers nothing more, because each batch checks the fence of the lease.
 * - After PostgreSQL has lost what it had acknowledged, no number is given again: each batch checks that the nodes
 *   agree on the copy of the database that it meets, and that this copy has the numbers that the node has seen.
 *
 * No request waits for numbers: a writer gets its answer when its transaction is durable. A notification wakes every
 * node; because it may be lost, nodes also poll every second.
 */
import { LeaseLost, type Cluster, type Lease, type Tx } from '../../../platform/database/database.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { BatchLoop } from '../../../platform/running/batch-loop.ts'
import type { RepoEvent } from '../../../protocol/frames.ts'
import { crawlersOf } from './crawlers.ts'
import { deleteEventsOf } from './event-list.ts'
import {
  anyUnnumbered,
  BATCH_EVENTS,
  batchOf,
  deleteUnnumberedOf,
  erasesEarlier,
  insertUnnumbered,
  type Batch,
} from './sequencer-store.ts'
import { sentEventsOf } from './sent-events.ts'
import { tailOf } from './tail.ts'
import { POLL_MILLIS, channels } from './wake-ups.ts'

/** The lease of the sequencer. */
export const EVENT_NUMBERS = 'event-numbers'

/**
 * Store events that the sequencer numbers once the transaction has committed. The earlier events of an account that is
 * deleted are erased at once, in the transaction, because it may take some time until the last event has a number.
 */
export async function leaveToSequencer(
  ctx: Context,
  cluster: Cluster,
  tx: Tx,
  events: readonly RepoEvent[],
): Promise<void> {
  for (const { did } of events.filter(erasesEarlier)) {
    // The slow part comes first: from the next statement on, no event gets a number until the transaction has ended.
    await deleteEventsOf(tx, did)
    await deleteUnnumberedOf(tx, did)
    // A batch may have moved some into the log meanwhile.
    await deleteEventsOf(tx, did)
    tx.afterCommit(() => tailOf(ctx).forget())
    cluster.notify(tx, channels.erased)
  }
  await insertUnnumbered(tx, events, ctx.clock.now())
  cluster.notify(tx, channels.written)
}

export class Sequencer {
  readonly #ctx: Context
  readonly #cluster: Cluster
  #isHolding = false
  #batches = 0
  /** Fewer after a batch that failed, because it may have taken too long. */
  #maxEvents = BATCH_EVENTS

  constructor(ctx: Context, cluster: Cluster) {
    this.#ctx = ctx
    this.#cluster = cluster
  }

  /** Whether this node numbers the events at present. */
  get isHolding(): boolean {
    return this.#isHolding
  }

  get batches(): number {
    return this.#batches
  }

  /** Number events whenever this node has the lease. Returns the function that ends it. */
  start(): () => Promise<void> {
    const { log } = this.#ctx
    return this.#cluster.whileHolding(
      EVENT_NUMBERS,
      (lease) => this.#whileHolding(lease),
      (error) => {
        if (error instanceof LeaseLost) log.info('another node numbers events now')
        else log.warn('could not number events', { error })
      },
    )
  }

  async #whileHolding(lease: Lease): Promise<void> {
    const crawlers = crawlersOf(this.#ctx)
    const { promise: end, resolve: over, reject: failed } = Promise.withResolvers<void>()
    const floor = new Floor()
    const batches = new BatchLoop(() =>
      this.#numberSome(lease, floor).catch((error: unknown) => {
        failed(error)
        return false
      }),
    )
    const wake = () => batches.wake()
    const unlisten = this.#cluster.listen(channels.written, wake)
    const poll = setInterval(wake, POLL_MILLIS)
    lease.lost.addEventListener('abort', () => over(), { once: true })
    this.#isHolding = true
    crawlers.start()
    try {
      if (lease.lost.aborted) return
      wake()
      await end
    } finally {
      crawlers.rest()
      this.#isHolding = false
      clearInterval(poll)
      unlisten()
      await batches.idle()
    }
  }

  /** Number one batch of the events that have no number yet. Returns whether there may be more. */
  async #numberSome(lease: Lease, floor: Floor): Promise<boolean> {
    if (lease.lost.aborted) return false
    const waiting = await this.#cluster.autocommit(anyUnnumbered(floor.id))
    if (waiting.length === 0) return false
    await this.#batch(lease, floor)
    return true
  }

  async #batch(lease: Lease, floor: Floor): Promise<void> {
    const maxEvents = this.#maxEvents
    this.#maxEvents = Math.ceil(maxEvents / 2)
    const { history } = this.#cluster
    const sent = sentEventsOf(this.#ctx)!
    const guards = { lease, whole: history.isWhole(), knownHead: sent.head }
    const [batch] = await this.#cluster.autocommit<Batch>(
      batchOf({ ...guards, floor: floor.id, maxEvents, sequencedAt: this.#ctx.clock.now() }),
    )
    this.#maxEvents = Math.min(BATCH_EVENTS, 2 * maxEvents)
    if (!batch!.isHeld) throw new LeaseLost(lease.name)
    if (!batch!.isWhole) {
      history.doubt()
      throw new Error('the database is not the copy that the nodes have agreed on')
    }
    sent.raise(batch!.head)
    floor.after(batch!)
    if (batch!.events === 0) return
    this.#batches++
    this.#cluster.notify({ afterCommit: (act) => act() }, channels.numbered)
    crawlersOf(this.#ctx).announce()
  }
}

/** Null on SQLite, which needs none. */
export const sequencerOf = perContext((ctx) => (ctx.db.cluster === null ? null : new Sequencer(ctx, ctx.db.cluster)))

/** Reset the low-water mark after this many batches, as a safeguard. */
const FLOOR_BATCHES = 10_000

/**
 * The id up to which no further event can appear. While an old snapshot is open, such as that of a backup, PostgreSQL
 * keeps the index entries of all rows that were deleted since; a batch that began at the lowest id would read them all.
 *
 * An event with a lower id than one in a batch belongs to a transaction that had its own id when the batch began,
 * because ids are given in order and a transaction gets its id before its events get theirs. The transaction of the
 * next batch has a higher id than all these transactions. (The end of the first batch's snapshot is no such bound: it
 * does not cover a transaction that runs but is younger than all that have ended.) Once all of them have ended and
 * another batch has taken the events that they left, no event can appear below.
 */
export class Floor {
  id = 0
  /** `end`: id of the next batch's transaction. */
  #mark: { id: number; end: number | null } | null = null
  #batches = 0

  after({ lastId, xmin, xid }: Pick<Batch, 'lastId' | 'xmin' | 'xid'>): void {
    if (lastId === null) return
    if (this.#mark !== null) {
      this.#mark.end ??= xid
      if (xmin >= this.#mark.end) {
        // A batch takes everything up to its last event, and perhaps nothing above it.
        this.id = Math.min(this.#mark.id, lastId)
        this.#mark = null
      }
    }
    if (++this.#batches % FLOOR_BATCHES === 0) this.id = 0
    this.#mark ??= { id: Math.max(lastId, this.id), end: null }
  }
}
