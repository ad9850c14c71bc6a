/** Clients that ask for long records, and take nothing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../../support/archive.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { SlowDownload } from '../../support/faults/slow-download.ts'
import { memoryMiB } from '../../support/process-memory.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

/** In JSON, each of these characters has six. */
const TEXT = '\u0001'.repeat(1_000_000)
const CLIENTS = 60

const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))
const path = () => `/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=org.example.note&rkey=1`
beforeAll(async () => {
  const archive = archiveOf(
    alice.did,
    nextTid(null, pds.clock.now() * 1000, 7),
    { 'org.example.note/1': { $type: 'org.example.note', text: TEXT } },
    signingKey('k256', new Uint8Array(32).fill(9)),
  )
  const imported = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body: archive.bytes as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(alice.accessJwt) },
  })
  expect(imported.status).toBe(200)
})

const downloads: SlowDownload[] = []
afterAll(() => Promise.all(downloads.map((download) => download.leave())))

test('a long record arrives whole, coded or not, and its length is told without it', async () => {
  for (const coding of ['identity', 'gzip', 'br']) {
    const response = await fetch(pds.url + path(), { headers: { 'accept-encoding': coding } })
    expect(response.status).toBe(200)
    expect(((await response.json()) as { value: { text: string } }).value.text).toBe(TEXT)
    const etag = response.headers.get('etag')!
    const again = await fetch(pds.url + path(), { headers: { 'if-none-match': etag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
  }
  const head = await fetch(pds.url + path(), { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
  expect(Number(head.headers.get('content-length'))).toBeGreaterThan(6 * TEXT.length)
})

test('for clients that take nothing, a long record is not kept in memory', async () => {
  Bun.gc(true)
  const before = memoryMiB(process.pid, 'VmRSS')
  for (let i = 0; i < CLIENTS; i++) downloads.push(new SlowDownload(pds.url, path(), `198.51.100.${i}`))
  await until(() => downloads.every(({ status }) => status === 200))
  Bun.gc(true)
  // All of them together have 350 MiB.
  expect(memoryMiB(process.pid, 'VmRSS') - before).toBeLessThan(150)
  const { status, isWhole, body } = await downloads[0]!.read()
  expect([status, isWhole]).toEqual([200, true])
  expect(JSON.parse(Buffer.from(body).toString()).value.text).toBe(TEXT)
})
