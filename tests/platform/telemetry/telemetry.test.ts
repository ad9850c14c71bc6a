/** Metrics and traces, and what must not be in them. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../../src/base/version.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startCollector } from '../../support/servers/collector.ts'
import { lineFault } from '../../support/log.ts'
import { ADMIN_TOKEN, freePort, startPds } from '../../support/servers/pds.ts'
import { startProgram } from '../../support/servers/program.ts'
import { atOneNode } from '../../support/turns.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'

test('metrics name routes by their template and show counters before their first event', async () => {
  await using pds = await startPds()
  using _ = atOneNode(pds, 'each node counts for itself')
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

/** By name of the sweep: what metrics and health call it, and its counters. */
const publicSweeps = {
  'blob-gc': ['blob_gc', 'blobGc', 'blob_gc_swept_total', 'blob_gc_errors_total'],
  'blob-mirror': ['blob_mirror', 'blobMirror', 'blob_mirror_synced_total'],
  'blob-scrub': ['blob_scrub', 'blobScrub', 'blob_scrub_flagged_total', 'blob_scrub_healed_total'],
  'firehose-gc': ['firehose_gc', 'firehoseGc', 'firehose_gc_swept_total'],
  'account-reaper': ['account_reaper', 'accountReaper', 'account_reaper_swept_total'],
  'agent-claim-sweep': ['agent_claim_sweep', 'agentClaimSweep', 'agent_claim_sweep_swept_total'],
  'admin-nonce-sweep': ['admin_nonce_sweep', 'adminNonceSweep', 'admin_nonce_sweep_swept_total'],
  'labeler-watch': ['labeler_watch', 'labelerWatch', 'labeler_watch_changes_total'],
} as const

test('dashboards find every sweep under its name', async () => {
  await using bucket = await startBucket()
  await using pds = await startPds({ blobMirror: bucket.mirror })
  const offered = pds.ctx.sweeps.sweeps.map(({ name }) => name)
  expect(offered).toEqual(expect.arrayContaining(Object.keys(publicSweeps)))
  for (const name of Object.keys(publicSweeps)) await pds.runSweep(name)
  const { body } = await request(`${pds.url}/metrics`)
  const { sweeps } = (await request(`${pds.url}/v1/admin/health`, { headers: bearer(ADMIN_TOKEN) })).body
  for (const [metric, member, ...counters] of Object.values(publicSweeps)) {
    expect(body).toMatch(new RegExp(`^${metric}_last_run_timestamp \\d{10}$`, 'm'))
    for (const counter of counters) expect(body).toMatch(new RegExp(`^${counter} \\d+$`, 'm'))
    expect(sweeps[member]).toMatchObject({ completedAt: expect.any(Number), swept: expect.any(Number), errors: 0 })
  }
})

test('metrics are open to clients nearby, to operators from elsewhere, and to all where that is configured', async () => {
  await using pds = await startPds()
  const ask = async (forwardedFor: string, credentials = {}) =>
    (await request(`${pds.url}/metrics`, { headers: { 'x-forwarded-for': forwardedFor, ...credentials } })).status
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
  await using pds = await startPds({
    telemetry: { enabled: true, otlpEndpoint: collector.url, serviceName: 'pds-under-test' },
  })
  await request(`${pds.url}/xrpc/com.atproto.server.describeServer?code=hunter2`, {
    headers: { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01`, authorization: 'Bearer hunter2' },
  })
  await request(`${pds.url}/xrpc/not_an_nsid`)
  await pds.stop()
  const span = collector.spans.find(({ name }) => name === 'com.atproto.server.describeServer')!
  expect(span).toMatchObject({ traceId: TRACE_ID, parentSpanId: '00f067aa0ba902b7', status: 0 })
  expect(span.attributes).toMatchObject({
    'http.method': 'GET',
    'http.target': '/xrpc/com.atproto.server.describeServer',
    'http.status_code': 200,
  })
  expect(span.resource).toMatchObject({ 'service.name': 'pds-under-test', 'service.version': VERSION })
  expect(collector.spans.find(({ name }) => name === 'unmatched')?.attributes['http.status_code']).toBe(400)
  expect(JSON.stringify(collector.spans)).not.toContain('hunter2')
})

test('a collector that is not there stops nobody', async () => {
  await using pds = await startPds({
    telemetry: { enabled: true, otlpEndpoint: `http://127.0.0.1:${await freePort()}` },
  })
  expect(await request(`${pds.url}/xrpc/_health`)).toMatchObject({ status: 200 })
})

test('each request is a line at debug with its route, and every line that it causes names it', async () => {
  await using pds = await startPds()
  await request(`${pds.url}/did:plc:somebody/secret-path?token=hunter2`)
  await request(`${pds.url}/xrpc/com.atproto.identity.resolveDid?did=${pds.ctx.config.serverDid}`)
  await request(`${pds.url}/xrpc/com.atproto.server.createInviteCode`, {
    json: { useCount: 1 },
    headers: bearer(ADMIN_TOKEN),
  })
  const answered = pds.log.filter(({ message }) => message === 'request handled')
  expect(answered).toMatchObject([
    { level: 'debug', method: 'GET', route: 'unmatched', status: 404, durationMillis: expect.any(Number) },
    { route: 'com.atproto.identity.resolveDid' },
    { method: 'POST', route: 'com.atproto.server.createInviteCode', status: 200 },
  ])
  const ids = answered.map(({ requestId }) => requestId)
  expect(new Set(ids).size).toBe(3)
  expect(pds.log.find(({ message }) => message === 'operator action')).toMatchObject({
    level: 'info',
    actor: 'master-token',
    action: 'claim_codes_minted',
    requestId: ids[2],
  })
  expect(JSON.stringify(pds.log)).not.toMatch(/hunter2|secret-path/)
})

test('requests that run at a time keep their ids apart', async () => {
  await using pds = await startPds()
  await Promise.all(
    Array.from({ length: 20 }, () =>
      request(`${pds.url}/xrpc/com.atproto.server.createInviteCode`, {
        json: { useCount: 1 },
        headers: bearer(ADMIN_TOKEN),
      }),
    ),
  )
  const idsOf = (message: string) =>
    pds.log.filter((line) => line.message === message).map(({ requestId }) => requestId)
  expect(new Set(idsOf('request handled')).size).toBe(20)
  expect(idsOf('operator action').toSorted()).toEqual(idsOf('request handled').toSorted())
})

test('a server that logs in JSON writes nothing else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'))
  const env = {
    SERVICE_LOG_FORMAT: 'json',
    SERVICE_LOG_LEVEL: 'debug',
    SERVICE_PORT: '0',
    SERVICE_BIND_ADDRESS: '127.0.0.1',
    SERVICE_DATA_DIR: join(folder, 'data'),
  }
  const place = {
    SERVICE_PUBLIC_URL: 'https://pds.example.com',
    SERVICE_AVAILABLE_USER_DOMAINS: 'example.com',
    SERVICE_CRAWLERS: '',
    SERVICE_ADMIN_TOKEN: 'short',
  }
  try {
    await using server = await startProgram(['serve'], { ...env, ...place }, folder)
    await request(`${server.url}/xrpc/_health`, { headers: { host: 'pds.example.com' } })
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    const lines = server.output().trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(
      expect.arrayContaining(['configuration', 'listening', 'request handled', 'stopping', 'stopped']),
    )
    expect(lines.map(lineFault)).toEqual(lines.map(() => null))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
