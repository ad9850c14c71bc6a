/** Many exports at the same time, clients that take nothing, and what becomes of everybody else. */
import { afterEach, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { verifyRepoCar } from '@atproto/repo'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { createAccount } from '../../support/clients/account.ts'
import { archiveOf } from '../../support/archive.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { SlowDownload } from '../../support/faults/slow-download.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/** Places that a network has, and requests that wait for one. */
const OF_NETWORK = 8
const MAX_WAITING = 512
/** More than the system keeps for a client that does not read. */
const RECORDS = 8
const RECORD_CHARS = 1_000_000
const TEXT_BYTES = (RECORD_CHARS * 3) / 4

/** What coding does not make shorter by much. */
const randomText = () => randomBytes(TEXT_BYTES).toString('base64')

let cids: string[]
const { pds } = useWorld({ options: { alone: 'each node has places of its own' } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const records = Object.fromEntries(
    Array.from({ length: RECORDS }, (_, i) => [
      `org.example.note/${i}`,
      { $type: 'org.example.note', text: randomText() },
    ]),
  )
  const archive = archiveOf(
    alice.did,
    nextTid(null, pds.clock.now() * 1000, 7),
    records,
    signingKey('k256', new Uint8Array(32).fill(9)),
  )
  cids = archive.blocks.slice(1).map(({ cid }) => cid.toString())
  const imported = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body: archive.bytes as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(alice.accessJwt) },
  })
  expect(imported.status).toBe(200)
})

const downloads: SlowDownload[] = []
afterEach(async () => {
  await Promise.all(downloads.splice(0).map((download) => download.leave()))
  await until(async () => (await exports()).every((count) => count === 0))
})

const path = () => `/xrpc/com.atproto.sync.getRepo?did=${alice.did}`
function download(address: string, from = path()): SlowDownload {
  const started = new SlowDownload(pds.url, from, address)
  downloads.push(started)
  return started
}

/** Whoever has waited too long for a place, as on a busy machine, comes again. */
async function admitted(address: string): Promise<SlowDownload> {
  for (;;) {
    const one = download(address)
    await until(() => one.status !== null)
    if (one.status !== 503) return one
  }
}

/** Returns how many exports have a place, wait for one, and wait for their clients alone. */
async function exports(): Promise<[number, number, number]> {
  const { body } = await request(`${pds.url}/metrics`)
  const of = (state: string) => Number(new RegExp(`^repo_exports_${state} (\\d+)$`, 'm').exec(body)![1])
  return [of('running'), of('waiting'), of('straggling')]
}

const verify = async (car: Uint8Array) =>
  (
    await verifyRepoCar(
      car,
      alice.did,
      formatDidKey((await signingKeyOf(pds.ctx, pds.ctx.db, alice.did as Did))!.publicKey),
    )
  ).creates.length

test('a network has its part of the places, others are served meanwhile, and whoever goes away makes room at once', async () => {
  const crowd = Array.from({ length: 3 * OF_NETWORK }, (_, i) => download(`198.51.100.${i}`))
  // Those who came first give their places to others as soon as they only wait for their clients.
  await until(async () => {
    const [running, waiting, straggling] = await exports()
    expect(running).toBeLessThanOrEqual(OF_NETWORK)
    return running === OF_NETWORK && waiting > 0 && running + waiting + straggling === crowd.length
  })
  const other = await fetch(pds.url + path(), { headers: { 'x-forwarded-for': '203.0.113.1' } })
  expect(other.status).toBe(200)
  expect(await verify(new Uint8Array(await other.arrayBuffer()))).toBe(RECORDS)
  expect((await request(`${pds.url}/xrpc/_health`)).status).toBe(200)
  await Promise.all(crowd.map((one) => one.leave()))
  await until(async () => (await exports()).toString() === '0,0,0')
})

test('who waits for a place gets nothing of an account that is taken down meanwhile', async () => {
  const bob = await createAccount(pds, 'bob')
  const crowd = Array.from({ length: 6 * OF_NETWORK }, (_, i) => download(`198.51.100.${i}`))
  await until(async () => (await exports())[1] > 4 * OF_NETWORK)
  const last = download('198.51.100.250', `/xrpc/com.atproto.sync.getRepo?did=${bob.did}`)
  await eventLoopTurns(50)
  const taken = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: bob.did }, takedown: { applied: true } },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect([taken.status, last.status]).toEqual([200, null])
  await Promise.all(crowd.map((one) => one.leave()))
  const { status, body } = await last.read()
  expect([status, JSON.parse(Buffer.from(body).toString()).error]).toEqual([400, 'RepoTakendown'])
})

test('whoever takes nothing gives its place to the next, and still gets all of it later', async () => {
  const crowd = await Promise.all(Array.from({ length: 2 * OF_NETWORK }, (_, i) => admitted(`198.51.100.${i}`)))
  await until(async () => (await exports()).toString() === [0, 0, 2 * OF_NETWORK].toString())
  for (const one of crowd.slice(0, 3)) {
    const { status, body, isWhole } = await one.read()
    expect([status, isWhole, await verify(body)]).toEqual([200, true, RECORDS])
  }
  await until(async () => (await exports()).toString() === [0, 0, 2 * OF_NETWORK - 3].toString())
})

test('where too many wait, the newest of the largest crowd are told to come back', async () => {
  const crowd = Array.from({ length: MAX_WAITING + 200 }, (_, i) => download(`198.51.100.${i % 250}`))
  const refused = () => crowd.filter(({ status }) => status === 503)
  await until(() => refused().length > 100)
  const { headers, body } = await refused()[0]!.read()
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect(JSON.parse(Buffer.from(body).toString())).toEqual({
    error: 'ServiceUnavailable',
    message: 'Too many requests of this kind are in progress',
  })
  // Another network comes in all the same.
  const newcomer = await fetch(pds.url + path(), { headers: { 'x-forwarded-for': '192.0.2.1' } })
  expect(newcomer.status).toBe(200)
  expect((await newcomer.arrayBuffer()).byteLength).toBeGreaterThan(RECORDS * RECORD_CHARS)
  expect((await exports())[1]).toBeGreaterThan(0)
})

test('a client that goes away before it has an answer, or asks for headers alone, leaves nothing behind', async () => {
  for (let i = 0; i < 20; i++) await download('198.51.100.1').leave()
  for (let i = 0; i < 20; i++) {
    const response = await fetch(pds.url + path(), { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/vnd.ipld.car'])
  }
  await until(async () => (await exports()).toString() === '0,0,0')
})

test('a coded archive has a place too, until its client goes away', async () => {
  const gone = new AbortController()
  const response = await fetch(pds.url + path(), { headers: { 'accept-encoding': 'gzip' }, signal: gone.signal })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  await response.body!.getReader().read()
  gone.abort()
  await until(async () => (await exports()).toString() === '0,0,0')
})

test('blocks of many megabytes arrive whole, and take no memory for a client that does not read', async () => {
  const blocks = `/xrpc/com.atproto.sync.getBlocks?did=${alice.did}&${cids.map((cid) => `cids=${cid}`).join('&')}`
  const slow = Array.from({ length: 20 }, () => download('198.51.100.1', blocks))
  const reader = download('203.0.113.1', blocks)
  const { status, isWhole, body } = await reader.read()
  expect([status, isWhole]).toEqual([200, true])
  expect(body.length).toBeGreaterThan(RECORDS * RECORD_CHARS)
  for (const one of slow.slice(0, 2)) expect((await one.read()).body.length).toBe(body.length)
  const missing = 'bafyreib2rxk3rh6kzwq7zj4lj5m6u6i3j2vsm2d6jjnqn5n7u7hqv3b2da'
  expect(await request(`${pds.url}${blocks}&cids=${missing}`)).toMatchObject({
    status: 400,
    body: { error: 'BlockNotFound', message: `Could not find cids: ${missing}` },
  })
})
