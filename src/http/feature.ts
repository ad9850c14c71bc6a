/** How a feature plugs in: one value that lists everything it contributes. `features.ts` lists the features. */
import type { Endpoint } from './endpoint.ts'
import type { CapabilityName } from '../platform/configuration/capabilities.ts'
import type { Context } from '../platform/context.ts'
import type { Sweep } from '../platform/running/sweeps.ts'
import type { StepKind } from '../platform/running/steps.ts'

export interface Feature {
  name: string
  routes?: readonly Endpoint[]
  /** Capabilities that this feature implements. Each is offered if the configuration asks for it. */
  capabilities?: readonly CapabilityName[]
  sweeps?: readonly Sweep[]
  /** Kinds of durable steps: effects outside the database that a transaction starts. */
  steps?: readonly StepKind<unknown>[]
  /** Returns whether to mount the feature; mounted if omitted. Capabilities gate single routes, this gates them all. */
  enabled?(ctx: Context): boolean
  /** Runs before the port opens: load keys, repair, restore. Returns a function that undoes it after the port was closed, if necessary. */
  prepare?(ctx: Context): Promise<(() => void | Promise<void>) | void>
  /** On a cluster, runs every few seconds: takes over or deletes what nodes left behind that are gone. */
  reclaim?(ctx: Context): Promise<void>
  /** Runs once the port is open. Returns a function that stops what it started, if anything. */
  start?(ctx: Context): (() => void | Promise<void>) | void
}
