/** Metrics and traces, and what must not be in them. */
import { expect, test } from 'bun:test'
import { VERSION } from '../../src/platform/version.ts'
import { bearer, request } from '../harness/http.ts'
import { startCollector } from '../harness/collector.ts'
import { ADMIN_TOKEN, freePort, startPds } from '../harness/pds.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'

test('metrics name routes by their template and show counters before their first event', async () => {
  await using pds = await startPds()
  await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)
  await request(`${pds.url}/did:plc:somebody/secret-path`)
  await request(`${pds.url}/xrpc/org.example.secretMethod`)
  const { headers, body } = await request(`${pds.url}/metrics`)
  expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(headers.get('access-control-allow-origin')).toBeNull()
  expect(body).toContain('http_requests_total{route="com.atproto.server.describeServer",status_class="2xx"} 1')
  expect(body).toContain('firehose_events_total{frame="commit"} 0')
  expect(body).toContain('rate_limit_rejections_total{limiter="account_writes"} 0')
  expect(body).not.toContain('secret')
  expect(body).not.toContain('did:plc')
})

test('a completed sweep leaves its time and its counts', async () => {
  await using pds = await startPds()
  expect((await request(`${pds.url}/metrics`)).body).not.toContain('\nadmin_nonce_sweep_last_run_timestamp ')
  await pds.runSweep('admin-nonce-sweep')
  const { body } = await request(`${pds.url}/metrics`)
  expect(body).toMatch(/\nadmin_nonce_sweep_last_run_timestamp \d{10}\n/)
  expect(body).toContain('admin_nonce_sweep_swept_total 0')
})

test('metrics are open to clients nearby, to operators from elsewhere, and to all where that is configured', async () => {
  await using pds = await startPds()
  const ask = async (forwardedFor: string, credentials = {}) => (await request(`${pds.url}/metrics`, { headers: { 'x-forwarded-for': forwardedFor, ...credentials } })).status
  expect(await ask('10.0.0.3')).toBe(200)
  expect(await ask('203.0.113.9')).toBe(401)
  expect(await ask('10.0.0.3, 203.0.113.9')).toBe(401)
  expect(await ask('203.0.113.9', bearer(ADMIN_TOKEN))).toBe(200)
  await pds.restart({ telemetry: { metricsRequireAdmin: false } })
  expect(await ask('203.0.113.9')).toBe(200)
})

test('metrics can be kept for operators, or switched off', async () => {
  await using pds = await startPds({ telemetry: { metricsRequireAdmin: true } })
  expect(await request(`${pds.url}/metrics`)).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
  expect(await request(`${pds.url}/metrics`, { headers: bearer(ADMIN_TOKEN) })).toMatchObject({ status: 200 })
  await pds.restart({ telemetry: { metricsEnabled: false } })
  expect(await request(`${pds.url}/metrics`, { headers: bearer(ADMIN_TOKEN) })).toMatchObject({ status: 404 })
})

test('each request is a span of the trace it belongs to, without its query', async () => {
  await using collector = await startCollector()
  await using pds = await startPds({ telemetry: { enabled: true, otlpEndpoint: collector.url, serviceName: 'pds-under-test' } })
  await request(`${pds.url}/xrpc/com.atproto.server.describeServer?code=hunter2`, { headers: { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01`, authorization: 'Bearer hunter2' } })
  await request(`${pds.url}/xrpc/not_an_nsid`)
  await pds.stop()
  const span = collector.spans.find(({ name }) => name === 'com.atproto.server.describeServer')!
  expect(span).toMatchObject({ traceId: TRACE_ID, parentSpanId: '00f067aa0ba902b7', status: 0 })
  expect(span.attributes).toMatchObject({ 'http.method': 'GET', 'http.target': '/xrpc/com.atproto.server.describeServer', 'http.status_code': 200 })
  expect(span.resource).toMatchObject({ 'service.name': 'pds-under-test', 'service.version': VERSION })
  expect(collector.spans.find(({ name }) => name === 'unmatched')?.attributes['http.status_code']).toBe(400)
  expect(JSON.stringify(collector.spans)).not.toContain('hunter2')
})

test('a collector that is not there stops nobody', async () => {
  await using pds = await startPds({ telemetry: { enabled: true, otlpEndpoint: `http://127.0.0.1:${await freePort()}` } })
  expect(await request(`${pds.url}/xrpc/_health`)).toMatchObject({ status: 200 })
})
