/** The interface of the sweeps and of their reports. `sweeps.ts` implements it. */
import type { Config } from '../configuration/config.ts'
import type { Millis } from '../../protocol/identifiers.ts'

export type SweepReport = Record<string, number>

export interface SweepState {
  completedAt: Millis
  report: SweepReport
}

/** Passes that have failed one after another. */
export interface SweepFailure {
  /** Time of the first of them. */
  since: Millis
  count: number
  /** Message of the last of them. */
  error: string
}

/** A pass that this node makes now. */
export interface PassUnderWay {
  name: string
  since: Millis
  /** Whether it takes longer than any pass of this sweep should. */
  isStuck: boolean
}

export interface Sweeps {
  readonly sweeps: readonly {
    readonly name: string
    readonly destructive?: boolean
    /** Returns what a pass lacks in this configuration, as the message of a refusal; null if nothing. */
    lacks?(config: Config): string | null
  }[]
  /** The last completed pass of each sweep, by name; on a cluster, of whichever node made it. */
  lastPasses(): Promise<ReadonlyMap<string, SweepState>>
  /** The sweeps whose last pass failed, by name; on a cluster, whichever node made it. */
  failures(): Promise<ReadonlyMap<string, SweepFailure>>
  /** The passes that this node makes now, in the order in which they began. */
  underWay(): readonly PassUnderWay[]
  start(): void
  /** Run one pass now, or join the one in progress, whichever node makes it. Throws if no sweep has this name. */
  run(name: string): Promise<SweepReport>
  stop(): Promise<void>
}
