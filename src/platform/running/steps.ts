/**
 * Durable steps: work that a transaction starts and that involves the outside world, such as mail. A feature declares
 * kinds of steps, as it declares sweeps. `add` stores a step in the caller's transaction, and the runner performs it
 * soon after the commit.
 *
 * - A step is performed at least once. The runner takes it and counts the try, performs it, and only then deletes it.
 *   If the process is killed in between, the next process performs it again. The `id` serves as idempotency key.
 * - A step that fails is retried with exponential backoff. After its last try it is kept for the operator to see.
 * - Each kind has one step per key and a bounded total, of which the newest are kept. So an outage of a week does not
 *   pile up rows.
 * - Only one process at a time performs a step: taking it increments its number of tries, unless that number has
 *   changed since it was read.
 * - Kinds that are `inOrder` are a queue, in which shares take turns. Only its first step is read, so its length costs
 *   nothing.
 * - The runner does not poll: one timer waits for the next step.
 * - On a cluster, any node may perform a step. The node that added it gets a head start. Other nodes then take it, and
 *   reclaim steps from dead nodes.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'
import { inTime, LATE } from '../../base/in-time.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { Context } from '../context.ts'
import { inPieces, type Tx } from '../database/database.ts'
import { holderOf } from '../database/row-holders.ts'
import { BatchLoop } from './batch-loop.ts'
import { inRequest, outsideRequests } from './request-scope.ts'
import { StepWatches } from './step-watches.ts'
import { StepPostponed, type AddedStep, type Step, type StepKindOf, type Steps } from './step-kind.ts'
import {
  deleteStep,
  deleteStepsOf,
  findProgress,
  hastenStep,
  insertSteps,
  listDueSteps,
  listWaitingKinds,
  nextStepAt,
  nextTurn,
  putSteps,
  releaseSteps,
  returnStep,
  summariseSteps,
  takeStep,
  trimShares,
  trimSteps,
  type StepReturn,
  type StepRow,
  type StepSummary,
} from './step-store.ts'

export { StepPostponed, type Step } from './step-kind.ts'
export { hasStepFailed, hastenSteps, isStepWaiting, withdrawStep } from './step-store.ts'

/** Timeout of one try, well below `LEASE_MILLIS`. */
const MAX_TRY_MILLIS = 2 * MINUTE_MILLIS
/** How long `stop` waits for steps in progress. The next start repeats those that have not ended by then. */
const STOP_MILLIS = 5000
/** Longest delay of the timer while steps wait, so that setting the clock delays them no longer than this. */
const MAX_LOOK_MILLIS = MINUTE_MILLIS
/** Shortest delay of the timer. */
const MIN_LOOK_MILLIS = 1000
/** Delay after a failed look-up of due steps: the database may be back soon, and due steps are waiting for it. */
const FAILED_LOOK_MILLIS = 10_000
/** On a cluster, the longest delay even while no steps wait, because a notification may be lost. */
const CLUSTER_LOOK_MILLIS = 30_000
/** Channels of the cluster: a node has added or hastened steps; a try has ended, or steps were deleted. */
const DUE = 'steps due'
const ENDED = 'step tries ended'
const MAX_ERROR_CHARS = 500

export type StepKind<Payload> = StepKindOf<Context, Payload>

export class StepRunner implements Steps {
  #isStarted = false
  #isStopped = false
  #timer: Timer | null = null
  readonly #looks = new BatchLoop(() => this.#lookOnce())
  /** Tries in progress, by step id. */
  readonly #running = new Map<string, { kind: string; end: Promise<void> }>()
  readonly #watches: StepWatches
  /** Delays the look for steps that other nodes have added. */
  #laterTimer: Timer | null = null
  #ends: (() => void)[] = []

  constructor(
    readonly ctx: Context,
    readonly kinds: readonly StepKind<unknown>[],
  ) {
    this.#watches = new StepWatches(ctx)
    const gauge = (name: string, help: string, value: (summary: StepSummary) => number | null) =>
      ctx.metrics.gauges(name, help, 'kind', async () =>
        (await this.summaries()).flatMap((summary): [string, number][] => {
          const count = value(summary)
          return count === null ? [] : [[summary.kind, count]]
        }),
      )
    gauge('steps_waiting', 'Pending durable steps', ({ waiting }) => waiting)
    gauge(
      'steps_failed',
      'Durable steps that failed permanently, for an operator to retry or drop',
      ({ failed }) => failed,
    )
    gauge('steps_oldest_age_seconds', 'Age of the oldest pending durable step', ({ oldestAt }) =>
      oldestAt === null ? null : Math.max(0, Math.floor((ctx.clock.now() - oldestAt) / 1000)),
    )
  }

  add<Payload>(tx: Tx, kind: StepKindOf<never, Payload>, step: AddedStep<Payload>): Promise<void> {
    return this.addAll(tx, kind, [step])
  }

  async addAll<Payload>(tx: Tx, kind: StepKindOf<never, Payload>, added: readonly AddedStep<Payload>[]): Promise<void> {
    const { clock, vault } = this.ctx
    const createdAt = clock.now()
    const turns = kind.inOrder ? await turnsOf(tx, kind.name, added) : null
    const steps = added.map(({ key, did = null, share = '', payload, waitSecs = 0 }, i) => ({
      id: Bun.randomUUIDv7(),
      kind: kind.name,
      key,
      did,
      share,
      turn: turns?.[i] ?? 0,
      payload: vault.wrap(Buffer.from(JSON.stringify(payload))),
      createdAt,
      dueAt: createdAt + waitSecs * 1000,
    }))
    for (const piece of inPieces(steps)) await (kind.keepsEarlier ? insertSteps : putSteps)(tx, piece)
    await (kind.inOrder ? trimShares : trimSteps)(tx, kind.name, kind.maxSteps)
    tx.afterCommit(() => this.wake())
    this.ctx.db.cluster?.notify(tx, DUE)
  }

  async deleteOf(tx: Tx, did: Did): Promise<void> {
    if ((await deleteStepsOf(tx, did)) === 0) return
    tx.afterCommit(() => void this.#watches.ask())
    this.ctx.db.cluster?.notify(tx, ENDED)
  }

  async start(): Promise<void> {
    const { db } = this.ctx
    await releaseSteps(db)
    this.#isStarted = true
    if (db.cluster !== null)
      this.#ends = [
        db.cluster.listen(DUE, () => this.#wakeLater()),
        db.cluster.listen(ENDED, () => void this.#watches.ask()),
      ]
    this.wake()
  }

  async reclaim(): Promise<void> {
    if ((await releaseSteps(this.ctx.db)) > 0) this.wake()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const end of this.#ends) end()
    for (const timer of [this.#timer, this.#laterTimer]) if (timer !== null) clearTimeout(timer)
    this.#watches.end()
    await inTime(this.#quiet(), STOP_MILLIS)
  }

  wake(): void {
    if (!this.#isStarted || this.#isStopped) return
    this.#looks.wake()
  }

  async workOff(): Promise<void> {
    this.wake()
    await this.#quiet()
  }

  async #quiet(): Promise<void> {
    while (this.#looks.isRunning || this.#running.size > 0)
      await Promise.allSettled([this.#looks.idle(), ...Array.from(this.#running.values(), ({ end }) => end)])
  }

  async nextTry<Payload>({ name }: StepKindOf<never, Payload>, key: string, timeoutMillis: number): Promise<boolean> {
    const step = { kind: name, key }
    const watch = this.#watches.begin(step, timeoutMillis, true)
    // If the step no longer exists, another node has been that quick, or the account of the step has been deleted.
    this.#watches.know(watch, await findProgress(this.ctx.db, step), true)
    return watch.end
  }

  async hasten(kind: string, key: string, timeoutMillis: number): Promise<boolean> {
    const step = { kind, key }
    // Watched first: a try that is under way may end before the transaction does.
    const watch = this.#watches.begin(step, timeoutMillis, false)
    const { clock, db } = this.ctx
    const before = await db.transaction((tx) => {
      db.cluster?.notify(tx, DUE)
      return hastenStep(tx, step, clock.now())
    })
    this.#watches.know(watch, before, false)
    if (before !== null) this.wake()
    return watch.end
  }

  async summaries(): Promise<StepSummary[]> {
    const found = await summariseSteps(this.ctx.db)
    const missing = this.kinds.filter(({ name }) => !found.some(({ kind }) => kind === name))
    return [
      ...found,
      ...missing.map(({ name }) => ({
        kind: name,
        waiting: 0,
        failed: 0,
        oldestAt: null,
        nextAt: null,
        lastError: null,
      })),
    ]
  }

  async #lookOnce(): Promise<boolean> {
    if (this.#isStopped) return false
    try {
      this.#lookAgainIn(await this.#look())
    } catch (error) {
      if (!this.#isStopped) this.ctx.log.error('could not read the due steps', { error })
      this.#lookAgainIn(FAILED_LOOK_MILLIS)
    }
    return false
  }

  #lookAgainIn(millis: number | null): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const longest = this.ctx.db.cluster === null ? MAX_LOOK_MILLIS : CLUSTER_LOOK_MILLIS
    const wait = millis ?? (this.ctx.db.cluster === null ? null : longest)
    if (wait === null || this.#isStopped) return
    this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(wait, MIN_LOOK_MILLIS), longest))
    this.#timer.unref()
  }

  /** Leaves new steps to the node that added them for a moment, and then looks for those that it has not taken. */
  #wakeLater(): void {
    if (this.#isStopped || this.#laterTimer !== null) return
    this.#laterTimer = outsideRequests(() =>
      setTimeout(() => {
        this.#laterTimer = null
        this.wake()
      }, MIN_LOOK_MILLIS),
    )
    this.#laterTimer.unref()
  }

  /**
   * Starts the steps that are due. Returns the milliseconds until the next step is due, or null if no other step waits.
   */
  async #look(): Promise<number | null> {
    const { db, clock } = this.ctx
    let nextAt = Infinity
    const waiting = await listWaitingKinds(db, this.kinds)
    for (const kind of this.kinds) {
      if (!waiting.has(kind.name) || kind.isReady?.(this.ctx) === false) continue
      const free = kind.concurrency - Array.from(this.#running.values()).filter((one) => one.kind === kind.name).length
      // The end of each running step triggers another look.
      if (free <= 0) continue
      const due = await listDueSteps(db, kind, clock.now(), free)
      if (due.length > 0) for (const row of await this.#taken(due)) this.#begin(kind, row)
      nextAt = Math.min(nextAt, (await nextStepAt(db, kind)) ?? Infinity)
    }
    return nextAt === Infinity ? null : nextAt - clock.now()
  }

  #taken(due: readonly StepRow[]): Promise<StepRow[]> {
    const { db, clock } = this.ctx
    const now = clock.now()
    return db.transactionOn([], async (tx) => {
      const taken: StepRow[] = []
      for (const row of due)
        if (!this.#running.has(row.id) && (await takeStep(tx, row, now, holderOf(db))) > 0)
          taken.push({ ...row, tries: row.tries + 1 })
      return taken
    })
  }

  #begin(kind: StepKind<unknown>, row: StepRow): void {
    const end = this.#try(kind, row).finally(() => {
      this.#running.delete(row.id)
      this.wake()
    })
    this.#running.set(row.id, { kind: kind.name, end })
  }

  async #try(kind: StepKind<unknown>, row: StepRow): Promise<void> {
    const { db, log } = this.ctx
    let isDone = false
    try {
      const failure = await this.#failureOf(kind, row)
      isDone = failure === null
      if (failure === null) await deleteStep(db, row.id)
      else await returnStep(db, row, failure)
    } catch (error) {
      // The step remains taken until its lease ends, and is then performed again.
      if (!this.#isStopped)
        log.error('could not store the outcome of a step', { stepKind: kind.name, step: row.id, error })
    }
    this.#watches.tell(row, isDone)
    db.cluster?.notify({ afterCommit: (act) => act() }, ENDED)
  }

  /** Perform the step. Returns null if it succeeded, else its error and when to retry; a null `dueAt` means never. */
  async #failureOf(kind: StepKind<unknown>, row: StepRow): Promise<StepReturn | null> {
    const { clock, log } = this.ctx
    try {
      const work = inRequest(this.#origin(kind), () => kind.take(this.ctx, this.#opened(row)))
      const { maxTryMillis = MAX_TRY_MILLIS } = kind
      if ((await inTime(work, maxTryMillis, { ref: false })) === LATE)
        throw new Error(`timed out after ${maxTryMillis / 1000} seconds`)
      return null
    } catch (error) {
      if (error instanceof StepPostponed)
        return { dueAt: clock.now() + Math.ceil(error.waitMillis), lastError: error.message, tries: row.tries - 1 }
      const isLast = (kind.maxTries !== null && row.tries >= kind.maxTries) || kind.isFinal?.(error) === true
      const level = isLast ? 'error' : 'warn'
      log[level](isLast ? 'step failed permanently' : 'step failed', {
        stepKind: kind.name,
        step: row.id,
        tries: row.tries,
        error,
      })
      const lastError = (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_CHARS)
      return {
        dueAt: isLast ? null : clock.now() + waitMillis(kind, row.tries, Math.random()),
        lastError,
        tries: row.tries,
      }
    }
  }

  #origin({ name }: StepKind<unknown>) {
    return { resumed: () => this.ctx.loop.enter(`step ${name}`) }
  }

  #opened({ id, key, did, share, payload }: StepRow): Step<unknown> {
    return {
      id,
      key,
      did,
      share,
      payload: JSON.parse(Buffer.from(this.ctx.vault.unwrap(payload)).toString()) as unknown,
      end: async (tx) => (await deleteStep(tx, id)) > 0,
    }
  }
}

/** Returns the turns of steps that are added together to a queue. */
async function turnsOf(tx: Tx, kind: string, added: readonly AddedStep<unknown>[]): Promise<number[]> {
  const next = new Map<string, number>()
  const turns: number[] = []
  for (const { key, share = '', waitSecs = 0 } of added) {
    const turn = next.get(share) ?? (await nextTurn(tx, kind, { key, share }, waitSecs > 0))
    turns.push(turn)
    next.set(share, turn + 1)
  }
  return turns
}

/**
 * Returns the wait after this many tries. It doubles each time up to a maximum; `random` (0 to 1) picks a point in its
 * upper half, which spreads simultaneous retries.
 */
export function waitMillis(
  { firstWaitSecs, maxWaitSecs }: Pick<StepKind<unknown>, 'firstWaitSecs' | 'maxWaitSecs'>,
  tries: number,
  random: number,
): Millis {
  const longest = Math.min(maxWaitSecs, firstWaitSecs * 2 ** (tries - 1))
  return Math.round(longest * 1000 * (0.5 + random / 2))
}
