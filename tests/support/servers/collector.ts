/** An OTLP collector that keeps what it is sent. */
import { join } from 'node:path'
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type GrpcObject,
  type ServiceClientConstructor,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

export interface CollectedSpan {
  name: string
  traceId: string
  parentSpanId: string
  attributes: Record<string, string | number>
  resource: Record<string, string | number>
  /** 2 is an error. */
  status: number
}

interface KeyValue {
  key: string
  value: { stringValue?: string; intValue?: string }
}
interface Export {
  resourceSpans: {
    resource: { attributes: KeyValue[] }
    scopeSpans: {
      spans: {
        name: string
        traceId: Buffer
        parentSpanId: Buffer
        attributes: KeyValue[]
        status: { code: number } | null
      }[]
    }[]
  }[]
}

export interface Collector extends AsyncDisposable {
  url: string
  spans: CollectedSpan[]
}

export async function startCollector(): Promise<Collector> {
  const loaded = loadPackageDefinition(
    loadSync(join(import.meta.dir, 'otlp.proto'), { defaults: true, oneofs: true }),
  ) as unknown as {
    opentelemetry: { proto: { collector: { trace: { v1: GrpcObject } } } }
  }
  const { service } = loaded.opentelemetry.proto.collector.trace.v1['TraceService'] as ServiceClientConstructor
  const spans: CollectedSpan[] = []
  const server = new Server()
  server.addService(service, {
    Export({ request }: { request: Export }, answer: (error: null, value: object) => void) {
      for (const { resource, scopeSpans } of request.resourceSpans)
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({
            name: span.name,
            traceId: span.traceId.toString('hex'),
            parentSpanId: span.parentSpanId.toString('hex'),
            attributes: plain(span.attributes),
            resource: plain(resource.attributes),
            status: span.status?.code ?? 0,
          })
      answer(null, {})
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  )
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    async [Symbol.asyncDispose]() {
      server.forceShutdown()
    },
  }
}

const plain = (attributes: KeyValue[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))
