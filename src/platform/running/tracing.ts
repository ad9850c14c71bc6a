/**
 * OTLP traces over gRPC: one span per request. The libraries are loaded only if traces are on. If the exporter cannot
 * reach its collector, it drops spans from a bounded queue and slows no request.
 */
import type { Config } from '../configuration/config.ts'
import type { Log } from './log.ts'
import { inTime } from '../../base/in-time.ts'
import { SOFTWARE_NAME, VERSION } from '../../base/version.ts'

/** Spans that may wait for export; further ones are dropped. */
const MAX_QUEUED_SPANS = 4096
const EXPORT_INTERVAL_MILLIS = 2000
const EXPORT_TIMEOUT_MILLIS = 5000
/** How long a shutdown waits for the last spans. */
const FLUSH_MILLIS = 5000

export interface RequestSpan {
  end(status: number): void
}

export interface Tracing {
  /** Start a span. `route` is the template, `target` the path without its query, which may contain codes. */
  request(span: { method: string; route: string; target: string; traceparent: string | null }): RequestSpan
  stop(): Promise<void>
}

export async function startTracing({ telemetry }: Config, log: Log): Promise<Tracing> {
  const [
    { SpanKind, SpanStatusCode, ROOT_CONTEXT, trace, TraceFlags },
    { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor },
    { resourceFromAttributes },
    { OTLPTraceExporter },
  ] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-grpc'),
  ])
  const exporter = new OTLPTraceExporter({ url: telemetry.otlpEndpoint, timeoutMillis: EXPORT_TIMEOUT_MILLIS })
  const processor = new BatchSpanProcessor(exporter, {
    maxQueueSize: MAX_QUEUED_SPANS,
    scheduledDelayMillis: EXPORT_INTERVAL_MILLIS,
    exportTimeoutMillis: EXPORT_TIMEOUT_MILLIS,
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': telemetry.serviceName, 'service.version': VERSION }),
    sampler: new AlwaysOnSampler(),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer(SOFTWARE_NAME, VERSION)

  return {
    request({ method, route, target, traceparent }) {
      const parent = parseTraceparent(traceparent)
      const context =
        parent === null
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, { ...parent, traceFlags: TraceFlags.SAMPLED, isRemote: true })
      const span = tracer.startSpan(
        route,
        { kind: SpanKind.SERVER, attributes: { 'http.method': method, 'http.target': target, 'http.route': route } },
        context,
      )
      return {
        end(status) {
          span.setAttribute('http.status_code', status)
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    async stop() {
      try {
        await inTime(provider.shutdown(), FLUSH_MILLIS, { ref: false })
      } catch (error) {
        log.warn('could not export the last traces', { error })
      }
    },
  }
}

/**
 * Parses a `traceparent` header, version 00. Returns null if it is absent or malformed. W3C Trace Context section 3.2.
 */
function parseTraceparent(header: string | null): { traceId: string; spanId: string } | null {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header ?? '')
  if (match === null || /^0+$/.test(match[1]!) || /^0+$/.test(match[2]!)) return null
  return { traceId: match[1]!, spanId: match[2]! }
}
