/**
 * Assemble a running server from a configuration. Tests, the command line and the compiled binary all use this module.
 */
import { availableParallelism } from 'node:os'
import { features } from './features.ts'
import { continueHistory } from './features/operations/backup/backup.ts'
import { sentEventsOf, type Sent } from './features/data/firehose/firehose.ts'
import { localPlcDirectory } from './features/operations/plc-directory/plc-directory.ts'
import { createDispatcher, type Dispatcher } from './http/dispatcher.ts'
import { endpointName, endpointRoute, type Endpoint } from './http/endpoint.ts'
import type { Feature } from './http/feature.ts'
import { registerDispatcher } from './http/inside.ts'
import { registerFeatures } from './http/hooks.ts'
import { listen, type Listener } from './http/listener.ts'
import { plainAddress } from './platform/configuration/own-url.ts'
import { offeredCapabilities, type Built, type CapabilityName } from './platform/configuration/capabilities.ts'
import { Background } from './platform/running/background.ts'
import type { Millis } from './protocol/identifiers.ts'
import { clusterClock, systemClock } from './platform/running/clock.ts'
import { ClockComparison } from './platform/network/clock-comparison.ts'
import type { Config } from './platform/configuration/config.ts'
import type { Context } from './platform/context.ts'
import { remotePlcDirectory } from './platform/network/directory-client.ts'
import { Limits } from './platform/running/limits.ts'
import { SharedLimits } from './platform/running/shared-limits.ts'
import { processLog } from './platform/running/log.ts'
import { createMailer } from './platform/network/mailer.ts'
import { openData } from './platform/files/data-directory.ts'
import { LiveConfig, SETTINGS_CHANNEL } from './platform/running/live-config.ts'
import { LoopWatch } from './platform/running/loop-watch.ts'
import { Metrics } from './platform/running/metrics.ts'
import { createOutbound } from './platform/network/outbound.ts'
import { systemResolver } from './platform/network/resolver.ts'
import { BUSY_SHARE } from './base/pace.ts'
import { perList } from './base/per-list.ts'
import { Signal } from './base/signal.ts'
import type { Cluster } from './platform/database/database.ts'
import { inDatabaseWords } from './platform/database/database-words.ts'
import { requireDatabase, sharesDatabase } from './platform/database/open-database.ts'
import { Reclaiming } from './platform/running/reclaiming.ts'
import { SweepRunner } from './platform/running/sweeps.ts'
import { startTracing } from './platform/running/tracing.ts'
import { standardPasswordCost } from './platform/secrets/argon2.ts'
import { openVault } from './platform/secrets/vault.ts'
import { StepRunner } from './platform/running/steps.ts'

/** Time that running requests have to finish after the server is told to stop. */
const STOP_GRACE_MILLIS = 30_000

/** Dependencies that a test may replace. */
export type Overrides = Partial<
  Pick<Context, 'clock' | 'log' | 'mailer' | 'resolver' | 'outbound' | 'plc' | 'passwordCost' | 'busyShare' | 'origins'>
> & {
  listen?: typeof listen
  strictTransactions?: boolean
  /** Share the database as with `sharesDatabase`, but keep blobs in folders. */
  sharesDatabase?: boolean
  stopGraceMillis?: number
  /** As in `PostgresOptions`. */
  databasePace?: number
  /** As in `PostgresOptions`. */
  machineNow?: () => Millis
  /** As in `openData`. */
  isLocked?: boolean
  isCopyTarget?: boolean
  /** How far a test has moved the clock, in milliseconds, for reader threads. */
  passed?: SharedArrayBuffer
  /** What this process had sent to subscribers before it restarted. */
  sent?: Sent | null
}

export interface App {
  /** The address at which the server listens, `http://<address>:<port>`. */
  url: string
  port: number
  ctx: Context
  /** As in `Database`: the server has to stop, and may restart if the reason permits. */
  ended: AbortSignal
  /** What to pass to the next start if the server restarts. */
  sent: Sent | null
  /** Announce the stop at `/readyz`, and keep serving for `node.drain_secs`. */
  drain(): Promise<void>
  stop(): Promise<void>
}

/** A clean-up action. They run in reverse order when the server stops, or when it fails to start. */
type Undo = () => void | Promise<void>

/** Run all of them even if some fail, because the process could not end otherwise. Throws the first error. */
async function unwind(undos: Undo[]): Promise<void> {
  let fault: { error: unknown } | null = null
  for (const undo of undos.splice(0).reverse())
    try {
      await undo()
    } catch (error) {
      fault ??= { error }
    }
  if (fault !== null) throw fault.error
}

/** Start a server and return it listening. If any part fails to start, the parts already started are stopped first. */
export async function startApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const undos: Undo[] = []
  let ended: AbortSignal | null = null
  try {
    const ctx = await openContext(config, overrides, undos)
    ended = ctx.db.ended
    await continueHistory(ctx, overrides.sent ?? null)
    const active = activeFeatures(ctx)
    for (const feature of active) {
      const undo = await feature.prepare?.(ctx)
      if (undo) undos.push(undo)
    }
    // Clean-up runs in reverse order, so steps stop after the listener: the last requests may still add steps.
    undos.push(() => ctx.steps.stop())
    await ctx.limits.meet()
    const dispatcher = createDispatcher(ctx, offeredEndpoints(ctx, active))
    registerDispatcher(ctx, dispatcher)
    const graceMillis = overrides.stopGraceMillis ?? STOP_GRACE_MILLIS
    const readers = readerCount(ctx)
    const listener = (overrides.listen ?? listen)(config, dispatcher, { reusePort: readers > 0 })
    undos.push(() => listener.stop(graceMillis))
    if (readers > 0) {
      const threads = await startReaders(ctx, dispatcher, listener, readers, overrides.passed ?? null)
      undos.push(() => threads.stop(graceMillis))
    }
    if (config.tls.mode !== 'off') {
      const { listenTls } = await import('./http/tls-listener.ts')
      const encrypted = await listenTls(ctx, dispatcher)
      undos.push(() => encrypted.stop(graceMillis))
    }
    for (const feature of active) {
      const end = feature.start?.(ctx)
      if (end) undos.push(end)
    }
    await ctx.steps.start()
    if (ctx.db.cluster !== null) {
      undos.push(startReclaiming(ctx, ctx.db.cluster, active))
      const reload = () => ctx.background.run('read settings', () => ctx.live.reload(ctx.db))
      undos.push(ctx.db.cluster.listen(SETTINGS_CHANNEL, reload))
    }
    ctx.sweeps.start()
    undos.push(() => ctx.sweeps.stop())
    const drain = () => {
      ctx.signals.isDraining = true
      return Bun.sleep(config.node.drainSecs * 1000)
    }
    const { url, port } = listener
    return { url, port, ctx, ended, sent: sentEventsOf(ctx), drain, stop: () => unwind(undos) }
  } catch (error) {
    await unwind(undos)
    throw ended?.aborted ? ended.reason : error
  }
}

/** More threads gain little: the main thread writes, and answers what these threads forward. */
const MAX_AUTO_READERS = 4

/** Returns how many reader threads the configuration asks for; 0 where threads cannot run, which is logged. */
function readerCount({ config, db, tracing, log }: Context): number {
  const wanted = config.server.readers ?? Math.min(MAX_AUTO_READERS, availableParallelism() - 1)
  if (wanted === 0) return 0
  const obstacle =
    db.threads === null
      ? 'the database is not SQLite'
      : process.platform !== 'linux'
        ? 'only Linux shares a port evenly'
        : tracing !== null
          ? 'every request is traced'
          : null
  if (obstacle === null) return wanted
  if (config.server.readers !== null) log.warn('server.readers has no effect', { reason: obstacle })
  return 0
}

/** Imported on demand, so that servers without reader threads do not load it. */
async function startReaders(
  ctx: Context,
  dispatcher: Dispatcher,
  { port }: Listener,
  count: number,
  passed: SharedArrayBuffer | null,
): Promise<{ stop(graceMillis: number): Promise<void> }> {
  const [{ ReaderThreads }, { readerEndpoints }] = await Promise.all([
    import('./http/reader-threads.ts'),
    import('./reader-endpoints.ts'),
  ])
  return ReaderThreads.start({
    ctx,
    dispatcher,
    count,
    hostname: plainAddress(ctx.config),
    port,
    databasePath: ctx.db.threads!.path,
    routes: readerEndpoints.map(endpointRoute),
    spawn: () => new Worker(new URL('./reader-worker.ts', import.meta.url).href, { smol: true }),
    passed,
  })
}

function startReclaiming(ctx: Context, cluster: Cluster, active: readonly Feature[]): Undo {
  const reclaims = active.map((feature) => async () => feature.reclaim?.(ctx))
  const reclaiming = new Reclaiming({ ...ctx, cluster }, [
    () => ctx.limits.meet(),
    () => ctx.steps.reclaim(),
    () => ctx.live.reload(ctx.db),
    ...reclaims,
  ])
  reclaiming.start()
  return () => reclaiming.stop()
}

/**
 * Run `work` with a context but without listening, as commands do. Closes everything afterwards. Throws if the database
 * does not exist, unless `mayBeNew`, or if its history is `broken`, unless `mayLackHistory`.
 */
export async function withContext<T>(
  config: Config,
  work: (ctx: Context) => Promise<T>,
  {
    mayLackHistory = false,
    mayBeNew = false,
    ...overrides
  }: Overrides & { mayLackHistory?: boolean; mayBeNew?: boolean } = {},
): Promise<T> {
  if (!mayBeNew) requireDatabase(config.databaseUrl)
  const undos: Undo[] = []
  try {
    const ctx = await openContext(config, overrides, undos, { mustExist: !mayBeNew })
    const broken = ctx.db.cluster?.history.broken
    if (broken && !mayLackHistory) throw broken
    return await work(ctx)
  } catch (error) {
    throw inDatabaseWords(error, config.databaseUrl)
  } finally {
    await unwind(undos)
  }
}

/** Open the parts of a context. Adds the actions that close them to `undos`, even if opening fails part way. */
async function openContext(
  config: Config,
  overrides: Overrides,
  undos: Undo[],
  { mustExist = false }: { mustExist?: boolean } = {},
): Promise<Context> {
  const machineClock = overrides.clock ?? systemClock
  const log = overrides.log ?? processLog(config)
  const { db, applied, close } = await openData(config, {
    log,
    now: machineClock.now(),
    strict: overrides.strictTransactions,
    shared: overrides.sharesDatabase ?? sharesDatabase(config),
    nodeName: config.node.name,
    pace: overrides.databasePace,
    machineNow: overrides.machineNow,
    isLocked: overrides.isLocked,
    isCopyTarget: overrides.isCopyTarget,
    mustExist,
  })
  undos.push(close)
  if (applied > 0) log.info('migrations applied', { migrations: applied })
  const clock = db.cluster === null ? machineClock : clusterClock(machineClock, db.cluster)

  const tracing = config.telemetry.enabled ? await startTracing(config, log) : null
  if (tracing !== null) undos.push(() => tracing.stop())
  const background = new Background(log)
  undos.push(() => background.end(overrides.stopGraceMillis ?? STOP_GRACE_MILLIS))
  const limits = new Limits(config, clock, db.cluster && new SharedLimits(db.cluster, clock))
  undos.push(() => limits.stop())
  const metrics = new Metrics(config.node.name)
  const loop = new LoopWatch({ clock, log, metrics })
  undos.push(() => loop.stop())
  const live = new LiveConfig(config)
  await live.reload(db)
  const ctx: Context = {
    get config() {
      return live.current
    },
    live,
    origins: overrides.origins ?? null,
    startedAt: clock.monotonic(),
    clock,
    log,
    metrics,
    loop,
    tracing,
    db,
    vault: await openVault(db, config),
    passwordCost: overrides.passwordCost ?? standardPasswordCost,
    busyShare: overrides.busyShare ?? BUSY_SHARE,
    ...openNetwork(config, overrides, { clock, log, db }),
    limits,
    background,
    signals: { isDraining: false, stopping: new Signal() },
    get capabilities() {
      return plugged.offered(live.current)
    },
    get steps() {
      return plugged.steps
    },
    get sweeps() {
      return plugged.sweeps
    },
  }
  const plugged = plugIn(ctx)
  return ctx
}

/** The clients with which the server reaches other services. */
function openNetwork(
  config: Config,
  overrides: Overrides,
  { clock, log, db }: Pick<Context, 'clock' | 'log' | 'db'>,
): Pick<Context, 'resolver' | 'outbound' | 'upstream' | 'plc' | 'mailer'> {
  const resolver = overrides.resolver ?? systemResolver()
  // Strangers can exhaust the lookup limits of `resolver`. The operator's own services therefore use a resolver with
  // separate limits.
  const upstream = createOutbound({
    resolver: overrides.resolver ?? systemResolver({ asksSystem: true }),
    reach: 'anywhere',
    comparison: new ClockComparison({ clock, log }),
  })
  const directory = () =>
    config.plcDirectoryUrl === null
      ? localPlcDirectory({ db, clock })
      : remotePlcDirectory(config.plcDirectoryUrl, upstream)
  return {
    resolver,
    upstream,
    outbound: overrides.outbound ?? createOutbound({ resolver, reach: config.development ? 'loopback' : 'public' }),
    plc: overrides.plc ?? directory(),
    mailer: overrides.mailer ?? createMailer(config, { upstream, log }),
  }
}

interface Plugged extends Pick<Context, 'steps' | 'sweeps'> {
  /** The capabilities offered under a configuration, parts of which operators change while the server runs. */
  offered(config: Config): ReadonlySet<CapabilityName>
}

/** What the enabled features add to the context. */
function plugIn(ctx: Context): Plugged {
  registerFeatures(ctx, features)
  const active = activeFeatures(ctx)
  const all = <Part>(partsOf: (feature: Feature) => readonly Part[] | undefined): Part[] =>
    active.flatMap((feature) => partsOf(feature) ?? [])
  const built = builtBy(active)
  const known = new WeakMap<Config, ReadonlySet<CapabilityName>>()
  return {
    offered(config) {
      const offered = known.get(config) ?? offeredCapabilities(config, built)
      known.set(config, offered)
      return offered
    },
    steps: new StepRunner(
      ctx,
      all(({ steps }) => steps),
    ),
    sweeps: new SweepRunner(
      ctx,
      all(({ sweeps }) => sweeps),
    ),
  }
}

const activeFeatures = (ctx: Context): Feature[] => features.filter((feature) => feature.enabled?.(ctx) ?? true)

const endpointsOf = perList((some: readonly Feature[]): readonly Endpoint[] =>
  some.flatMap((feature) => feature.routes ?? []),
)

/** Returns the capabilities and endpoints that features implement, whether or not the configuration enables them. */
export const builtBy = perList((some: readonly Feature[]): Built => ({
  capabilities: new Set(some.flatMap((feature) => feature.capabilities ?? [])),
  endpoints: new Set(endpointsOf(some).map(endpointName)),
}))

/** Returns the endpoints that need no capability, or one that this deployment offers. */
const offeredEndpoints = ({ capabilities }: Context, active: readonly Feature[]): Endpoint[] =>
  endpointsOf(active).filter((endpoint) => {
    const capability = 'spec' in endpoint ? endpoint.spec.capability : undefined
    return capability === undefined || capabilities.has(capability)
  })
