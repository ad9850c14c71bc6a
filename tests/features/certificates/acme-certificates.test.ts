/** Certificates that the server gets from a certificate authority, whatever that does. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testAuthority } from '../../support/certificates.ts'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { allSeen } from '../../support/clients/events.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { servedCertificate } from '../../support/clients/tls-client.ts'
import { startAcmeHost, type AcmeHost } from '../../support/servers/acme-host.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { ADMIN_TOKEN, freePort, startPds, type TestPds } from '../../support/servers/pds.ts'
import { freeDnsPort } from '../../support/ports.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const HOST = 'pds.test'
const DAY_SECS = 86_400

const folder = mkdtempSync(join(tmpdir(), 'holdfast-acme-'))
const acmeRootFile = join(folder, 'root.pem')
beforeAll(() => writeFileSync(acmeRootFile, testAuthority))
afterAll(() => rmSync(folder, { recursive: true }))

interface Secured extends TestPds {
  readonly tlsPort: number
  readonly httpPort: number
}

/** The first pass has ended. */
async function startSecured(acme: AcmeHost, more: ConfigOverrides = {}): Promise<Secured> {
  const [tlsPort, httpPort] = [await freePort(), await freePort()]
  acme.httpPort = httpPort
  const pds = await startPds(
    {
      ...more,
      tls: { mode: 'acme', port: tlsPort, httpPort, acmeDirectoryUrl: acme.directoryUrl, acmeRootFile, ...more.tls },
    },
    { publicUrl: `https://${more.availableUserDomains?.[0] ?? HOST}`, alone: 'both nodes would open its ports' },
  )
  await pds.runSweep('certificates')
  return Object.assign(pds, { tlsPort, httpPort })
}

/** A pair that is stopped with the test. */
async function fresh(prepare: (acme: AcmeHost) => void = () => undefined, config: ConfigOverrides = {}) {
  const acme = await startAcmeHost()
  prepare(acme)
  const pds = await startSecured(acme, config)
  return {
    acme,
    pds,
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      await acme[Symbol.asyncDispose]()
    },
  }
}

const acme = setUp(startAcmeHost)
const pds = setUp(() => startSecured(acme))

const handshake = (at: Secured, root: string, name: string) => servedCertificate(at.tlsPort, root, name)

const serialAt = async (at: Secured, root: string, name: string) => {
  const found = await handshake(at, root, name)
  return typeof found === 'string' ? found : found.serial
}

test('the first pass gets a certificate for the service, with which clients reach it', async () => {
  expect(await handshake(pds, acme.root, HOST)).toMatchObject({ names: `DNS:${HOST}` })
  const answer = await request(`https://127.0.0.1:${pds.tlsPort}/xrpc/_health`, {
    headers: { host: HOST },
    tls: { ca: acme.root, serverName: HOST },
    keepalive: false,
  } as RequestInit)
  expect(answer.status).toBe(200)
})

test('a handle has a certificate after the next pass, and with it the proof that it belongs to its account', async () => {
  const alice = await createAccount(pds, 'alice')
  expect(await handshake(pds, acme.root, 'alice.test')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(await pds.runSweep('certificates')).toMatchObject({ ordered: 1, issued: 1 })
  const proof = () =>
    request(`https://127.0.0.1:${pds.tlsPort}/.well-known/atproto-did`, {
      headers: { host: 'alice.test' },
      tls: { ca: acme.root, serverName: 'alice.test' },
      keepalive: false,
    } as RequestInit)
  // The server with the certificates of before takes connections for some seconds more.
  await until(() =>
    proof().then(
      ({ body }) => body === alice.did,
      () => false,
    ),
  )
})

/** The `#identity` events of an account so far. */
async function identityEvents(at: Secured, { did }: { did: string }): Promise<number> {
  const events = new Subscriber(at.url, '?cursor=0')
  await events.opened
  await allSeen(at, events)
  const told = events.messages.filter(({ type, body }) => type === '#identity' && body.did === did)
  events.close()
  return told.length
}

async function workOffSteps(at: Secured): Promise<void> {
  at.clock.advance({ secs: 60 })
  await at.runSteps()
}

test('the network is told once that a handle can be verified: after its first certificate, and no later one', async () => {
  await using one = await fresh()
  const { pds: at } = one
  await workOffSteps(at)
  const alice = await createAccount(at, 'alice')
  const before = await identityEvents(at, alice)
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  await workOffSteps(at)
  expect(await identityEvents(at, alice)).toBe(before + 1)
  at.clock.advance({ days: 61 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 2 })
  await workOffSteps(at)
  expect(await identityEvents(at, alice)).toBe(before + 1)
})

test('the first certificate of a server without accounts leaves nothing to announce', async () => {
  await using one = await fresh()
  await workOffSteps(one.pds)
  expect(await announcements(one.pds)).toBe(0)
})

const announcements = (at: Secured) => at.count('step', { kind: 'first-certificate' })

test('nothing waits for a certificate that is lost before it was served', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await workOffSteps(at)
  await createAccount(at, 'alice')
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  expect(await announcements(at)).toBe(1)
  host.fault = 'down'
  await at.lose('certificate', { names: 'alice.test' })
  await at.restart()
  await workOffSteps(at)
  expect(await announcements(at)).toBe(0)
  expect(at.log).toContainEqual(expect.objectContaining({ subject: 'alice.test', reason: 'it is not stored any more' }))
})

test('a certificate that is stored and never served is waited for a day', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await workOffSteps(at)
  const alice = await createAccount(at, 'alice')
  const before = await identityEvents(at, alice)
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  host.fault = 'down'
  const [service] = await at.rows('certificate', { names: HOST })
  await at.damage('certificate', { names: 'alice.test' }, { wrapped: service!.wrapped })
  await at.restart()
  await workOffSteps(at)
  expect(await announcements(at)).toBe(1)
  at.clock.advance({ days: 1 })
  await workOffSteps(at)
  expect(await announcements(at)).toBe(0)
  expect(await identityEvents(at, alice)).toBe(before)
  expect(at.log).toContainEqual(expect.objectContaining({ subject: 'alice.test', reason: 'it is not served' }))
})

test('no client causes an order by the names that it asks for', async () => {
  const before = acme.orders.length
  const ask = async (name: string): Promise<unknown> => {
    const found = await handshake(pds, acme.root, name)
    // The listener of before the last certificate ends at some time.
    return found === 'ECONNRESET' ? ask(name) : found
  }
  const asked = Array.from({ length: 500 }, (_, index) => ask(`stranger${index}.test`))
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['ERR_TLS_CERT_ALTNAME_INVALID']))
  expect(await pds.runSweep('certificates')).toMatchObject({ ordered: 0 })
  expect(acme.orders.length).toBe(before)
})

test('a challenge is answered for its token only', async () => {
  const at = (token: string) => request(`http://127.0.0.1:${pds.httpPort}/.well-known/acme-challenge/${token}`)
  const token = 'a'.repeat(43)
  expect((await at(token)).body).toStartWith(`${token}.`)
  for (const wrong of ['short', `${token}%20`, `${token}/x`, 'a'.repeat(300)])
    expect(await at(wrong)).toMatchObject({ status: 404 })
})

test('keys of the account and of certificates are sealed', async () => {
  const rows = await pds.rows('certificate')
  expect(rows.length).toBeGreaterThan(0)
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY')
  expect(await pds.rows('certificate_order')).toEqual([])
})

test('certificates are served again after a restart, without asking the authority', async () => {
  const before = acme.orders.length
  const serial = await serialAt(pds, acme.root, HOST)
  await pds.restart()
  expect(await serialAt(pds, acme.root, HOST)).toBe(serial)
  expect(acme.orders.length).toBe(before)
})

test('a certificate is renewed when the authority advises it, and names the one that it replaces', async () => {
  await using one = await fresh()
  const serial = await serialAt(one.pds, one.acme.root, HOST)
  one.acme.renewal = { start: Date.now() - 2000, end: Date.now() - 1000 }
  one.pds.clock.advance({ secs: 7 * 3600 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ ordered: 1, issued: 1 })
  expect(one.acme.replaced).toEqual([expect.stringMatching(/^[\w-]+\.[\w-]+$/)])
  await until(async () => (await serialAt(one.pds, one.acme.root, HOST)) !== serial)
})

test('without advice, a certificate is renewed after two thirds of its time', async () => {
  await using one = await fresh()
  one.pds.clock.advance({ days: 59 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ ordered: 0 })
  one.pds.clock.advance({ days: 2 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ ordered: 1, issued: 1 })
})

test('a certificate is served as soon as it is there, while the authority is slow with others', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  const serial = await serialAt(at, host.root, HOST)
  host.held.add('bob.test')
  await createAccount(at, 'bob')
  at.clock.advance({ days: 61 })
  let hasEnded = false
  const pass = at.runSweep('certificates').then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  )
  await until(async () => (await serialAt(at, host.root, HOST)) !== serial)
  expect(hasEnded).toBe(false)
  await at.stop()
  await pass
})

test('while the authority is away the former certificate stays, and the order is tried again', async () => {
  await using one = await fresh()
  const serial = await serialAt(one.pds, one.acme.root, HOST)
  one.pds.clock.advance({ days: 61 })
  one.acme.fault = 'down'
  expect(await one.pds.runSweep('certificates')).toMatchObject({ issued: 0, failed: 1 })
  expect(await one.pds.rows('certificate_order')).toMatchObject([{ names: HOST, fault: 'it returned 502' }])
  expect(await serialAt(one.pds, one.acme.root, HOST)).toBe(serial)
  one.acme.fault = null
  one.pds.clock.advance({ secs: 60 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ issued: 1 })
})

test('an authority that limits orders is left alone for as long as it says', async () => {
  await using one = await fresh((host) => {
    host.fault = 'rateLimited'
  })
  const { acme: host, pds: at } = one
  expect(await at.rows('certificate_order')).toMatchObject([{ fault: 'too many certificates' }])
  host.fault = null
  await createAccount(at, 'bob')
  at.clock.advance({ secs: 7100 })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 1, issued: 0, failed: 0 })
  expect(host.orders).toEqual([])
  at.clock.advance({ secs: 200 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 2 })
})

test('when the limits of the authority end, the certificate of the service comes before those of handles', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.fault = 'rateLimited'
  for (const name of ['alice', 'bob', 'carol']) await createAccount(at, name)
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 3, failed: 1 })
  at.clock.advance({ days: 61 })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 1, failed: 1 })
  expect(await at.rows('certificate_order', { names: HOST })).toMatchObject([{ fault: 'too many certificates' }])
  host.fault = null
  at.clock.advance({ secs: 7300 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 4 })
  expect(host.orders[1]).toEqual([HOST])
})

test('orders that the authority has taken are continued while no more can be placed', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.fault = 'neverReady'
  await createAccount(at, 'alice')
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 1, waiting: 1 })
  for (let index = 0; index < 25; index++) await createAccount(at, `many${index}`)
  host.fault = 'rateLimited'
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 25, failed: 1 })
  at.clock.advance({ secs: 600 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1, failed: 0 })
})

test('handles beyond the number of certificates that are kept do not displace those of the service', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await createAccount(at, 'alice')
  await at.runSweep('certificates')
  const [alice] = await at.rows('certificate', { names: 'alice.test' })
  const many = Array.from({ length: 1000 }, (_, index) => ({
    ...alice!,
    names: `${index}.test`,
    issued_at: Date.now() + index,
  }))
  await at.plant('certificate', many)
  await createAccount(at, 'bob')
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 0 })
  await at.restart()
  expect(await handshake(at, host.root, HOST)).toMatchObject({ names: `DNS:${HOST}` })
  await at.lose('certificate', { names: HOST })
  at.clock.advance({ secs: 7200 })
  // Of the others, none is for a handle of an account, so one has given up its place.
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 2, issued: 2 })
  expect(host.orders.slice(-2)).toEqual([[HOST], ['bob.test']])
})

test('an account that changes its handle again and again takes neither places nor orders from others', async () => {
  await using one = await fresh(undefined, { rateLimit: { enabled: false } })
  const { acme: host, pds: at } = one
  const mallory = await createAccount(at, 'mallory')
  await at.runSweep('certificates')
  for (let name = 0; name < 7; name++) {
    await mallory.call('com.atproto.identity.updateHandle', { json: { handle: `mallory${name}.test` } })
    await at.runSweep('certificates')
  }
  const orders = (account: string) => host.orders.filter(([name]) => name!.startsWith(account)).length
  expect(orders('mallory')).toBe(5)
  await createAccount(at, 'alice')
  await at.runSweep('certificates')
  expect(orders('alice')).toBe(1)
  // A name that it has had is not another one.
  await mallory.call('com.atproto.identity.updateHandle', { json: { handle: 'mallory.test' } })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 0 })
  await mallory.call('com.atproto.identity.updateHandle', { json: { handle: 'mallory6.test' } })
  at.clock.advance({ days: 8 })
  await at.runSweep('certificates')
  expect(orders('mallory')).toBe(6)
})

test('advice to renew a certificate after its end is not followed', async () => {
  await using one = await fresh((host) => {
    host.renewal = { start: Date.now() + 1000 * DAY_SECS * 1000, end: Date.now() + 1001 * DAY_SECS * 1000 }
  })
  one.pds.clock.advance({ secs: 60 })
  await one.pds.runSweep('certificates')
  one.pds.clock.advance({ days: 82 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ expired: 0, ordered: 1, issued: 1 })
})

test('a clock that is a year ahead loses no certificate, and causes no order once it is right', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await createAccount(at, 'alice')
  await at.runSweep('certificates')
  host.fault = 'down'
  at.clock.jump({ days: 365 })
  await at.runSweep('certificates')
  await at.restart()
  await at.runSweep('certificates')
  host.fault = null
  at.clock.jump({ days: -365 })
  at.clock.advance({ secs: 7200 })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 0, issued: 0, expired: 0 })
  expect(host.orders.length).toBe(2)
  for (const name of [HOST, 'alice.test'])
    expect(await handshake(at, host.root, name)).toMatchObject({ names: `DNS:${name}` })
})

test('a clock that was ahead when orders failed, or were issued, holds up none once it is right', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  at.clock.jump({ days: 50 })
  for (let each = 0; each < 60; each++) await createAccount(at, `early${each}`)
  for (let pass = 0; pass < 3; pass++) await at.runSweep('certificates')
  expect(host.orders.length).toBe(61)
  host.fault = 'down'
  host.limited.add('bob.test')
  await createAccount(at, 'bob')
  at.clock.advance({ secs: 3600 })
  await at.runSweep('certificates')
  host.fault = null
  at.clock.advance({ secs: 600 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
  host.limited.clear()
  await createAccount(at, 'alice')
  at.clock.jump({ days: -50 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 2, failed: 0 })
})

test('a chain that is cut off is refused: served, it would keep the server from serving any other', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.fault = 'cutChain'
  await createAccount(at, 'alice')
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 0, failed: 1 })
  expect(await at.rows('certificate_order')).toMatchObject([
    { fault: 'the certificate that was issued has a chain that is malformed' },
  ])
  await at.restart()
  expect(await handshake(at, host.root, HOST)).toMatchObject({ names: `DNS:${HOST}` })
})

test('an authority that does not know the former certificate renews it all the same', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.fault = 'noReplacing'
  at.clock.advance({ days: 61 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1, failed: 0 })
})

test('an order that the authority can never tell of is given up after an hour', async () => {
  await using one = await fresh((host) => {
    host.fault = 'neverReady'
  })
  const { acme: host, pds: at } = one
  host.fault = 'lostOrders'
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
  expect(await at.rows('certificate_order')).toMatchObject([{ fault: 'no order can be read' }])
  at.clock.advance({ secs: 3600 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
  host.fault = null
  at.clock.advance({ secs: 600 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  expect(host.orders.length).toBe(2)
})

test('an authority that moves its addresses is found again by its directory', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.prefix = '/v2'
  await createAccount(at, 'alice')
  await at.runSweep('certificates')
  at.clock.advance({ secs: 600 })
  await at.runSweep('certificates')
  expect(await at.rows('certificate', { names: 'alice.test' })).toHaveLength(1)
})

test('a limit on new handles, for however long, holds up neither the service nor renewals', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await createAccount(at, 'alice')
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  host.fault = 'years'
  for (const name of ['bob', 'carol']) {
    host.limited.add(`${name}.test`)
    await createAccount(at, name)
  }
  host.lifeMillis = 200 * DAY_SECS * 1000
  at.clock.advance({ days: 61 })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 4, issued: 2, failed: 1 })
  await at.damage('certificate', { names: 'alice.test' }, { renew_at: 0 })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 1, issued: 1, failed: 0 })
  host.limited.clear()
  at.clock.advance({ days: 1 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 2 })
})

test('a limit that ends at once is left alone for some minutes nevertheless', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.fault = 'atOnce'
  host.limited.add('bob.test')
  await createAccount(at, 'bob')
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 0 })
  at.clock.advance({ secs: 300 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
})

test('a renewed certificate is served though the clock was ahead when others came', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  await createAccount(at, 'alice')
  at.clock.jump({ days: 20 })
  await at.runSweep('certificates')
  at.clock.jump({ days: -19 })
  const serial = await serialAt(at, host.root, HOST)
  await at.damage('certificate', { names: HOST }, { renew_at: 0, ask_at: Date.now() * 2 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  // For some seconds, a new connection may still come to the server that has the former one.
  await until(async () => (await serialAt(at, host.root, HOST)) !== serial)
})

test('a refused nonce is replaced by a new one', async () => {
  await using one = await fresh((host) => {
    host.fault = 'badNonce'
  })
  expect(await handshake(one.pds, one.acme.root, HOST)).toMatchObject({ names: `DNS:${HOST}` })
})

test('an authority that refuses every nonce has refused no name, and is asked again after a minute', async () => {
  await using one = await fresh((host) => {
    host.fault = 'badNonces'
  })
  expect(await one.pds.rows('certificate_order')).toMatchObject([{ names: HOST, fault: 'an unknown nonce' }])
  one.acme.fault = null
  one.pds.clock.advance({ secs: 60 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ issued: 1 })
})

test('a name that cannot be proven is tried again later and later, and holds up no other', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  host.refused.add('carol.test')
  await createAccount(at, 'carol')
  await createAccount(at, 'dave')
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1, failed: 1 })
  expect(await at.rows('certificate_order')).toMatchObject([{ names: 'carol.test', fault: 'carol.test: not proven' }])
  const tries = () => host.orders.filter(([name]) => name === 'carol.test').length
  at.clock.advance({ secs: 240 })
  await at.runSweep('certificates')
  expect(tries()).toBe(1)
  at.clock.advance({ secs: 120 })
  await at.runSweep('certificates')
  expect(tries()).toBe(2)
  at.clock.advance({ secs: 360 })
  await at.runSweep('certificates')
  expect(tries()).toBe(2)
})

test('an order that never becomes ready is continued for an hour, and then given up', async () => {
  await using one = await fresh((host) => {
    host.fault = 'neverReady'
  })
  const { acme: host, pds: at } = one
  const row = async () => (await at.rows('certificate_order'))[0]
  const { url } = (await row())!
  expect(url).not.toBeNull()
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ waiting: 1 })
  expect(await row()).toMatchObject({ url })
  expect(host.orders.length).toBe(1)
  at.clock.advance({ secs: 3600 })
  expect(await at.runSweep('certificates')).toMatchObject({ failed: 1 })
  expect(await row()).toMatchObject({ url: null })
})

test('an order survives a restart: it is not placed twice', async () => {
  await using one = await fresh((host) => {
    host.fault = 'neverReady'
  })
  await one.pds.restart()
  one.acme.fault = null
  one.pds.clock.advance({ secs: 60 })
  expect(await one.pds.runSweep('certificates')).toMatchObject({ issued: 1 })
  expect(one.acme.orders.length).toBe(1)
})

test.each(['endless', 'malformed', 'misplaced'] as const)(
  'answers that are %s are refused, and tried again',
  async (fault) => {
    await using one = await fresh((host) => {
      host.fault = fault
    })
    const [{ fault: said } = { fault: null }] = await one.pds.rows('certificate_order')
    expect(said).toMatch(/more than 262144 bytes|malformed|not an http or https URL/)
    one.acme.fault = null
    one.pds.clock.advance({ secs: 60 })
    expect(await one.pds.runSweep('certificates')).toMatchObject({ issued: 1 })
  },
)

test('an authority that does not answer holds up neither requests nor the stop', async () => {
  await using one = await fresh()
  one.acme.fault = 'silent'
  one.pds.clock.advance({ days: 61 })
  const pass = one.pds.runSweep('certificates').catch((error: Error) => error.message)
  const signUp = await request(`${one.pds.url}/xrpc/com.atproto.server.createAccount`, {
    json: { handle: 'erin.test', email: 'erin@example.com', password: PASSWORD },
  })
  expect(signUp.status).toBe(200)
  await one.pds.stop()
  expect(await pass).toBe('the server is shutting down')
})

test('the order for a handle that is gone is dropped', async () => {
  await using one = await fresh()
  one.acme.refused.add('frank.test')
  const frank = await createAccount(one.pds, 'frank')
  await one.pds.runSweep('certificates')
  await frank.call('com.atproto.server.deactivateAccount', { json: {} })
  await one.pds.runSweep('certificates')
  expect(await one.pds.rows('certificate_order')).toEqual([])
})

test('only so many orders are placed in an hour', async () => {
  await using one = await fresh()
  const { acme: host, pds: at } = one
  for (let index = 0; index < 65; index++) await createAccount(at, `many${index}`)
  for (let pass = 0; pass < 5; pass++) await at.runSweep('certificates')
  expect(host.orders.length).toBe(60)
  at.clock.advance({ secs: DAY_SECS })
  await at.runSweep('certificates')
  expect(host.orders.length).toBe(66)
})

const DOMAIN = 'example.test'

/** A server that proves its names by records, with a pass behind it. */
async function proving(prepare?: (acme: AcmeHost) => void, config: ConfigOverrides = {}) {
  const dnsPort = await freeDnsPort()
  const records = { acmeChallenge: 'dns-01', dnsAddress: '127.0.0.1', dnsPort } as const
  const prepared = (acme: AcmeHost) => {
    acme.dnsPort = dnsPort
    prepare?.(acme)
  }
  return fresh(prepared, { availableUserDomains: [DOMAIN], ...config, tls: { ...records, ...config.tls } })
}

const isOpen = (port: number) =>
  Bun.connect({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).then(
    (socket) => {
      socket.end()
      return true
    },
    () => false,
  )

test('with records in DNS, one certificate is for the host and for all handles, also those to come', async () => {
  await using one = await proving()
  const { acme: host, pds: at } = one
  expect(host.orders).toEqual([[`*.${DOMAIN}`, DOMAIN]])
  await createAccount(at, 'alice', { handle: `alice.${DOMAIN}` })
  for (const name of [DOMAIN, `alice.${DOMAIN}`])
    expect(await handshake(at, host.root, name)).toMatchObject({ names: `DNS:*.${DOMAIN}, DNS:${DOMAIN}` })
  expect(await at.runSweep('certificates')).toMatchObject({ ordered: 0 })
})

test('once there is a certificate for all handles, the network is told of each, some at a time', async () => {
  await using one = await proving((host) => {
    host.fault = 'neverReady'
  })
  const { acme: host, pds: at } = one
  const people = []
  for (let index = 0; index < 25; index++)
    people.push(await createAccount(at, `many${index}`, { handle: `many${index}.${DOMAIN}` }))
  const before = await identityEvents(at, people[0]!)
  host.fault = null
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  for (let tries = 0; tries < 3; tries++) await workOffSteps(at)
  for (const person of people) expect(await identityEvents(at, person)).toBe(before + 1)
})

test('the responder is open during a challenge only', async () => {
  await using one = await proving((host) => {
    host.fault = 'neverReady'
  })
  const { acme: host, pds: at } = one
  expect(await isOpen(host.dnsPort)).toBe(true)
  host.fault = null
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  expect(await isOpen(host.dnsPort)).toBe(false)
  expect(await at.rows('challenge_record')).toEqual([])
})

test('an order that a restart has interrupted is proven again', async () => {
  await using one = await proving((host) => {
    host.fault = 'neverReady'
  })
  const { acme: host, pds: at } = one
  host.fault = null
  await at.restart()
  at.clock.advance({ secs: 60 })
  expect(await at.runSweep('certificates')).toMatchObject({ issued: 1 })
  expect(host.orders.length).toBe(1)
})

test('without a port for HTTP, a host outside the domains is proven by records too', async () => {
  await using one = await proving(undefined, {
    availableUserDomains: ['example.test', 'other.test'],
    tls: { httpPort: 0 },
  })
  expect(one.acme.orders).toEqual([['*.example.test', 'example.test'], ['*.other.test']])
  // The listener of before the second certificate takes connections for some seconds more.
  await until(async () => {
    const found = await handshake(one.pds, one.acme.root, 'bob.other.test')
    return typeof found !== 'string' && found.names === 'DNS:*.other.test'
  })
})

test('a server whose port for DNS is in use does not start, and names the key', async () => {
  const dnsPort = await freeDnsPort()
  const other = createSocket('udp4')
  await new Promise<void>((resolve) => other.bind(dnsPort, '127.0.0.1', resolve))
  expect(await thrownBy(proving(undefined, { tls: { dnsPort } }))).toThrow('set tls.dns_port (SERVICE_TLS_DNS_PORT)')
  other.close()
})

test('operators are told that the service has no certificate, however many orders for handles fail', async () => {
  await using one = await fresh((host) => void host.refused.add(HOST))
  const { pds: at } = one
  const [order] = await at.rows('certificate_order')
  const many = Array.from({ length: 150 }, (_, index) => ({ ...order!, names: `${index}.test`, next_at: 0 }))
  await at.plant('certificate_order', many)
  const view = await request(`${at.url}/v1/admin/certificates`, { headers: bearer(ADMIN_TOKEN) })
  expect(view.body.faults).toEqual([{ names: HOST, text: `there is no certificate for ${HOST}: ${HOST}: not proven` }])
})

test('operators are told of missing certificates, of those near their end, and why', async () => {
  const refusing = (host: AcmeHost) => void host.refused.add(HOST)
  await using one = await fresh(refusing, { alerts: { mailTo: ['operator@example.org'], diskFreeBytes: 0 } })
  const { acme: host, pds: at } = one
  const view = async () =>
    (await request(`${at.url}/v1/admin/certificates`, { headers: bearer(ADMIN_TOKEN) })).body as Record<string, unknown>
  const reason = `there is no certificate for ${HOST}: ${HOST}: not proven`
  expect(await view()).toMatchObject({ served: 0, waiting: 1, faults: [{ names: HOST, text: reason }] })
  host.refused.clear()
  at.clock.advance({ secs: 600 })
  await at.runSweep('certificates')
  expect(await view()).toMatchObject({ served: 1, waiting: 0, faults: [] })
  host.refused.add(HOST)
  at.clock.advance({ days: 78 })
  await at.runSweep('certificates')
  const { faults } = await view()
  expect(faults).toEqual([
    { names: HOST, text: `the certificate for ${HOST} is valid for 12.0 more days: ${HOST}: not proven` },
  ])
  at.clock.advance({ secs: 3600 })
  await at.runSweep('alerts')
  await at.runSteps()
  expect(at.mails.map(({ subject, text }) => `${subject} ${text}`)).toEqual([
    expect.stringMatching(/the certificate has not been renewed in time[^]*valid for 12\.0 more days/),
  ])
  const metrics = await request(`${at.url}/metrics`)
  expect(metrics.body).toContain('certificates_served 1')
})
