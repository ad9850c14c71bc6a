/**
 * Callers that wait for the end of a try of a step. This process tells them if it performs the step itself. If another
 * node of a cluster does, or if the step is deleted, the row of the step says so.
 */
import type { Context } from '../context.ts'
import { findProgress, type StepProgress, type StepRow } from './step-store.ts'

type StepName = Pick<StepRow, 'kind' | 'key'>

/** How a try has ended. */
interface TryEnd extends Pick<StepRow, 'id'> {
  isDone: boolean
}

interface Watch {
  readonly step: StepName
  /** Whether the try succeeded; false if it did not end in time. */
  readonly end: Promise<boolean>
  tell(isDone: boolean): void
  /** Whether the step was there when the caller began to wait. */
  wasThere: boolean
  /** How far the step had come by then; null while that is not known. */
  before: StepProgress | null
  /** The last try that ended before `before` was known. */
  ended: TryEnd | null
}

export class StepWatches {
  /** By kind and key. */
  readonly #watches = new Map<string, Set<Watch>>()

  constructor(readonly ctx: Pick<Context, 'db' | 'log'>) {}

  begin(step: StepName, timeoutMillis: number, wasThere: boolean): Watch {
    const name = nameOf(step)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), timeoutMillis)
    const beside = this.#watches.get(name) ?? new Set()
    const end = promise.finally(() => {
      clearTimeout(timer)
      beside.delete(watch)
      if (beside.size === 0 && this.#watches.get(name) === beside) this.#watches.delete(name)
    })
    const watch: Watch = { step, end, tell: resolve, wasThere, before: null, ended: null }
    this.#watches.set(name, beside.add(watch))
    return watch
  }

  /**
   * Tells the watch how far the step had come when the caller began to wait. If there was no such step, and no try of
   * it has ended here, the caller is told `isGone`.
   */
  know(watch: Watch, before: StepProgress | null, isGone: boolean): void {
    const { ended } = watch
    watch.before = before
    watch.wasThere = before !== null
    if (before === null) watch.tell(ended?.isDone ?? isGone)
    else if (ended !== null && concerns(ended, before)) watch.tell(ended.isDone)
  }

  /** A try of the step has ended in this process. */
  tell({ id, ...step }: StepName & Pick<StepRow, 'id'>, isDone: boolean): void {
    for (const watch of this.#watches.get(nameOf(step)) ?? []) {
      const ended = { id, isDone }
      if (watch.before === null) watch.ended = ended
      else if (concerns(ended, watch.before)) watch.tell(isDone)
    }
  }

  /** A try of some step has ended at another node, or some steps have been deleted. */
  async ask(): Promise<void> {
    for (const watch of this.#all()) {
      const { step, wasThere } = watch
      if (!wasThere) continue
      try {
        const now = await findProgress(this.ctx.db, step)
        if (now === null) watch.tell(true)
        else if (watch.before !== null && hasFailed(watch.before, now)) watch.tell(false)
      } catch (error) {
        this.ctx.log.warn('could not read the state of a step', { stepKind: step.kind, error })
      }
    }
  }

  /** The runner has stopped. */
  end(): void {
    for (const watch of this.#all()) watch.tell(false)
  }

  #all(): Watch[] {
    return [...this.#watches.values()].flatMap((beside) => [...beside])
  }
}

const nameOf = ({ kind, key }: StepName) => `${kind} ${key}`

/**
 * Whether the try belongs to the step that was there before, or to a later one with the same key. A try of an earlier
 * step, which this one has replaced, may still be under way. Ids sort by the time at which steps were added.
 */
const concerns = ({ id }: TryEnd, before: StepProgress): boolean => id >= before.id

/** Whether a try has ended since, without success. */
const hasFailed = (before: StepProgress, now: StepProgress): boolean =>
  now.takenUntil === null &&
  (before.takenUntil !== null ||
    before.tries !== now.tries ||
    before.triedAt !== now.triedAt ||
    before.lastError !== now.lastError)
