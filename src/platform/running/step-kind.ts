/** What kinds of steps are, and what may be asked of whoever does them. `steps.ts` does. */
import type { Did } from '../../protocol/identifiers.ts'
import type { Tx } from '../database/database.ts'
import type { StepSummary } from './step-store.ts'

export interface Step<Payload> {
  /** The same in every try, and another one for a step that is added again. */
  id: string
  key: string
  did: Did | null
  payload: Payload
  /** Have it done with what `tx` does, once and no more. False when it was dropped or replaced; then it must do nothing. */
  end(tx: Tx): Promise<boolean>
}

/** `Ctx` is what `take` is given to work with. */
export interface StepKindOf<Ctx, Payload> {
  /** Kebab-case; unique. Stands in rows, commands and metrics. */
  name: string
  /** Steps that are done side by side. */
  concurrency: number
  /** Of more than these the oldest are dropped. */
  maxSteps: number
  /** Null: it is never given up. */
  maxTries: number | null
  /** Waits before the second try, and at the most. They double in between. */
  firstWaitSecs: number
  maxWaitSecs: number
  /** Where two of one key ask for the same, the earlier one stays. Otherwise the later one takes its place. */
  keepsEarlier?: boolean
  /** Whether no other try could end in another way. */
  isFinal?(error: unknown): boolean
  /** Do it. It is done when the promise resolves, also when there was nothing left to do. */
  take(ctx: Ctx, step: Step<Payload>): Promise<void>
}

export interface AddedStep<Payload> {
  /** What it is about, within its kind. */
  key: string
  /** The account whose end is its end. */
  did?: Did | null
  payload: Payload
  /** Before the first try. */
  waitSecs?: number
}

/** What `add` and `nextTry` need to know of a kind. */
type Kind<Payload> = StepKindOf<never, Payload>

export interface Steps {
  /** Write down, in the caller's transaction, that something is to be done. */
  add<Payload>(tx: Tx, kind: Kind<Payload>, step: AddedStep<Payload>): Promise<void>
  /**
   * Whether the next try of a step does it, for whoever wants to tell a person. False when it fails, and when it takes
   * longer; it is tried again all the same. To be called as soon as the transaction that added it is over.
   */
  nextTry<Payload>(kind: Kind<Payload>, key: string, timeoutMillis: number): Promise<boolean>
  /** Of all kinds, also those that there are no steps of. */
  summaries(): Promise<StepSummary[]>
  /** Begin to work: whoever was at a step of this database is no more, for no other process has it. */
  start(): Promise<void>
  /** There may be something to do. Waits for nothing. */
  wake(): void
  /** Do what is due now, and wait for it; for tests. */
  workOff(): Promise<void>
  /** Waits a moment for what is being done. */
  stop(): Promise<void>
}
