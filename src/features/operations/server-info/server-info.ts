/**
 * Public information about the service: com.atproto.server.describeServer, health, metrics, landing page, robots.txt.
 */
import { query, route, type Exchange } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import { SOFTWARE, VERSION } from '../../../base/version.ts'
import { CONTENT_TYPE } from '../../../platform/running/metrics.ts'
import type { Context } from '../../../platform/context.ts'
import { freeBytesOf } from '../../../platform/files/free-space.ts'
import { continuousState } from '../backup/backup.ts'
import { operator } from '../operators/operators.ts'
import { healthFault } from './health.ts'
import { landingPage } from './landing-page.ts'

export { healthFault } from './health.ts'

/** `Retry-After` of a server that should receive no requests now. */
const RETRY_SECS = 5

/**
 * Throws NotFound if metrics are disabled. By default, only clients on the loopback or a private network need no
 * credentials.
 */
async function mayReadMetrics(exchange: Exchange): Promise<void> {
  const { metricsEnabled, metricsRequireAdmin } = exchange.ctx.config.telemetry
  if (!metricsEnabled) throw notFound()
  if (metricsRequireAdmin ?? !exchange.isNear) await operator().check(exchange)
}

/**
 * Metrics of a process and its machine for dashboards. Those of the process have the names that all Prometheus clients
 * use.
 */
function declareProcess(ctx: Context): void {
  const { config, clock, metrics } = ctx
  metrics.gauge('process_start_time_seconds', 'Start time of the process, in Unix seconds', () =>
    Math.floor((clock.now() - (clock.monotonic() - ctx.startedAt)) / 1000),
  )
  metrics.gauge('process_resident_memory_bytes', 'Resident memory size in bytes', () => process.memoryUsage.rss())
  metrics.gauge('service_healthy', 'Whether the service can read and write, as /xrpc/_health tells', async () =>
    (await healthFault(ctx)) === null ? 1 : 0,
  )
  metrics.gauge('disk_free_bytes', 'Free space at the data directory', () =>
    freeBytesOf(config.dataDir).catch(() => null),
  )
}

export const serverInfo: Feature = {
  name: 'server-info',
  async prepare(ctx) {
    declareProcess(ctx)
  },
  routes: [
    query('com.atproto.server.describeServer', {
      handler({ ctx: { config, capabilities } }) {
        const { links, contact } = config
        // Wallets read the extension from `custos` only.
        const extension = { version: VERSION, capabilities: [...capabilities] }
        return {
          did: config.serverDid,
          availableUserDomains: config.availableUserDomains.map((domain) => `.${domain}`),
          inviteCodeRequired: config.inviteCodeRequired,
          phoneVerificationRequired: false,
          blobUploadLimit: config.blobs.maxBlobSize,
          links: { privacyPolicy: links.privacyPolicy ?? undefined, termsOfService: links.termsOfService ?? undefined },
          contact: { email: contact.email ?? undefined },
          extension,
          custos: extension,
        }
      },
    }),
    route('GET', '/xrpc/_health', {
      unlimited: true,
      async handler({ ctx }) {
        const reason = await healthFault(ctx)
        if (reason === null) return { version: SOFTWARE, db: 'ok' }
        return Response.json({ version: SOFTWARE, db: 'error', error: 'Service Unavailable', reason }, { status: 503 })
      },
    }),
    // For supervisors and load balancers: whether the process responds at all, and whether it should receive requests.
    route('GET', '/livez', { unlimited: true, handler: () => ({ status: 'ok' }) }),
    route('GET', '/readyz', {
      unlimited: true,
      async handler({ ctx }) {
        const reason = ctx.signals.isDraining ? 'the server is about to stop' : await healthFault(ctx)
        const backup = continuousState(ctx)
        const parts =
          backup === null ? {} : { role: 'serving', continuousBackup: { ...backup, fault: backup.fault !== null } }
        if (reason === null) return { status: 'ok', ...parts }
        return Response.json(
          { status: 'unavailable', reason, ...parts },
          { status: 503, headers: { 'Retry-After': String(RETRY_SECS) } },
        )
      },
    }),
    route('GET', '/metrics', {
      unlimited: true,
      auth: { personal: true, takes: ['operator'], check: mayReadMetrics },
      handler: async ({ ctx }) =>
        new Response(await ctx.metrics.render(), { headers: { 'Content-Type': CONTENT_TYPE } }),
    }),
    route('GET', '/', { handler: landingPage }),
    route('GET', '/robots.txt', {
      handler: () =>
        new Response('# Crawling the public parts of the service is welcome.\nUser-agent: *\nAllow: /\n', {
          headers: { 'Content-Type': 'text/plain; charset=utf-8' },
        }),
    }),
  ],
}
