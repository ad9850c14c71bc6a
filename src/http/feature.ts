/** How a feature plugs in: a value that names what it brings. `features.ts` lists them. */
import type { Endpoint } from './endpoint.ts'
import type { CapabilityName } from '../platform/configuration/capabilities.ts'
import type { Context } from '../platform/context.ts'
import type { Sweep } from '../platform/running/sweeps.ts'
import type { StepKind } from '../platform/running/steps.ts'

export interface Feature {
  name: string
  routes?: readonly Endpoint[]
  /** Those that are built; each is offered when the configuration asks for it. */
  capabilities?: readonly CapabilityName[]
  sweeps?: readonly Sweep[]
  /** Kinds of what transactions start and the world must finish. */
  steps?: readonly StepKind<unknown>[]
  /** Mounted when true; left out otherwise. Capabilities gate single routes, this gates the whole. */
  enabled?(ctx: Context): boolean
  /** Before the port opens: load keys, repair, restore. */
  prepare?(ctx: Context): Promise<void>
  /** After the port is open. Returns what ends it. */
  start?(ctx: Context): (() => void | Promise<void>) | void
}
