/** The tables of an archive beside other requests. */
import { expect, test } from 'bun:test'
import { recordTables, tableText } from '../../../src/features/data/account-archives/record-tables.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf, post } from '../../support/archive.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

test('others are served between the large records of a table', async () => {
  const alice = await createAccount(pds, 'alice')
  const large = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`app.bsky.feed.post/${i + 10}`, post(`${i} ${'x'.repeat(400_000)}`)]),
  )
  const key = signingKey('k256', new Uint8Array(32).fill(9))
  const imported = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    body: archiveOf(alice.did, nextTid(null, pds.clock.now() * 1000, 7), large, key).bytes as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(alice.accessJwt) },
  })
  expect(imported.status).toBe(200)
  let turns = 0
  let isOver = false
  const others = () => {
    turns++
    if (!isOver) setImmediate(others)
  }
  setImmediate(others)
  const posts = recordTables.find(({ name }) => name === 'posts')!
  const text = (await Array.fromAsync(tableText(pds.ctx.db, alice.did as Did, posts))).join('')
  isOver = true
  expect(text.split('\n').filter((line) => line !== '')).toHaveLength(21)
  expect(turns).toBeGreaterThan(5)
})
