/** Spaces that are switched off: nothing asks their tables, and what is stored stays private until it is on again. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, basic, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import type { Table } from '../../support/tables.ts'
import { useWorld } from '../../support/world.ts'

// A pass over 120 repositories rests between its pieces.
setDefaultTimeout(60_000)

const NOTE = 'test.forum.note'
const SCOPE = 'atproto repo:* blob:*/* space:*?authority=*&collection=* space:*?authority=*&action=read'
const tables: Table[] = ['space_repo', 'space_place', 'space_record', 'space_op', 'space_blob_reference']
const on = { spaces: { enabled: true } }
const off = { spaces: { enabled: false } }
const { pds } = useWorld({ config: { rateLimit: { enabled: false }, ...off } })

const placeOf = ({ did }: TestAccount) => ({ space: `at://${did}/space/test.forum.space/a`, repo: did })
async function signIn(account: TestAccount) {
  const client = new OAuthClient(pds, loopbackClientId(SCOPE))
  return {
    client,
    tokens: await client.signIn({ identifier: account.did, password: account.password }, { scope: SCOPE }),
  }
}
const upload = (account: TestAccount, text: string) =>
  account.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(text),
  })

describe('while spaces are off', () => {
  test('no start, sign-in, write, read or token of an app asks their tables', async () => {
    const back = []
    for (const table of tables) back.push(await pds.hide(table))
    await pds.restart()
    const alice = await createAccount(pds, 'alice')
    const { client, tokens } = await signIn(alice)
    const { body: refreshed } = await client.refresh(tokens.refresh_token)
    expect([tokens.scope, refreshed.scope]).toEqual(['atproto repo:* blob:*/*', 'atproto repo:* blob:*/*'])
    const { body: uploaded } = await upload(alice, 'a public file')
    const repo = alice.did
    const record = (rkey: string) => ({ repo, collection: NOTE, rkey, record: { file: uploaded.blob } })
    for (const [nsid, json] of [
      ['com.atproto.repo.createRecord', record('a')],
      ['com.atproto.repo.putRecord', record('b')],
      ['com.atproto.repo.deleteRecord', { repo, collection: NOTE, rkey: 'a' }],
    ] as const)
      expect([nsid, (await alice.call(nsid, { json })).status]).toEqual([nsid, 200])
    const cid = uploaded.blob.ref.$link
    for (const path of [
      `com.atproto.sync.getRepo?did=${repo}`,
      `com.atproto.sync.getBlob?did=${repo}&cid=${cid}`,
      `com.atproto.sync.listBlobs?did=${repo}`,
      `com.atproto.repo.listRecords?repo=${repo}&collection=${NOTE}`,
      'com.atproto.server.getSession',
      'com.atproto.repo.listMissingBlobs',
    ])
      expect([path, (await alice.call(path)).status]).toEqual([path, 200])
    for (const method of ['createRecord', 'applyWrites', 'getRecord', 'listSpaces', 'getBlob', 'getRepo', 'anything'])
      expect((await client.call(refreshed.access_token, `com.atproto.space.${method}`)).status).toBe(501)
    for (const restore of back) await restore()
  })

  test('what was written stays private and stays here, and can be read when they are on again', async () => {
    await pds.restart(on)
    const bob = await createAccount(pds, 'bob')
    const { client, tokens } = await signIn(bob)
    expect(tokens.scope).toContain('space:')
    const { body: uploaded } = await upload(bob, 'a file in a space')
    const json = { ...placeOf(bob), collection: NOTE, rkey: 'a', record: { file: uploaded.blob } }
    expect((await client.call(tokens.access_token, 'com.atproto.space.createRecord', {}, { json })).status).toBe(200)

    await pds.restart(off)
    const { body: refreshed } = await client.refresh(tokens.refresh_token)
    expect(refreshed.scope).toBe('atproto repo:* blob:*/*')
    const params = new URLSearchParams({ ...placeOf(bob), cid: uploaded.blob.ref.$link })
    const inSpace = (token: string) => client.call(token, `com.atproto.space.getBlob?${params}`)
    expect((await inSpace(tokens.access_token)).status).toBe(501)
    const open = `${pds.url}/xrpc/com.atproto.sync.getBlob?did=${bob.did}&cid=${uploaded.blob.ref.$link}`
    for (const headers of [{}, basic('admin', ADMIN_TOKEN), bearer(bob.accessJwt)])
      expect((await request(open, { headers })).body.error).toBe('BlobNotFound')
    await pds.age('blob')
    await pds.runSweep('blob-gc')
    await pds.runSweep('spaces')
    const archive = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(bob.accessJwt) })
    expect((await archiveIn(await archive.bytes()).contents()).has('spaces/1.car')).toBe(true)

    await pds.restart(on)
    const { body: again } = await client.refresh(refreshed.refresh_token)
    expect(again.scope).toContain('space:')
    expect((await inSpace(again.access_token)).status).toBe(200)
  })

  test('they are gone with their account, however many they are', async () => {
    await pds.restart(on)
    const carol = await createAccount(pds, 'carol')
    const { client, tokens } = await signIn(carol)
    const write = (i: number) =>
      client.call(
        tokens.access_token,
        'com.atproto.space.createRecord',
        {},
        { json: { ...placeOf(carol), space: `${placeOf(carol).space}${i}`, collection: NOTE, record: {} } },
      )
    for (let i = 0; i < 120; i++) expect((await write(i)).status).toBe(200)
    await pds.restart(off)
    const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: carol.did },
      headers: basic('admin', ADMIN_TOKEN),
    })
    expect(status).toBe(200)
    expect(await pds.count('space_repo', { did: carol.did })).toBe(0)
    expect(await pds.runSweep('spaces')).toMatchObject({ repos: 120 })
    const left = await pds.rows('space_repo', {}, ['space'])
    expect(left.filter(({ space }) => space.includes(carol.did))).toEqual([])
  })
})
