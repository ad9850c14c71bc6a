/** Who the server is to its peers: one key, which outlives restarts, and where the id is told. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { runCommand } from '../../../src/cli.ts'
import { startApp } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { addDevice } from '../../../src/features/access/wallet-devices/wallet-devices.ts'
import { rewrap } from '../../../src/platform/secrets/rewrap.ts'
import { Vault } from '../../../src/platform/secrets/vault.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { freePort, MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { startQuicPeer } from '../../support/servers/quic-peer.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { addressOf, ECHO, echoed, endpointStatus, withEndpoint } from '../../support/servers/endpoint.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const nodeIdOf = async (pds: Pick<TestPds, 'url'>): Promise<string> => (await addressOf(pds)).nodeId
const iroh = (changes: Partial<(typeof withEndpoint)['iroh'] & { endpoint: string }>): ConfigOverrides => ({
  ...withEndpoint,
  iroh: { ...withEndpoint.iroh, ...changes },
})

test('the id is the Ed25519 public key of the secret', async () => {
  await using peer = await startQuicPeer({ secret: new Uint8Array(32).fill(7) })
  expect(peer.nodeId).toBe('ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c')
})

test('the id stays the same over restarts and under another master key, and peers find the server again', async () => {
  await using pds = await startPds(withEndpoint)
  using _ = atOneNode(pds, 'one node has the endpoint')
  const nodeId = await nodeIdOf(pds)
  expect(nodeId).toMatch(/^[0-9a-f]{64}$/)
  await pds.restart()
  expect(await nodeIdOf(pds)).toBe(nodeId)
  const next = new Uint8Array(32).fill(9)
  await rewrap(pds.ctx.db, new Vault(MASTER_KEY.reveal()), new Vault(next))
  await pds.restart({ signingKeyMasterKey: new Secret(next) })
  expect(await nodeIdOf(pds)).toBe(nodeId)
  await using peer = await startQuicPeer()
  const connection = await peer.dial({ ...(await addressOf(pds)), nodeId }, ECHO)
  expect(Buffer.from(await echoed(connection, Buffer.from('still there'))).toString()).toBe('still there')
})

test('the id stays the same when the endpoint was off for a while', async () => {
  await using pds = await startPds(withEndpoint)
  const nodeId = await nodeIdOf(pds)
  await pds.restart(iroh({ enabled: false }))
  expect(await endpointStatus(pds)).toBeNull()
  await pds.restart(withEndpoint)
  expect(await nodeIdOf(pds)).toBe(nodeId)
})

test('without a configured master key, every start has another id, and a warning says so', async () => {
  await using pds = await startPds({ ...withEndpoint, signingKeyMasterKey: null }, { alone: 'it has no master key' })
  const nodeId = await nodeIdOf(pds)
  await pds.restart()
  expect(await nodeIdOf(pds)).not.toBe(nodeId)
  const warnings = pds.log.filter(
    ({ level, message }) => level === 'warn' && message.startsWith('no master key is configured'),
  )
  expect(warnings).toHaveLength(2)
})

test('a stored key that does not open stops the start, and is not replaced', async () => {
  await using pds = await startPds(withEndpoint)
  const stored = async () => (await pds.rows('server_secret', { name: 'iroh-endpoint' }))[0]!
  const { wrapped } = await stored()
  const store = (value: string) => pds.damage('server_secret', { name: 'iroh-endpoint' }, { wrapped: value })
  await store(new Vault(new Uint8Array(32).fill(1)).wrap(new Uint8Array(32)))
  expect(await thrownBy(pds.restart())).toThrow(
    'the stored key of the QUIC endpoint (row iroh-endpoint of server_secret) does not open: restore',
  )
  await pds.restart(iroh({ enabled: false }))
  expect((await stored()).wrapped).not.toBe(wrapped)
  await store(wrapped)
  await pds.restart(withEndpoint)
})

test('servers that start on one new database at the same time have one id', async () => {
  await using cluster = await startCluster(1)
  const ids = await Promise.all(Array.from({ length: 3 }, async () => nodeIdOf(await cluster.add(withEndpoint))))
  expect(new Set(ids).size).toBe(1)
})

test('a backup keeps the id', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'holdfast-iroh-'))
  await using pds = await startPds(withEndpoint, { onFile: true })
  const nodeId = await nodeIdOf(pds)
  const holdfast = (dataDir: string, words: string[]) => {
    const key = Buffer.from(MASTER_KEY.reveal()).toString('hex')
    const env = {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PUBLIC_URL: pds.url,
      SERVICE_SIGNING_KEY_MASTER_KEY: key,
      SERVICE_LOG_LEVEL: 'error',
    }
    return runCommand(quietTerminal(env, []), [...words, '--dev'])
  }
  expect(await holdfast(pds.dataDir, ['backup', join(scratch, 'archive')])).toBe(0)
  expect(await holdfast(join(scratch, 'restored'), ['restore', join(scratch, 'archive')])).toBe(0)
  const port = await freePort()
  const place = { dataDir: join(scratch, 'restored'), port, publicUrl: pds.url }
  const app = await startApp(testConfig(place, { ...withEndpoint, adminToken: pds.ctx.config.adminToken }))
  expect(await nodeIdOf(app)).toBe(nodeId)
  await app.stop()
  rmSync(scratch, { recursive: true })
})

test('devices are told the id, or what the operator says instead, or none', async () => {
  await using pds = await startPds(withEndpoint)
  const alice = await createAccount(pds, 'alice')
  const { deviceId, deviceToken } = await pds.ctx.db.transaction((tx) =>
    addDevice(tx, { owner: alice.did, publicKey: 'zKey', platform: 'ios', openedWith: null }, pds.clock.now()),
  )
  const told = async () =>
    (await request(`${pds.url}/v1/devices/${deviceId}/pds`, { headers: bearer(deviceToken) })).body
  const where = { pdsUrl: pds.url, websocketUrl: pds.url.replace('http', 'ws') }
  expect(await told()).toEqual({ ...where, irohEndpoint: await nodeIdOf(pds) })
  for (const enabled of [true, false]) {
    await pds.restart(iroh({ enabled, endpoint: 'not even an id' }))
    expect(await told()).toEqual({ ...where, irohEndpoint: 'not even an id' })
  }
  await pds.restart(iroh({ enabled: false }))
  expect(await told()).toEqual(where)
})

test('nobody else is told the id', async () => {
  await using pds = await startPds(withEndpoint)
  const nodeId = await nodeIdOf(pds)
  for (const path of [
    '/',
    '/xrpc/com.atproto.server.describeServer',
    '/xrpc/_health',
    '/metrics',
    '/.well-known/did.json',
  ])
    expect(JSON.stringify((await request(`${pds.url}${path}`)).body)).not.toContain(nodeId)
})
