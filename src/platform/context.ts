/** What functions are given to work with: one object, built in `app.ts`. There is no other way to reach a handle. */
import type { CapabilityName } from './capabilities.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Database } from './database.ts'
import type { PlcDirectory } from './directory-client.ts'
import type { Limits } from './limits.ts'
import type { Log } from './log.ts'
import type { Mailer } from './mailer.ts'
import type { Metrics } from './metrics.ts'
import type { Outbound } from './outbound.ts'
import type { Resolver } from './resolver.ts'
import type { Signal } from './signal.ts'
import type { SweepRunner } from './sweeps.ts'
import type { Tracing } from './tracing.ts'
import type { Vault } from './vault.ts'

export interface Context {
  readonly config: Config
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Null when traces are off. */
  readonly tracing: Tracing | null
  readonly db: Database
  readonly vault: Vault
  readonly mailer: Mailer
  readonly resolver: Resolver
  /** For requests whose target a stranger chose. */
  readonly outbound: Outbound
  /** For requests to services that the operator configured. */
  readonly upstream: Outbound
  readonly plc: PlcDirectory
  readonly limits: Limits
  readonly signals: Signals
  /** What this deployment offers, in the order in which it is told. */
  readonly capabilities: ReadonlySet<CapabilityName>
  readonly sweeps: SweepRunner
}

export interface Signals {
  /** The server is going down: long answers end now. */
  stopping: Signal
}

/**
 * State that belongs to one running server and to one feature: a cache, a key, an outbox. Made at first use.
 * The alternative, a module's variable, would be shared by every server of the process.
 */
export function perContext<T>(make: (ctx: Context) => T): (ctx: Context) => T {
  const made = new WeakMap<Context, { value: T }>()
  return (ctx) => {
    let held = made.get(ctx)
    if (!held) made.set(ctx, (held = { value: make(ctx) }))
    return held.value
  }
}
