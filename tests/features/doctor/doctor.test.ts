/** What the doctor finds in deployments that are well, and in those that are not. */
import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeBackup, openArchive } from '../../../src/features/operations/backup/backup.ts'
import { checks, examine, examineAll, type Finding } from '../../../src/features/operations/doctor/doctor.ts'
import type { Patient } from '../../../src/features/operations/doctor/finding.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { hasIroh } from '../../../src/platform/network/iroh-library.ts'
import { type Resolver, systemResolver } from '../../../src/platform/network/resolver.ts'
import { Secret } from '../../../src/base/secret.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { untimely } from '../../support/certificates.ts'
import { startWebHost } from '../../support/servers/did-web-host.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds, freePort, type TestPds } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { startReverseProxy, type ProxyHabits } from '../../support/servers/reverse-proxy.ts'
import { startUpstream } from '../../support/servers/upstream.ts'

const resolver: Resolver = {
  addresses: (host) =>
    host.endsWith('.test') || host === 'localhost'
      ? Promise.resolve(['127.0.0.1'])
      : Promise.reject(new Error('no such host')),
  texts: async () => [],
}
const upstream = createOutbound({ resolver: systemResolver(), reach: 'anywhere' })
const patientOf = (pds: TestPds, changes: Partial<Patient> = {}): Patient => ({
  config: pds.ctx.config,
  resolver,
  upstream,
  mailer: pds.ctx.mailer,
  now: () => pds.clock.now(),
  ...changes,
})
const find = (name: string, patient: Patient): Promise<Finding> =>
  examine(
    checks.find((check) => check.name === name)!,
    patient,
  )

/** The same server behind a proxy. Its public address is the proxy's, and its DID stays. */
async function behind(pds: TestPds, habits: Partial<ProxyHabits>, changes: Partial<Patient['config']> = {}) {
  const { serverDid } = pds.ctx.config
  const proxy = await startReverseProxy(pds.url.replace('localhost', '127.0.0.1'), habits)
  await pds.restart({ publicUrl: proxy.url, serverDid, ...changes })
  return { patient: patientOf(pds), [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() }
}

async function all(patient: Patient): Promise<Record<string, string>> {
  const states: Record<string, string> = {}
  for await (const { name, finding } of examineAll(patient)) states[name] = finding.state
  return states
}

test('a server that is reached, with its names in order, is well', async () => {
  await using pds = await startPds()
  const patient = patientOf(pds)
  const well = [
    'disk',
    'owners',
    'database',
    'master-key',
    'repositories',
    'event-numbers',
    'dns',
    'handles',
    'server',
    'operator',
    'proxy',
    'client-address',
    'host',
    'header-size',
    'body-size',
    'websocket',
    'oauth',
    'plc',
    'quic',
  ]
  for (const name of well)
    expect([name, await find(name, patient)]).toEqual([name, { state: 'ok', text: expect.any(String) }])
  expect(await find('tls', patient)).toMatchObject({ state: 'warning', remedy: expect.stringContaining('https') })
  expect(await find('mail', patient)).toMatchObject({ state: 'warning', text: 'mail is written to the log' })
  expect(await find('relay', patient)).toMatchObject({ state: 'warning', text: 'no relay is configured' })
  expect(await find('backups', patient)).toMatchObject({
    state: 'warning',
    text: onPostgres ? expect.stringContaining('PostgreSQL') : 'no backups are configured',
  })
})

test('a proxy that does its work is well', async () => {
  await using pds = await startPds()
  for (const habits of [{ forwardedFor: 'append' }, { forwardedFor: 'replace' }, { host: 'report' }] as const) {
    await using proxied = await behind(pds, habits)
    for (const name of ['proxy', 'client-address', 'host', 'header-size', 'body-size', 'websocket', 'oauth'])
      expect([name, await find(name, proxied.patient)]).toEqual([name, { state: 'ok', text: expect.any(String) }])
  }
})

test('what a proxy does wrong is told apart', async () => {
  await using pds = await startPds()
  const wrong: [Partial<ProxyHabits>, string, string][] = [
    [{ forwardedFor: 'drop' }, 'client-address', "does not send the client's address"],
    [{ forwardedFor: 'keep' }, 'client-address', 'clients can choose the address'],
    [{ host: 'replace' }, 'host', 'as one to 127.0.0.1: handles cannot be verified'],
    [{ maxHeaderBytes: 4096 }, 'header-size', 'returns 502 for a response with 8 KiB of headers'],
    [{ maxBodyBytes: 1024 ** 2 }, 'body-size', 'returns 413 for a body of 16 MiB'],
    [{ upgrades: false }, 'websocket', 'cannot be opened'],
    [{ ownPaths: '/.well-known/' }, 'oauth', '/.well-known/oauth-protected-resource returns 404'],
    [
      { ownPaths: '/.well-known/oauth-authorization-server' },
      'oauth',
      '/.well-known/oauth-authorization-server returns 404',
    ],
    [{ ownPaths: '/v1/' }, 'client-address', 'gets status 404 from something other than the server'],
    [{ ownPaths: '/xrpc/' }, 'proxy', 'returns 404, but not as did:web:'],
  ]
  for (const [habits, name, text] of wrong) {
    await using proxied = await behind(pds, habits)
    expect([habits, await find(name, proxied.patient)]).toEqual([
      habits,
      { state: 'fault', text: expect.stringContaining(text), remedy: expect.any(String) },
    ])
  }
})

test('a proxy at a public address that is not trusted is named', async () => {
  await using pds = await startPds()
  await using stranger = startUpstream()
  const patient = patientOf(pds, { config: { ...pds.ctx.config, publicUrl: stranger.url } })
  stranger.answer('', () =>
    Response.json({ address: '198.51.100.7', forwardedFor: '192.0.2.77, 203.0.113.9', bytes: 0 }),
  )
  expect(await find('client-address', patient)).toMatchObject({
    state: 'fault',
    remedy: 'add 198.51.100.7 to trusted_proxies',
  })
})

test('a server of before an upgrade, which does not say how it was called, is not blamed on the proxy', async () => {
  await using pds = await startPds()
  await using former = startUpstream()
  const patient = patientOf(pds, { config: { ...pds.ctx.config, publicUrl: former.url } })
  former.answer('', () => Response.json({ address: '203.0.113.9', forwardedFor: '203.0.113.9', bytes: 0 }))
  expect(await find('host', patient)).toEqual({ state: 'skipped', text: expect.stringContaining('restart it') })
})

test('what the server believes about addresses is for operators, and its body is bounded', async () => {
  await using pds = await startPds()
  const probe = (headers: Record<string, string>) =>
    request(`${pds.url}/v1/admin/probe`, {
      method: 'POST',
      json: {},
      headers: { 'x-forwarded-for': '192.0.2.1', ...headers },
    })
  const refused = await probe({})
  expect(refused.status).toBe(401)
  expect(JSON.stringify(refused.body)).not.toContain('192.0.2.1')
  expect(await probe(bearer(ADMIN_TOKEN))).toMatchObject({
    status: 200,
    body: { address: '192.0.2.1', forwardedFor: '192.0.2.1', host: 'localhost', bytes: 2 },
  })
  const huge = new Uint8Array(64 * 1024 ** 2 + 1)
  expect(
    (
      await fetch(`${pds.url}/v1/admin/probe`, {
        method: 'POST',
        body: huge,
        headers: { 'content-type': 'application/json', ...bearer(ADMIN_TOKEN) },
      })
    ).status,
  ).toBe(413)
})

test('a server that does not run is told, instead of blaming the proxy', async () => {
  await using pds = await startPds()
  await using proxied = await behind(pds, {})
  await pds.stop()
  expect(await find('server', proxied.patient)).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('no server listens at http://127.0.0.1:'),
    remedy: expect.stringContaining('holdfast serve'),
  })
  expect(await all(proxied.patient)).toMatchObject({
    server: 'fault',
    proxy: 'skipped',
    'client-address': 'skipped',
    host: 'skipped',
    'header-size': 'skipped',
    'body-size': 'skipped',
    websocket: 'skipped',
    oauth: 'skipped',
    database: 'ok',
    'master-key': 'ok',
  })
})

test('damaged repositories are told, with the place of the first fault, also while the server is stopped', async () => {
  await using pds = await startPds({}, { onFile: true })
  const patient = patientOf(pds)
  await pds.plant('integrity_finding', {
    did: 'did:web:damaged.test',
    fault: 'record com.example.note/note7 is missing',
    found_at: 1,
    seen_at: 1,
  })
  await pds.stop()
  expect(await find('repositories', patient)).toMatchObject({
    state: 'fault',
    text: '1 damaged repositories; of did:web:damaged.test, record com.example.note/note7 is missing',
    remedy: expect.stringContaining('holdfast integrity'),
  })
})

test('something else on the port of the server is told', async () => {
  await using pds = await startPds()
  await using other = startUpstream()
  const patient = patientOf(pds, { config: { ...pds.ctx.config, port: Number(new URL(other.url).port) } })
  expect(await find('server', patient)).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('is not did:web:'),
  })
})

test('a public address that leads nowhere, or elsewhere, is the fault of what is in front', async () => {
  await using pds = await startPds()
  await using other = startUpstream()
  const at = (publicUrl: string) => patientOf(pds, { config: { ...pds.ctx.config, publicUrl } })
  expect(await find('proxy', at(other.url))).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('not as did:web:'),
  })
  expect(await find('proxy', at(`http://localhost:${await freePort()}`))).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('cannot be reached'),
  })
})

test('without an operator credential it is told what cannot be done and what cannot be known', async () => {
  await using pds = await startPds()
  await using proxied = await behind(pds, {}, { adminToken: null, inviteCodeRequired: true })
  expect(await find('operator', proxied.patient)).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('sign-up requires invite codes'),
    remedy: expect.stringContaining('SERVICE_ADMIN_TOKEN'),
  })
  expect(await find('client-address', proxied.patient)).toEqual({ state: 'skipped', text: 'needs the admin token' })
})

test('another admin token than that of the running server is told', async () => {
  await using pds = await startPds()
  await using proxied = await behind(pds, {})
  const config = { ...proxied.patient.config, adminToken: new Secret('x'.repeat(32)) }
  expect(await find('client-address', { ...proxied.patient, config })).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('does not accept the admin token'),
  })
})

test('the master key is held against the secrets, without starting anything', async () => {
  await using pds = await startPds({}, { alone: 'its master key is a file' })
  const patient = patientOf(pds)
  await pds.stop()
  const file = join(pds.dataDir, 'master.key')
  const key = readFileSync(file, 'utf8')
  expect(await find('master-key', patient)).toEqual({
    state: 'ok',
    text: 'the key in master.key decrypts the secrets in the database',
  })
  const configured = { ...patient, config: { ...patient.config, signingKeyMasterKey: new Secret(new Uint8Array(32)) } }
  expect(await find('master-key', configured)).toMatchObject({
    state: 'fault',
    text: 'the configured master key does not decrypt the secrets of this database',
    remedy: expect.stringContaining('rewrap'),
  })
  const broken: [string, string][] = [
    [`${'0'.repeat(64)}\n`, 'the key in master.key does not decrypt'],
    ['half a key', 'is not a master key'],
  ]
  for (const [content, text] of broken) {
    writeFileSync(file, content)
    expect(await find('master-key', patient)).toMatchObject({ state: 'fault', text: expect.stringContaining(text) })
  }
  rmSync(file)
  expect(await find('master-key', patient)).toMatchObject({
    state: 'fault',
    text: 'the database holds secrets, but there is no master key',
    remedy: expect.stringContaining(file),
  })
  expect(existsSync(file)).toBe(false)
  writeFileSync(file, key)
  expect(await find('master-key', patient)).toMatchObject({ state: 'ok' })
})

test('a database that is gone, or is none, is told with what to do', async () => {
  await using pds = await startPds({}, { onFile: true })
  const patient = patientOf(pds)
  await pds.stop()
  const path = join(pds.dataDir, 'holdfast.db')
  truncateSync(path)
  expect(await find('database', patient)).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('missing or empty, but a server has used this folder (holdfast.marker'),
    remedy: expect.stringContaining('holdfast restore'),
  })
  expect(await all(patient)).toMatchObject({ database: 'fault', 'master-key': 'skipped' })
  writeFileSync(path, 'a note\n'.repeat(1000))
  expect(await find('database', patient)).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('is not a database'),
  })
})

test('backups of several servers into a folder of one machine are told', async () => {
  await using cluster = await startCluster(2)
  const [node] = cluster.nodes
  const destination = mkdtempSync(join(tmpdir(), 'holdfast-doctor-'))
  const { config, log } = node!.ctx
  const patient = { ...patientOf(node!), config: { ...config, backup: { ...config.backup, destination } } }
  await makeBackup(config, openArchive(destination, config), { keep: null, now: new Date(), log })
  expect(await find('backups', patient)).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('several servers make backups in turn'),
  })
  await cluster.nodes[1]!.stop()
  expect(await find('backups', patient)).toMatchObject({ state: 'ok' })
  rmSync(destination, { recursive: true })
})

test('backups that are late, that fail, or that lack blobs are told', async () => {
  await using pds = await startPds({}, { onFile: true })
  const place = mkdtempSync(join(tmpdir(), 'holdfast-doctor-'))
  const with_ = (backup: Partial<Patient['config']['backup']>, afterHours = 0) =>
    patientOf(pds, {
      config: {
        ...pds.ctx.config,
        backup: { ...pds.ctx.config.backup, destination: place, intervalSecs: 86_400, ...backup },
      },
      now: () => Date.now() + afterHours * 3_600_000,
    })
  try {
    expect(await find('backups', with_({}))).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('no backup of this server in'),
    })
    expect(await find('backups', with_({ destination: join(place, 'not yet') }))).toMatchObject({ state: 'warning' })
    expect(existsSync(join(place, 'not yet'))).toBe(false)
    // What cannot be looked at is not taken for missing.
    symlinkSync('circle', join(place, 'circle'))
    const closed = with_({ destination: join(place, 'circle'), passphrase: new Secret('passphrase') })
    expect(await find('backups', closed)).toMatchObject({ state: 'fault' })
    expect(await find('passphrase', closed)).toMatchObject({ state: 'fault' })
    rmSync(join(place, 'circle'))
    const config = pds.ctx.config
    await makeBackup(config, openArchive(place, config), {
      keep: null,
      now: new Date(),
      log: pds.ctx.log,
    })
    const before = readdirSync(place, { recursive: true }).sort()
    expect(await find('backups', with_({}))).toEqual({
      state: 'ok',
      text: 'the newest backup is less than an hour old',
    })
    expect(await find('backups', with_({}, 30))).toMatchObject({
      state: 'ok',
      text: expect.stringContaining('30 hours'),
    })
    expect(await find('backups', with_({}, 49))).toMatchObject({
      state: 'fault',
      text: 'the newest backup is 49 hours old, but one is due every 24.0 hours',
    })
    expect(await find('backups', with_({ intervalSecs: 0 }, 49))).toMatchObject({ state: 'ok' })
    expect(await find('backups', with_({ intervalSecs: 0 }, 200))).toMatchObject({ state: 'warning' })
    renameSync(
      join(place, 'snapshots', readdirSync(join(place, 'snapshots'))[0]!),
      join(place, 'snapshots', '29991231T000000Z'),
    )
    expect(await find('backups', with_({}))).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('no backup of this server in'),
    })
    renameSync(
      join(place, 'snapshots', '29991231T000000Z'),
      join(
        place,
        'snapshots',
        before
          .map(String)
          .find((name) => /snapshots\/[^/]+$/.test(name))!
          .slice('snapshots/'.length),
      ),
    )
    expect(await find('backups', with_({ passphrase: new Secret('a passphrase') }))).toMatchObject({
      state: 'fault',
      text: expect.stringContaining('unencrypted'),
    })
    expect(await find('backups', with_({ destination: 's3://bucket/prefix' }))).toMatchObject({
      state: 'fault',
      text: expect.stringContaining('blob_mirror.endpoint'),
    })
    expect(readdirSync(place, { recursive: true }).sort()).toEqual(before)
  } finally {
    rmSync(place, { recursive: true })
  }
})

test('a disk that cannot be written is told', async () => {
  await using pds = await startPds()
  const notThere = patientOf(pds, { config: { ...pds.ctx.config, dataDir: '/nowhere/at/all' } })
  expect(await find('disk', notThere)).toMatchObject({ state: 'fault', text: '/nowhere/at/all does not exist' })
  // Nobody writes there, not even root.
  const dataDir = '/proc/self'
  expect(await find('disk', patientOf(pds, { config: { ...pds.ctx.config, dataDir } }))).toMatchObject({
    state: 'fault',
    text: expect.stringContaining(dataDir),
  })
})

test('a bucket of blobs is tried, and what it refuses is told', async () => {
  await using bucket = await startBucket()
  await using pds = await startPds({ blobs: bucket.primary })
  expect(await find('blobs', patientOf(pds))).toMatchObject({ state: 'ok' })
  expect(bucket.keys()).toEqual([])
  bucket.fault = 403
  const refused = await find('blobs', patientOf(pds))
  expect(refused).toMatchObject({ state: 'fault', text: expect.stringContaining('the bucket returned 403') })
  expect(JSON.stringify(refused)).not.toContain(bucket.primary.s3SecretAccessKey.reveal())
  const elsewhere = { ...pds.ctx.config.blobs, s3Endpoint: 'http://127.0.0.1:1' }
  expect(await find('blobs', patientOf(pds, { config: { ...pds.ctx.config, blobs: elsewhere } }))).toMatchObject({
    state: 'fault',
  })
})

test('names without records are named', async () => {
  await using pds = await startPds()
  const patient = patientOf(pds, {
    config: {
      ...pds.ctx.config,
      publicUrl: 'https://pds.nowhere.example',
      availableUserDomains: ['test', 'nowhere.example'],
    },
  })
  expect(await find('dns', patient)).toMatchObject({ state: 'fault', text: 'pds.nowhere.example has no address' })
  expect(await find('handles', patient)).toMatchObject({ state: 'fault', text: '*.nowhere.example do not resolve' })
  expect(await find('tls', patient)).toMatchObject({ state: 'fault' })
})

test('the clock is held against the directory', async () => {
  await using pds = await startPds()
  await using plc = startUpstream()
  const at = (offSecs: number) =>
    patientOf(pds, { config: { ...pds.ctx.config, plcDirectoryUrl: plc.url }, now: () => Date.now() + offSecs * 1000 })
  expect(await find('clock', at(0))).toMatchObject({ state: 'ok' })
  expect(await find('clock', at(30))).toMatchObject({ state: 'warning', text: expect.stringContaining('ahead of') })
  expect(await find('clock', at(-600))).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('behind'),
    remedy: expect.stringContaining('time synchronisation'),
  })
})

test('a clock that is so far off that no certificate is valid is told nevertheless', async () => {
  await using pds = await startPds()
  await using plc = startWebHost({ cert: untimely.notYetValid, key: untimely.key })
  await using appview = startUpstream()
  const url = `https://localhost:${plc.port}`
  const find100YearsLater = (appviewUrl: string, date: Date) => {
    plc.publish(`localhost:${plc.port}`, '/', () => new Response('', { headers: { date: date.toUTCString() } }))
    const config = { ...pds.ctx.config, plcDirectoryUrl: url, appview: { ...pds.ctx.config.appview, url: appviewUrl } }
    return find('clock', patientOf(pds, { config, now: Date.now }))
  }
  const nobody = `http://127.0.0.1:${await freePort()}`
  expect(await find100YearsLater(nobody, new Date('2121-01-01T00:00:00Z'))).toEqual({
    state: 'fault',
    text: expect.stringMatching(
      /^3\d{4} days behind localhost:\d+, whose certificate is not valid according to this machine's clock$/,
    ),
    remedy: expect.stringContaining('time synchronisation'),
  })
  expect(await find100YearsLater(nobody, new Date())).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('its certificate is not valid yet'),
  })
  // Another service that can be trusted is asked first.
  expect(await find100YearsLater(appview.url, new Date('2121-01-01T00:00:00Z'))).toMatchObject({ state: 'ok' })
})

test('what held up the event loop is told', async () => {
  await using pds = await startPds()
  await using running = startUpstream()
  const { hostname, port } = new URL(running.url.replace('localhost', '127.0.0.1'))
  const patient = patientOf(pds, { config: { ...pds.ctx.config, bindAddress: hostname, port: Number(port) } })
  const find = (longestStall: object | null) => {
    running.answer('', () => Response.json({ eventLoop: { longestStall } }))
    return examine(
      checks.find(({ name }) => name === 'event-loop')!,
      patient,
    )
  }
  const at = '2026-11-23T12:00:00.000Z'
  expect(await find(null)).toMatchObject({ state: 'ok' })
  expect(await find({ seconds: 0.3, cause: 'computing', route: 'com.atproto.repo.importRepo', at })).toMatchObject({
    state: 'ok',
  })
  expect(await find({ seconds: 12.34, cause: 'computing', route: 'com.atproto.repo.importRepo', at })).toEqual({
    state: 'warning',
    text: `the event loop stalled for up to 12.3 s since the start (computing in com.atproto.repo.importRepo, at ${at})`,
    remedy: expect.stringContaining('event loop stalled'),
  })
  expect(await find({ seconds: 2, cause: 'waiting', route: null, at })).toMatchObject({ state: 'ok' })
  expect(await find({ seconds: 9, cause: 'waiting', route: null, at })).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('(waiting, at'),
    remedy: expect.stringContaining('disk'),
  })
})

test('relays and directories are asked, and their answers told', async () => {
  await using pds = await startPds()
  await using relay = startUpstream()
  const patient = patientOf(pds, {
    config: {
      ...pds.ctx.config,
      crawlers: { urls: [relay.url] },
      plcDirectoryUrl: `http://localhost:${await freePort()}`,
    },
  })
  expect(await find('plc', patient)).toMatchObject({
    state: 'fault',
    remedy: expect.stringContaining('outgoing https'),
  })
  const says = (body: object, status = 200) =>
    relay.answer('com.atproto.sync.getHostStatus', () => Response.json(body, { status }))
  says({ status: 'active' })
  expect(await find('relay', patient)).toMatchObject({ state: 'ok' })
  says({ status: 'idle' })
  expect(await find('relay', patient)).toMatchObject({ state: 'warning', text: expect.stringContaining('idle') })
  says({ error: 'HostNotFound' }, 400)
  expect(await find('relay', patient)).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('has not crawled'),
  })
})

test('a mailer that would refuse is a fault', async () => {
  await using pds = await startPds()
  const config = { ...pds.ctx.config, email: { ...pds.ctx.config.email, provider: 'smtp' as const } }
  expect(
    await find('mail', patientOf(pds, { config, mailer: { send: async () => {}, check: async () => '535 no' } })),
  ).toMatchObject({
    state: 'fault',
    text: 'smtp: 535 no',
  })
})

// Where the library has no build, there is no endpoint to tell apart: see tests/features/iroh/binding.test.ts.
test.skipIf(!hasIroh)('the endpoint for QUIC is told apart from one that is missing or changes its name', async () => {
  await using pds = await startPds({ iroh: { enabled: true, discovery: false }, signingKeyMasterKey: MASTER_KEY })
  expect(await find('quic', patientOf(pds))).toMatchObject({
    state: 'ok',
    text: expect.stringMatching(
      /^node [0-9a-f]{64} at 127\.0\.0\.1:\d+, \[::1\]:\d+: 0 connections open, 0 echoes served$/,
    ),
  })
  await pds.restart({ iroh: { enabled: true, discovery: false }, signingKeyMasterKey: MASTER_KEY, adminToken: null })
  expect(await find('quic', patientOf(pds))).toEqual({ state: 'skipped', text: 'needs the admin token' })
  await pds.restart({ iroh: { enabled: false } })
  const { config } = pds.ctx
  expect(
    await find('quic', patientOf(pds, { config: { ...config, iroh: { ...config.iroh, enabled: true } } })),
  ).toMatchObject({
    state: 'fault',
    remedy: expect.stringContaining('restart'),
  })
  await using other = await startPds({ iroh: { enabled: true, discovery: false } }, { alone: 'it has no master key' })
  expect(await find('quic', patientOf(other))).toMatchObject({
    state: 'warning',
    remedy: expect.stringContaining('signing_key_master_key'),
  })
})
