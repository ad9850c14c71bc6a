/** How many blobs an account is to have, for programs that ask again and again. */
import { expect, test } from 'bun:test'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../../support/archive.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { startPds } from '../../support/servers/pds.ts'

const foreignKey = signingKey('k256', new Uint8Array(32).fill(9))

const expected = async ({ call }: TestAccount): Promise<number> =>
  (await call('com.atproto.server.checkAccountStatus')).body.expectedBlobs

/** Import records that refer to so many blobs, in place of those that there are. */
async function referTo({ did, call }: TestAccount, blobs: number): Promise<void> {
  const references = Array.from({ length: blobs }, (_, i) => ({
    $type: 'blob',
    ref: cidOfBlob(Buffer.from(String(i))),
    mimeType: 'image/png',
    size: 1,
  }))
  const records = Object.fromEntries(
    Array.from({ length: Math.ceil(blobs / 1000) }, (_, i) => [
      `test.forum.album/${i}`,
      { $type: 'test.forum.album', pictures: references.slice(i * 1000, (i + 1) * 1000) },
    ]),
  )
  const { bytes } = archiveOf(did, nextTid(null, Date.now() * 1000, 7), records, foreignKey)
  const { status } = await call('com.atproto.repo.importRepo', {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.ipld.car' },
    body: bytes as Uint8Array<ArrayBuffer>,
  })
  expect(status).toBe(200)
}

test('a large number is counted once a minute, and a small one whenever it is asked for', async () => {
  await using pds = await startPds({}, { alone: 'each node keeps what it has counted' })
  const many = await createAccount(pds, 'many')
  const few = await createAccount(pds, 'few')
  await referTo(many, 10_000)
  await referTo(few, 10)
  expect([await expected(many), await expected(few)]).toEqual([10_000, 10])
  await referTo(many, 10_500)
  await referTo(few, 20)
  expect([await expected(many), await expected(few)]).toEqual([10_000, 20])
  pds.clock.advance({ secs: 61 })
  expect(await Promise.all([expected(many), expected(many)])).toEqual([10_500, 10_500])
  await referTo(many, 5)
  pds.clock.advance({ secs: 61 })
  expect(await expected(many)).toBe(5)
  await referTo(many, 6)
  expect(await expected(many)).toBe(6)
})
