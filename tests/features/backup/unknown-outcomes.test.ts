/**
 * What is told of a change is true, whatever fails around it. One that waits for the destination of the continuous
 * backup when that fails may still take effect: whoever asked for it is told so, and finds it whole once it has.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { blobFolder } from '../../../src/features/data/blobs/open-storage.ts'
import { logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { Tables } from '../../support/tables.ts'
import { until } from '../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-unknown-'))
afterAll(() => rmSync(folder, { recursive: true }))
const place = join(folder, 'destination')
const { pds, line } = useWorldOnFile({
  line: true,
  config: { backup: { continuous: place, continuousPromise: 'sync' }, blobs: { store: 'folder' } },
})

/** At the destination, a file takes the place of the folder. */
let isAway = false
function takeAway(): void {
  isAway = true
  renameSync(place, `${place}.away`)
  writeFileSync(place, '')
}
function bringBack(): void {
  if (!isAway) return
  isAway = false
  rmSync(place)
  renameSync(`${place}.away`, place)
}
const isReady = async () => {
  const { status, body } = await request(`${pds.url}/readyz`)
  return status === 200 && body.continuousBackup?.promise === 'sync'
}
beforeEach(() => until(isReady))
afterEach(bringBack)

const undecided = { status: 503, body: { message: expect.stringContaining('the change may still take effect') } }

test('an account whose directory entry is made, and whose last step waits, is there once that has taken effect', async () => {
  line.fate = ({ method }) => {
    if (method === 'POST') takeAway()
    return 'answered'
  }
  const json = { handle: 'alice.test', email: 'alice@example.com', password: PASSWORD }
  expect(await xrpc(pds, 'com.atproto.server.createAccount', { json })).toMatchObject(undecided)
  bringBack()
  await until(async () => (await pds.count('account')) === 1)
  await logIn(pds, json, PASSWORD)
})

test('a blob whose row waits has its bytes once that has taken effect', async () => {
  const bob = await Uploader.join(pds, 'bob')
  takeAway()
  expect(await bob.post('kept for a row that waits')).toMatchObject(undecided)
  bringBack()
  await until(async () => (await pds.count('blob')) === 1)
  const [{ cid, mime_type: mimeType, size }] = (await pds.rows('blob')) as [Tables['blob']]
  await bob.refer('com.example.note/one', { $type: 'blob', ref: { $link: cid }, mimeType, size })
  expect(await (await bob.read(cid)).text()).toBe('kept for a row that waits')
})

test('an account is told to be deleted once it is, although its files cannot be removed yet', async () => {
  const eve = await Uploader.join(pds, 'eve')
  const { ref } = await eve.upload('nobody can remove this')
  const path = blobFolder(pds.ctx).pathOf(ref.$link)
  rmSync(path)
  mkdirSync(join(path, 'full'), { recursive: true })
  const deleted = await xrpc(pds, 'com.atproto.admin.deleteAccount', {
    json: { did: eve.did },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(deleted.status).toBe(200)
  expect(await pds.count('account', { did: eve.did })).toBe(0)
})
