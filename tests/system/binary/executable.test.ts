/**
 * The executable does everything that the source does: each part once that needs something built in, or that starts
 * itself again.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCommands } from '../../../src/commands/commands.ts'
import { hasIroh } from '../../../src/platform/network/iroh-library.ts'
import { languages } from '../../../src/protocol/languages.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { PasskeyDevice, type Cbor } from '../../support/clients/passkey-device.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { testAuthority } from '../../support/certificates.ts'
import { startCollector, type Collector } from '../../support/servers/collector.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startMailbox, type Mailbox } from '../../support/clients/mailbox.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, runProgram, startProgram, type RunningServer } from '../../support/servers/program.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { addressOf, ECHO, echoed } from '../../support/servers/endpoint.ts'
import { memoryMiB } from '../../support/process-memory.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-binary-'))
const folder = join(scratch, 'empty')
const place = (name: string) => join(scratch, name)
const BLOB = 'the bytes of a blob'
const PROGRAMS_AT_ONCE = 4

let collector: Collector
let bucket: BucketHost
let mailbox: Mailbox
let env: Record<string, string>
let server: RunningServer
let alice: TestAccount
let uri: string

const holdfast = (words: string[], changes: Record<string, string> = {}) =>
  runProgram([...words, '--dev'], { ...env, ...changes })

beforeAll(async () => {
  ;[collector, bucket, mailbox] = await Promise.all([
    startCollector(),
    startBucket(),
    startMailbox({ tls: 'starttls', login: { user: 'pds', password: 'mail-password' } }),
  ])
  writeFileSync(place('authority.pem'), testAuthority)
  env = {
    SERVICE_PORT: String(await freePort()),
    SERVICE_DATA_DIR: place('data'),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_LOG_LEVEL: 'debug',
    SERVICE_TELEMETRY_ENABLED: 'true',
    SERVICE_OTLP_ENDPOINT: collector.url,
    SERVICE_BLOB_MIRROR_BUCKET: bucket.mirror.bucket,
    SERVICE_BLOB_MIRROR_ENDPOINT: bucket.mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: bucket.mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: bucket.mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
    SERVICE_EMAIL_PROVIDER: 'smtp',
    SERVICE_EMAIL_FROM: 'pds@example.org',
    SERVICE_EMAIL_SMTP_HOST: 'localhost',
    SERVICE_EMAIL_SMTP_PORT: String(mailbox.port),
    SERVICE_EMAIL_SMTP_USERNAME: 'pds',
    SERVICE_EMAIL_SMTP_PASSWORD: 'mail-password',
    SERVICE_BACKUP_DESTINATION: place('scheduled'),
    SERVICE_BACKUP_INTERVAL_SECS: '3600',
    NODE_EXTRA_CA_CERTS: place('authority.pem'),
    // It has to do without: what is native is unpacked there.
    TMPDIR: place('nowhere'),
  }
  mkdirSync(folder)
  writeFileSync(join(folder, '.env'), 'SERVICE_SERVICE_NAME=from-the-env-file\n')
  writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./nothing.ts"]\n')
  server = await startProgram(['dev'], env, folder)
  alice = await createAccount(server, 'alice')
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await Promise.all([collector, bucket, mailbox].map((each) => each[Symbol.asyncDispose]()))
  rmSync(scratch, { recursive: true, force: true })
})

test('the executable explains every command', async () => {
  const commands = await loadCommands()
  for (let next = 0; next < commands.length; next += PROGRAMS_AT_ONCE)
    await Promise.all(
      commands.slice(next, next + PROGRAMS_AT_ONCE).map(async ({ name, summary, options = {} }) => {
        const { code, out } = await runProgram([...name.split(' '), '--help'], {})
        expect({ name, code }).toEqual({ name, code: 0 })
        expect(out).toStartWith(`${summary}\n\nUsage: holdfast ${name}`)
        for (const option of Object.keys(options)) expect(out).toContain(`--${option}`)
      }),
    )
})

test('passkeys open accounts, with the parts of the library that are built in', async () => {
  // Passkeys are bound to the name of a server, never to its address.
  const named = { url: server.url.replace('127.0.0.1', 'localhost') }
  const holder = new FactorHolder(named, alice)
  await holder.signIn()
  const device = await holder.addPasskey()
  const browser = new CookieBrowser(named)
  expect((await holder.enterWith(device, browser, { signer: generateKeyPairSync('ec', p256).privateKey })).status).toBe(
    200,
  )
  expect(await browser.signedIn()).toBeNull()
  expect((await holder.enterWith(device, browser)).status).toBe(303)
  expect(await browser.signedIn()).toBe(alice.did)

  const { fields, options } = await holder.openNewPasskey(holder.recoveryCodes[0])
  const format = { format: 'packed', statement: new Map<Cbor, Cbor>([['alg', -7]]) }
  const attested = { ...fields, passkey: new PasskeyDevice(named.url).create(options, format) }
  expect((await holder.browser.send(holder.path, attested)).body).toContain('was not accepted')
})

const p256 = { namedCurve: 'P-256' } as const

// Every server downloads it, at every upgrade.
test('the executable has at most 135 MiB', () => {
  expect(statSync(PROGRAM[0]!).size).toBeLessThanOrEqual(135 * 1024 ** 2)
})

// The start needs more, most of it code of the runtime that runs once.
test.if(process.platform === 'linux')('the executable keeps at most 60 MB in memory when it is idle', async () => {
  const own = { SERVICE_DATA_DIR: place('idle'), SERVICE_PORT: String(await freePort()) }
  await using idle = await startProgram(['dev'], own, folder)
  await until(() => memoryMiB(idle.pid, 'VmRSS') * 1024 ** 2 <= 60e6)
  const bob = await createAccount(idle, 'bob')
  expect((await bob.call('com.atproto.server.getSession')).status).toBe(200)
})

test('the executable reads its configuration from its environment alone, and writes nothing where it is started', async () => {
  expect((await holdfast(['config', 'check'])).out).toContain('service_name = "holdfast"')
  expect(await (await fetch(`${server.url}/account/sign-in`)).text()).not.toContain('from-the-env-file')
  expect(readdirSync(folder).toSorted()).toEqual(['.env', 'bunfig.toml'])
})

test('the executable serves its pages with their stylesheet', async () => {
  const signIn = await request(`${server.url}/account/sign-in`)
  const [, style] = /<link rel="stylesheet" href="([^"]+)"/.exec(signIn.body)!
  const { status, headers, body } = await request(`${server.url}${style}`)
  expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'text/css; charset=utf-8' })
  expect(body).toContain(':root')
})

test('the executable serves its pages in every language', async () => {
  const headings = await Promise.all(
    languages.map(async (language) => {
      const page = await fetch(`${server.url}/account/sign-in`, { headers: { 'accept-language': language } })
      return /<html lang="([^"]+)">[^]*<h1>([^<]+)/.exec(await page.text())!.slice(1)
    }),
  )
  expect(headings.map(([language]) => language)).toEqual([...languages])
  expect(new Set(headings.map(([, heading]) => heading)).size).toBe(languages.length)
})

test('the executable writes records, keeps blobs and copies them to the bucket', async () => {
  const { body } = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: BLOB,
    headers: { 'content-type': 'text/plain' },
  })
  const record = { $type: 'org.example.note', text: 'with a blob', blob: body.blob }
  const created = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record },
  })
  expect(created.status).toBe(200)
  uri = created.body.uri
  const swept = await holdfast(['sweep', 'blob-mirror'])
  expect(swept).toMatchObject({ code: 0, err: '' })
  const key = bucket.keys().find((each) => each.includes(body.blob.ref.$link))!
  expect(new TextDecoder().decode(bucket.read(key))).toBe(BLOB)
})

test('the executable copies its log into the database with a thread of its own', async () => {
  const path = join(place('data'), 'holdfast.db')
  const before = statSync(path).size
  const record = { text: 'x'.repeat(900_000) }
  for (let written = 0; written < 20; written++) {
    expect(
      (
        await alice.call('com.atproto.repo.createRecord', {
          json: { repo: alice.did, collection: 'com.example.large', record },
        })
      ).status,
    ).toBe(200)
  }
  await until(() => statSync(path).size >= before + 8_000_000)
}, 60_000)

test('the executable sends mail over TLS', async () => {
  expect(await alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).toMatchObject({
    status: 200,
  })
  expect(mailbox.received.at(-1)).toMatchObject({ to: [alice.email], user: 'pds', secure: true })
  expect(await holdfast(['mail', 'test', 'somebody@example.org'])).toMatchObject({ code: 0, err: '' })
  expect(mailbox.received.at(-1)).toMatchObject({ to: ['somebody@example.org'] })
})

test('the executable finds nothing wrong with itself', async () => {
  const { out, err } = await holdfast(['doctor'])
  expect(out).toMatch(/^ok +database/m)
  expect(out).toMatch(/^ok +websocket/m)
  expect(out).toMatch(/^ok +mail/m)
  expect(err).toBe('')
})

test('the executable makes its scheduled backup by starting itself again', async () => {
  const made = await holdfast(['sweep', 'backup'])
  expect(made).toMatchObject({ code: 0, out: expect.stringContaining('"made":1') })
  expect(readdirSync(place('scheduled'))).toContain('snapshots')
})

test('the executable exports its traces, stops when it is told to, and comes back from a backup', async () => {
  const backup = await holdfast(['backup', place('backup')])
  expect(backup).toMatchObject({ code: 0, out: expect.stringContaining('1 blobs copied') })
  // Spans of earlier requests are dropped if a busy machine is late to take them.
  expect((await alice.call('com.atproto.server.getSession')).status).toBe(200)
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(collector.spans.map(({ name }) => name)).toContain('com.atproto.server.getSession')
  expect(server.output()).not.toContain(alice.password)
  expect(server.output()).not.toContain('mail-password')

  expect(await holdfast(['verify'])).toMatchObject({ code: 0, out: expect.stringContaining('0 faults') })
  const restored = { SERVICE_DATA_DIR: place('restored') }
  expect(await holdfast(['restore', place('backup')], restored)).toMatchObject({
    code: 0,
    out: expect.stringContaining('1 repositories and 1 blobs verified'),
  })

  server = await startProgram(['dev'], { ...env, ...restored }, folder)
  const [, , repo, collection, rkey] = uri.split('/')
  expect(
    await request(
      `${server.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams({ repo: repo!, collection: collection!, rkey: rkey! })}`,
    ),
  ).toMatchObject({ status: 200, body: { value: { text: 'with a blob' } } })
  expect(
    await request(`${server.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(alice.accessJwt) }),
  ).toMatchObject({
    status: 200,
  })
})

test('the executable names files and lines of its source in the stacks that it logs', async () => {
  const changes = { SERVICE_DATA_DIR: place('damaged'), SERVICE_PORT: String(await freePort()) }
  await using other = await startProgram(['dev'], { ...env, ...changes }, folder)
  const bob = await createAccount(other, 'bob')
  // Uploads are received in this folder.
  rmSync(join(place('damaged'), 'blobs'), { recursive: true })
  writeFileSync(join(place('damaged'), 'blobs'), 'no folder')
  expect(
    await bob.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: BLOB,
      headers: { 'content-type': 'text/plain' },
    }),
  ).toMatchObject({ status: 500 })
  await until(() => /\(src\/features\/data\/blobs\/blob-folder\.ts:\d+:\d+\)/.test(other.output()))
})

test.skipIf(process.platform !== 'linux')('the executable answers public reads on threads', async () => {
  const changes = {
    SERVICE_DATA_DIR: place('threads'),
    SERVICE_PORT: String(await freePort()),
    SERVICE_SERVER_READERS: '2',
    SERVICE_TELEMETRY_ENABLED: 'false',
  }
  await using other = await startProgram(['dev'], { ...env, ...changes }, folder)
  const { did } = await createAccount(other, 'bob')
  const answered = async () => {
    const { body } = await request(`${other.url}/metrics`, { headers: bearer(ADMIN_TOKEN) })
    return Number(/^reader_requests_total\{outcome="answered"\} (\d+)$/m.exec(body)?.[1] ?? 0)
  }
  await until(async () => {
    const status = `${other.url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`
    expect((await request(status, { headers: { connection: 'close' } })).status).toBe(200)
    return (await answered()) > 0
  })
  expect(await answered()).toBeGreaterThan(0)
})

test('the executable refuses options for the runtime inside of it', async () => {
  const { code, err, out } = await runProgram(['version'], { BUN_OPTIONS: '--smol' })
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain('BUN_OPTIONS')
})

test('a server keeps the memory that it frees for a second, or as long as its environment says', async () => {
  const changes = { SERVICE_DATA_DIR: place('freed'), SERVICE_PORT: String(await freePort()) }
  await using other = await startProgram(['dev'], { ...env, ...changes, MIMALLOC_PURGE_DELAY: '50' }, folder)
  const kept = ({ pid }: RunningServer) =>
    readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .filter((variable) => variable.startsWith('MIMALLOC_'))
  expect([server, other].map(kept)).toEqual([['MIMALLOC_PURGE_DELAY=1000'], ['MIMALLOC_PURGE_DELAY=50']])
})

test('the executable brings native libraries along, and loads them from nowhere that others can write to or foresee', async () => {
  const temporary = place('temporary')
  mkdirSync(temporary)
  const changes = { SERVICE_DATA_DIR: place('native'), SERVICE_PORT: String(await freePort()), TMPDIR: temporary }
  const watched: string[] = []
  const watcher = watch(temporary, (_, name) => void watched.push(name!))
  await using other = await startProgram(['dev'], { ...env, ...changes }, folder)
  const { did } = await createAccount(other, 'bob')
  expect(did).toStartWith('did:plc:')
  watcher.close()
  expect(new Set(watched).size).toBe(1)
  expect(watched[0]).toMatch(/^holdfast-\w{6}$/)
  expect(readdirSync(temporary)).toEqual([])
  expect(other.output()).not.toContain('native library')
})

// The library has builds for some platforms only; elsewhere, tests/features/iroh/binding.test.ts shows that the
// endpoint is refused.
test.skipIf(!hasIroh)('brings the endpoint for QUIC along, with nothing installed beside it', async () => {
  const temporary = place('temporary of the endpoint')
  mkdirSync(temporary)
  const iroh = {
    SERVICE_IROH_ENABLED: 'true',
    SERVICE_IROH_DISCOVERY: 'false',
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
  }
  const changes = {
    SERVICE_DATA_DIR: place('reachable'),
    SERVICE_PORT: String(await freePort()),
    TMPDIR: temporary,
    ...iroh,
  }
  await using other = await startProgram(['dev'], { ...env, ...changes }, folder)
  expect(readdirSync(temporary)).toEqual([])
  await using peer = await startQuicPeer()
  const connection = await peer.dial(await addressOf(other), ECHO)
  expect(Buffer.from(await echoed(connection, Buffer.from('compiled'))).toString()).toBe('compiled')
  // Unlike the other libraries, nothing takes its place.
  const unwritable = {
    ...changes,
    SERVICE_DATA_DIR: place('unreachable'),
    SERVICE_PORT: String(await freePort()),
    TMPDIR: place('nowhere'),
  }
  expect(await runProgram(['dev'], { ...env, ...unwritable })).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /the QUIC library cannot be loaded from .*: set TMPDIR to a folder that can be written and from which programs/,
    ),
  })
})

test('the executable does without native libraries where nothing can be unpacked, and says so', async () => {
  const changes = { SERVICE_DATA_DIR: place('without'), SERVICE_PORT: String(await freePort()) }
  await using other = await startProgram(['dev'], { ...env, ...changes }, folder, {
    program: ['sh', '-c', 'exec "$0" "$@" 2>&1', ...PROGRAM],
  })
  for (const name of ['bob', 'carol']) expect((await createAccount(other, name)).did).toStartWith('did:plc:')
  expect(other.output().match(/a native library cannot be loaded from .*: set TMPDIR/g)).toHaveLength(1)
})
