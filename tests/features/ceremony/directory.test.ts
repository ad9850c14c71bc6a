/** A directory that loses questions and answers, refuses, and is down, behind a line that a test controls. */
import { beforeEach, expect, test } from 'bun:test'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import {
  begin,
  forCeremonies,
  genesisOf,
  mobile,
  operate,
  prepared,
  sendDid,
  type PendingWallet,
} from '../../support/clients/ceremony.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc, line } = useWorld({ line: true, config: forCeremonies })
beforeEach(() => {
  line.arrived.splice(0)
})

const DIRECTORY_FAILED = { status: 502, body: { error: { code: 'PLC_DIRECTORY_ERROR' } } }
const submissions = (fate: Fate) => {
  line.fate = ({ method }) => (method === 'POST' ? fate : 'answered')
}
const stateOf = async ({ handle }: PendingWallet): Promise<string | undefined> =>
  (await operate(pds, '/v1/admin/ceremonies')).body.ceremonies.find((one: { handle: string }) => one.handle === handle)
    ?.state
const logOf = async (did: string) => (await request(`${plc.url}/${did}/log`)).body
const accountCount = () => pds.count('account')

test('a question that is lost leaves no account, and the same request finishes', async () => {
  const wallet = await begin(pds, 'lost')
  const json = await prepared(pds, wallet)
  submissions('question lost')
  expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
  expect(await accountCount()).toBe(0)
  expect(await stateOf(wallet)).toBe('did_stored')
  submissions('answered')
  const { status, body } = await sendDid(pds, wallet, json)
  expect(status).toBe(200)
  expect(await logOf(body.did)).toEqual([json.signedCreationOp])
})

test('what the wallet names for permissioned data is in the identity as it was signed', async () => {
  const wallet = await begin(pds, 'in-spaces')
  const json = await prepared(pds, wallet)
  const { verificationMethods, services } = json.signedCreationOp
  const named = {
    verificationMethods: { ...verificationMethods, atproto_space: wallet.recovery.did },
    services: { ...services, atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' } },
  }
  const signedCreationOp = genesisOf(pds, wallet, verificationMethods['atproto']!, named)
  const { status, body } = await sendDid(pds, wallet, { ...json, signedCreationOp })
  expect(status).toBe(200)
  expect(await logOf(body.did)).toEqual([signedCreationOp])
  const { body: described } = await request(`${pds.url}/xrpc/com.atproto.repo.describeRepo?repo=${body.did}`)
  expect(described.didDoc.verificationMethod.map(({ id }: { id: string }) => id)).toContain(`${body.did}#atproto_space`)
  expect(described.didDoc.service.map(({ id }: { id: string }) => id)).toContain('#atproto_space_host')
})

test('an answer that is lost is looked up in the log, and the account is made at once', async () => {
  const wallet = await begin(pds, 'unheard')
  const json = await prepared(pds, wallet)
  submissions('answer lost')
  const { status, body } = await sendDid(pds, wallet, json)
  expect(status).toBe(200)
  expect(await logOf(body.did)).toEqual([json.signedCreationOp])
})

test('an answer that is lost while the log cannot be read is found out by the next request, which is not refused', async () => {
  const wallet = await begin(pds, 'doubtful')
  const json = await prepared(pds, wallet)
  line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'question lost')
  expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
  expect(await stateOf(wallet)).toBe('did_stored')
  line.fate = () => 'answered'
  // The directory refuses a second operation that is identical; its log says why.
  const { status, body } = await sendDid(pds, wallet, json)
  expect(status).toBe(200)
  expect(await logOf(body.did)).toEqual([json.signedCreationOp])
})

test('an operation that arrives after the server has given up waiting is found, and the same request finishes', async () => {
  const wallet = await begin(pds, 'belated')
  const json = await prepared(pds, wallet)
  const late = Promise.withResolvers<void>()
  line.fate = async ({ method }): Promise<Fate> => {
    if (method === 'POST') await late.promise
    return 'answered'
  }
  expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
  expect(await stateOf(wallet)).toBe('did_stored')
  late.resolve()
  const { status, body } = await sendDid(pds, wallet, json)
  expect(status).toBe(200)
  expect((await request(`${plc.url}/${body.did}/log/last`)).body).toEqual(json.signedCreationOp)
})

test('an identity that was changed since, by its wallet, is accepted for its first operation', async () => {
  const wallet = await begin(pds, 'ahead')
  const json = await prepared(pds, wallet)
  line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'question lost')
  expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
  line.fate = () => 'answered'
  const did = (await pds.rows('ceremony', { handle: wallet.handle }))[0]!.did
  const next = nextOperation(json.signedCreationOp, { rotationKeys: [wallet.device.did, wallet.recovery.did] })!
  expect((await request(`${plc.url}/${did}`, { json: signOperation(next, wallet.device.key) })).status).toBe(200)
  expect(await sendDid(pds, wallet, json)).toMatchObject({ status: 200, body: { did } })
})

test('another identity is refused once one was stored, because the directory may have the first', async () => {
  const wallet = await begin(pds, 'changing')
  const json = await prepared(pds, wallet)
  submissions('question lost')
  expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
  submissions('answered')
  const keyId = json.signedCreationOp.verificationMethods['atproto']!
  const other = genesisOf(pds, wallet, keyId, { rotationKeys: [wallet.device.did, wallet.recovery.did] })
  expect(await sendDid(pds, wallet, { ...json, signedCreationOp: other })).toMatchObject({
    status: 500,
    body: { error: { code: 'INTERNAL_ERROR' } },
  })
  expect(line.arrived.some(({ method }) => method === 'POST')).toBe(false)
  expect(await sendDid(pds, wallet, json)).toMatchObject({ status: 200 })
})

test('an identity that the directory refuses for good can be replaced by another', async () => {
  const wallet = await begin(pds, 'refused')
  const json = await prepared(pds, wallet)
  const keyId = json.signedCreationOp.verificationMethods['atproto']!
  // Of other methods than that of the repository the directory alone decides.
  const odd = genesisOf(pds, wallet, keyId, { verificationMethods: { atproto: keyId, odd: 'did:key:zOdd' } })
  expect(await sendDid(pds, wallet, { ...json, signedCreationOp: odd })).toMatchObject(DIRECTORY_FAILED)
  expect(await stateOf(wallet)).toBe('key_issued')
  expect(await sendDid(pds, wallet, json)).toMatchObject({ status: 200 })
})

test.each([403, 404, 409, 413, 422] as const)(
  'an identity that the directory refuses with %i can be replaced by another, unless it may have it from before',
  async (status) => {
    for (const isSentBefore of [false, true]) {
      const wallet = await begin(pds, `refused-${status}-${isSentBefore}`)
      const json = await prepared(pds, wallet)
      if (isSentBefore) {
        submissions('question lost')
        expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
      }
      submissions(status)
      expect(await sendDid(pds, wallet, json)).toMatchObject(DIRECTORY_FAILED)
      submissions('answered')
      expect(await stateOf(wallet)).toBe(isSentBefore ? 'did_stored' : 'key_issued')
      const keyId = json.signedCreationOp.verificationMethods['atproto']!
      const other = genesisOf(pds, wallet, keyId, { rotationKeys: [wallet.device.did, wallet.recovery.did] })
      const sent = await sendDid(pds, wallet, { ...json, signedCreationOp: other })
      expect(sent.status).toBe(isSentBefore ? 500 : 200)
    }
  },
)

test('a directory that is slow holds up one ceremony and no other, and crossing requests make one account', async () => {
  const slow = await begin(pds, 'slow')
  const json = await prepared(pds, slow)
  const quick = await begin(pds, 'quick')
  const quickJson = await prepared(pds, quick)
  const gate = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  let held = 0
  line.fate = async ({ method, body }): Promise<Fate> => {
    if (method === 'POST' && body.includes('at://slow.test')) {
      if (++held === 2) arrived.resolve()
      await gate.promise
    }
    return 'answered'
  }
  const crossing = [sendDid(pds, slow, json), sendDid(pds, slow, json)]
  await arrived.promise
  expect(await sendDid(pds, quick, quickJson)).toMatchObject({ status: 200 })
  gate.resolve()
  const answers = await Promise.all(crossing)
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  expect(answers.find(({ status }) => status === 409)).toMatchObject({
    body: { error: { code: 'DID_ALREADY_EXISTS' } },
  })
  const { body } = answers.find(({ status }) => status === 200)!
  expect((await request(`${plc.url}/${body.did}/log/last`)).body).toEqual(json.signedCreationOp)
})

test('a session that was replaced while the directory was slow still ends with the account of its request', async () => {
  const wallet = await begin(pds, 'replaced')
  const json = await prepared(pds, wallet)
  const gate = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  line.fate = async ({ method }): Promise<Fate> => {
    if (method !== 'POST') return 'answered'
    arrived.resolve()
    await gate.promise
    return 'answered'
  }
  const first = sendDid(pds, wallet, json)
  await arrived.promise
  const { body } = await mobile(pds, wallet)
  const again = { ...wallet, token: body.sessionToken as string }
  gate.resolve()
  expect(await first).toMatchObject({ status: 200 })
  expect(await sendDid(pds, again, json)).toMatchObject({ status: 401 })
})

test('a password is hashed after the directory, and lets its owner in', async () => {
  const wallet = await begin(pds, 'locked')
  const json = await prepared(pds, wallet)
  submissions('question lost')
  expect(await sendDid(pds, wallet, { ...json, password: 'the first password' })).toMatchObject(DIRECTORY_FAILED)
  submissions('answered')
  expect(await sendDid(pds, wallet, { ...json, password: 'the second password' })).toMatchObject({ status: 200 })
  const logIn = (password: string) =>
    request(`${pds.url}/v1/accounts/sessions`, { json: { email: wallet.email, password } })
  expect(await logIn('the first password')).toMatchObject({ status: 401 })
  expect(await logIn('the second password')).toMatchObject({ status: 200 })
})
