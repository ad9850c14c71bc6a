/** The interface of durable steps: kinds, single steps, and their runner. `steps.ts` implements it. */
import type { Did } from '../../protocol/identifiers.ts'
import type { Tx } from '../database/database.ts'
import type { StepSummary } from './step-store.ts'

export interface Step<Payload> {
  /** The same in every try. A step that is added again gets a new id. */
  id: string
  key: string
  did: Did | null
  /** As it was added. */
  share: string
  payload: Payload
  /**
   * Delete the step in `tx`, so that the writes of `tx` happen exactly once. Returns false if the step was dropped or
   * replaced meanwhile; `tx` must then write nothing.
   */
  end(tx: Tx): Promise<boolean>
}

/** Thrown by `take` if the step cannot be performed yet. This is not a failed try: it is neither counted nor logged. */
export class StepPostponed extends Error {
  constructor(
    reason: string,
    readonly waitMillis: number,
  ) {
    super(reason)
  }
}

/** `Ctx` is the context that `take` receives. */
export interface StepKindOf<Ctx, Payload> {
  /** Kebab-case; unique. Used in rows, commands and metrics. */
  name: string
  /** Steps of this kind that may run at the same time. */
  concurrency: number
  /** Timeout of one try, well below the lease of five minutes. Two minutes if omitted. */
  maxTryMillis?: number
  /** If there are more steps than this, the oldest are dropped; in order, the oldest of the share that has most. */
  maxSteps: number
  /** Null means no limit. */
  maxTries: number | null
  /** Wait before the second try. It doubles with every further try, up to `maxWaitSecs`. */
  firstWaitSecs: number
  maxWaitSecs: number
  /** If a step with the same key exists, keep it and drop the new one. By default the new step replaces it. */
  keepsEarlier?: boolean
  /**
   * Perform the steps one after another: while the first of them cannot be performed, the others wait. Shares take
   * turns, and the steps of each are performed in the order in which they were added. A step with `waitSecs` goes
   * behind all others. `concurrency` must be 1.
   */
  inOrder?: boolean
  /**
   * Returns whether this process can perform such steps at the moment; other nodes of a cluster may be able to. By
   * default, it always can. Call `wake` when it becomes true.
   */
  isReady?(ctx: Ctx): boolean
  /** Returns whether the error is permanent, so that there are no further tries. */
  isFinal?(error: unknown): boolean
  /**
   * Perform the step. It is done when the promise resolves, even if nothing was left to do. A rejection schedules a
   * retry.
   */
  take(ctx: Ctx, step: Step<Payload>): Promise<void>
}

export interface AddedStep<Payload> {
  /** The subject of the step; one step of a kind exists per key. */
  key: string
  /** The account of the step: deleting the account deletes the step. */
  did?: Did | null
  /** Whose step it is, for kinds that are `inOrder`. Steps without a share form one together. */
  share?: string
  payload: Payload
  /** Delay before the first try; 0 when omitted. */
  waitSecs?: number
}

/** A kind as `add` and `nextTry` take it, whatever context its steps need. */
type Kind<Payload> = StepKindOf<never, Payload>

export interface Steps {
  /** Store a step in the caller's transaction. */
  add<Payload>(tx: Tx, kind: Kind<Payload>, step: AddedStep<Payload>): Promise<void>
  /** The same for several steps, whose keys must differ. */
  addAll<Payload>(tx: Tx, kind: Kind<Payload>, steps: readonly AddedStep<Payload>[]): Promise<void>
  /**
   * Returns whether the next try of a step succeeds, for callers that show the result to a person. Returns false if the
   * try fails or does not end within `timeoutMillis`; the step is retried all the same. Returns true if the step is
   * deleted with its account. Call it as soon as the transaction that added the step has committed.
   */
  nextTry<Payload>(kind: Kind<Payload>, key: string, timeoutMillis: number): Promise<boolean>
  /**
   * Perform a waiting step now instead of at its next time, and wait until the try ends. Returns as `nextTry` does, and
   * false if there is no such step. `kind` is the name of a kind, so that a feature can hasten a step of another one
   * that depends on it.
   */
  hasten(kind: string, key: string, timeoutMillis: number): Promise<boolean>
  /** Delete the steps of an account. Callers that wait for one of them are told at once that it is done. */
  deleteOf(tx: Tx, did: Did): Promise<void>
  /** Returns a summary of every kind, including kinds without steps. */
  summaries(): Promise<StepSummary[]>
  /** Start to perform steps. First releases those that were taken by dead processes. */
  start(): Promise<void>
  /** On a cluster: take over the steps of dead nodes. */
  reclaim(): Promise<void>
  /** Signal that a step may be due. Does not wait. */
  wake(): void
  /** Perform the steps that are due now, and wait for them. For tests. */
  workOff(): Promise<void>
  /** Stop, and wait a bounded time for the steps in progress. */
  stop(): Promise<void>
}
