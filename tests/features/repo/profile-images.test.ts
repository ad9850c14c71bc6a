/** Profiles whose images are in the form of before: a client that sends them back keeps them. */
import { expect, test } from 'bun:test'
import { Uploader } from '../../support/clients/uploader.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const PROFILE = 'app.bsky.actor.profile'
const ELSEWHERE = 'bafkreidgvpkjawlxz6sffxzwgooowe5yt7i6wsyg236mfoks77nywkptdq'

const { pds } = useWorld()
const alice = setUp(() => Uploader.join(pds, 'alice'))

const put = (record: object, collection = PROFILE) =>
  request(`${pds.url}/xrpc/com.atproto.repo.putRecord`, {
    json: { repo: alice.did, collection, rkey: 'self', record, ...(collection !== PROFILE && { validate: false }) },
    headers: bearer(alice.token),
  })
const profile = async () =>
  (await request(`${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=${PROFILE}&rkey=self`)).body
    .value

test('avatar and banner of the old form are stored in the present one, and hold their blobs', async () => {
  const [avatar, banner] = [await alice.upload('an avatar', 'image/png'), await alice.upload('a banner', 'image/jpeg')]
  const old = ({ ref, mimeType }: typeof avatar) => ({ cid: ref.$link, mimeType })
  expect(await put({ $type: PROFILE, displayName: 'Alice', avatar: old(avatar), banner: old(banner) })).toMatchObject({
    status: 200,
    body: { validationStatus: 'valid' },
  })
  expect(await profile()).toEqual({ $type: PROFILE, displayName: 'Alice', avatar, banner })
  const { body } = await request(`${pds.url}/xrpc/com.atproto.sync.listBlobs?did=${alice.did}`)
  expect(body.cids.toSorted()).toEqual([avatar.ref.$link, banner.ref.$link].toSorted())
  // One that is in the present form already stays as it is.
  expect((await put({ $type: PROFILE, displayName: 'Alicia', avatar: old(avatar), banner })).status).toBe(200)
  expect(await profile()).toEqual({ $type: PROFILE, displayName: 'Alicia', avatar, banner })
})

test('old references to what is not here, in other places, and in other records are refused', async () => {
  const here = await alice.upload('somewhere else', 'image/png')
  const old = { cid: here.ref.$link, mimeType: 'image/png' }
  const refused = { status: 400, body: { error: 'InvalidRequest' } }
  expect(await put({ $type: PROFILE, avatar: { cid: ELSEWHERE, mimeType: 'image/png' } })).toMatchObject(refused)
  expect(await put({ $type: PROFILE, avatar: { ...old, more: 1 } })).toMatchObject(refused)
  expect(await put({ $type: PROFILE, labels: old })).toMatchObject(refused)
  expect(await put({ $type: 'com.example.profile', avatar: old }, 'com.example.profile')).toMatchObject(refused)
})
