/** What may be asked of the sweeps, and what they tell. `sweeps.ts` runs them. */
import type { Millis } from '../../protocol/identifiers.ts'

export type SweepReport = Record<string, number>

export interface SweepState {
  completedAt: Millis
  report: SweepReport
}

export interface Sweeps {
  readonly sweeps: readonly { readonly name: string; readonly destructive?: boolean }[]
  /** The last pass of each sweep that was completed, by its name. */
  readonly last: ReadonlyMap<string, SweepState>
  start(): void
  /** One pass now; a pass that is under way already is joined. */
  run(name: string): Promise<SweepReport>
  stop(): Promise<void>
}
