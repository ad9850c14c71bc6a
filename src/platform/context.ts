/** The context that functions receive: one object, built in `app.ts`. There is no other way to reach a handle. */
import type { CapabilityName } from './configuration/capabilities.ts'
import type { Background } from './running/background.ts'
import type { Clock } from './running/clock.ts'
import type { Config } from './configuration/config.ts'
import type { ValueOrigins } from './configuration/config-loading.ts'
import type { Database } from './database/database.ts'
import type { PlcDirectory } from './network/directory-client.ts'
import type { Limits } from './running/limits.ts'
import type { Log } from './running/log.ts'
import type { Mailer } from './network/mailer.ts'
import type { LiveConfig } from './running/live-config.ts'
import type { LoopWatch } from './running/loop-watch.ts'
import type { Metrics } from './running/metrics.ts'
import type { Outbound } from './network/outbound.ts'
import type { Resolver } from './network/resolver.ts'
import type { Signal } from '../base/signal.ts'
import type { Sweeps } from './running/sweep-state.ts'
import type { Tracing } from './running/tracing.ts'
import type { Argon2Cost } from './secrets/argon2.ts'
import type { Vault } from './secrets/vault.ts'
import type { Steps } from './running/step-kind.ts'

export interface Context {
  /** The configuration in force: another object once an operator has replaced a value. */
  readonly config: Config
  readonly live: LiveConfig
  /** Where the values of the configuration come from; null if a program made it. */
  readonly origins: ValueOrigins | null
  /** When the server started, on the monotonic clock. */
  readonly startedAt: number
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Learns what runs, in order to name what holds up the event loop. */
  readonly loop: LoopWatch
  /** Null when traces are off. */
  readonly tracing: Tracing | null
  readonly db: Database
  readonly vault: Vault
  /** What hashes of new passwords cost. */
  readonly passwordCost: Argon2Cost
  /** Share of time that sweeps may occupy the event loop. */
  readonly busyShare: number
  readonly mailer: Mailer
  readonly resolver: Resolver
  /** For requests whose target a stranger chose. */
  readonly outbound: Outbound
  /** For requests to services that the operator configured. */
  readonly upstream: Outbound
  readonly plc: PlcDirectory
  readonly limits: Limits
  readonly background: Background
  readonly signals: Signals
  /** The capabilities that this deployment offers, in the order in which they are listed to clients. */
  readonly capabilities: ReadonlySet<CapabilityName>
  readonly sweeps: Sweeps
  readonly steps: Steps
}

export interface Signals {
  /** The server still serves, but load balancers are told to send new requests elsewhere. */
  isDraining: boolean
  /** The server is shutting down: long responses end now. */
  stopping: Signal
}

/**
 * Returns a function that makes a value on first use and keeps it for each context. For state that belongs to one
 * running server and one feature: a cache, a key, an outbox. A module variable would be shared by all servers of the
 * process. A promise that rejects, for example while the database is unavailable, is not kept.
 */
export function perContext<T>(make: (ctx: Context) => T): (ctx: Context) => T {
  const made = new WeakMap<Context, { value: T }>()
  return (ctx) => {
    const held = made.get(ctx)
    if (held) return held.value
    const value = make(ctx)
    made.set(ctx, { value })
    if (value instanceof Promise) value.catch(() => made.delete(ctx))
    return value
  }
}
