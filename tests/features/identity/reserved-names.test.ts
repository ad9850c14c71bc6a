/** Names that nobody may take as a handle, and those who had them before they were reserved. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import {
  begin,
  claimCode,
  forCeremonies,
  mobile,
  newWallet,
  prepared,
  sendDid,
  type PendingWallet,
} from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let holder: TestAccount
let alice: TestAccount
/** In the middle of a ceremony. */
let wallet: PendingWallet
const { pds } = useWorld({ config: forCeremonies })
beforeAll(async () => {
  await pds.restart({ reservedHandles: [] })
  holder = await createAccount(pds, 'atp')
  alice = await createAccount(pds, 'alice')
  wallet = await begin(pds, 'lexicon')
  await pds.restart()
  holder = await logIn(pds, holder, PASSWORD)
  alice = await logIn(pds, alice, PASSWORD)
})

const signUp = (handle: string) =>
  xrpc(pds, 'com.atproto.server.createAccount', { json: { handle, email: 'new@example.com', password: PASSWORD } })
const rename = (account: TestAccount, handle: string) =>
  account.call('com.atproto.identity.updateHandle', { json: { handle } })
const reserved = { status: 400, body: { error: 'HandleNotAvailable', message: 'Reserved handle' } }

test.each(['plc', 'bsky', 'bluesky', 'handle', 'nsid', 'webmaster', 'login', 'contact-us', 'taylorswift', 'NSID'])(
  '%s is reserved, as at the reference server: for a sign-up, a rename, and a ceremony',
  async (label) => {
    const handle = `${label}.test`
    expect(await signUp(handle)).toMatchObject(reserved)
    expect(await rename(alice, handle)).toMatchObject(reserved)
    expect(await mobile(pds, { ...wallet, handle: handle as never })).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_HANDLE' } },
    })
    const { body } = await xrpc(pds, `com.atproto.temp.checkHandleAvailability?handle=${handle}`)
    expect(body.result.$type).toEndWith('#resultUnavailable')
  },
)

test('a name that is reserved is free behind another label, and at a domain elsewhere is not ours to reserve', async () => {
  expect(await rename(alice, 'bsky-alice.test')).toMatchObject({ status: 200 })
  expect(await rename(alice, 'bsky.example.com')).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect(await rename(alice, 'alice.test')).toMatchObject({ status: 200 })
})

test('an account that has the name keeps it, and nobody else gets it', async () => {
  expect((await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=atp.test')).body.did).toBe(holder.did)
  expect(await rename(holder, 'atp.test')).toMatchObject({ status: 200 })
  expect(await rename(alice, 'atp.test')).toMatchObject({
    status: 400,
    body: { message: 'Handle already taken: atp.test' },
  })
  expect((await signUp('atp.test')).status).toBe(400)
  // Whoever gives it up gives it up for good.
  expect(await rename(holder, 'former-atp.test')).toMatchObject({ status: 200 })
  expect(await rename(holder, 'atp.test')).toMatchObject(reserved)
})

test('a wallet whose name was reserved in the middle of its ceremony ends the ceremony with it', async () => {
  const again = await mobile(pds, wallet)
  expect(again.status).toBe(201)
  const back = { ...wallet, token: again.body.sessionToken }
  const made = await sendDid(pds, back, await prepared(pds, back))
  expect(made.status).toBe(200)
  const json = { accountId: made.body.did, handle: wallet.handle }
  expect(await request(`${pds.url}/v1/handles`, { json, headers: bearer(made.body.session_token) })).toMatchObject({
    status: 200,
  })
})

test('the operator may give out any name, and may have a list of their own', async () => {
  const admin = (json: object) =>
    xrpc(pds, 'com.atproto.admin.updateAccountHandle', { json, headers: bearer(ADMIN_TOKEN) })
  expect(await admin({ did: alice.did, handle: 'lex.test' })).toMatchObject({ status: 200 })
  await pds.restart({ reservedHandles: ['special'] })
  expect(await signUp('special.test')).toMatchObject(reserved)
  expect(await signUp('nsid.test')).toMatchObject({ status: 200 })
})

test('a name of the server itself, or a domain of handles below another, is nobody’s handle', async () => {
  const names = ['square.test', 'circle.test', 'groups.test']
  await using own = await startPds({
    ...forCeremonies,
    publicUrl: 'https://square.test',
    formerUrls: ['https://circle.test'],
    availableUserDomains: ['test', 'groups.test'],
    reservedHandles: [],
  })
  const carol = await createAccount(own, 'carol')
  for (const handle of names) {
    const json = { handle, email: 'new@example.com', password: PASSWORD }
    expect(await xrpc(own, 'com.atproto.server.createAccount', { json })).toMatchObject(reserved)
    expect(await rename(carol, handle)).toMatchObject(reserved)
    const begun = await mobile(own, { ...newWallet('dan'), handle: handle as never, code: await claimCode(own) })
    expect(begun).toMatchObject({ status: 400, body: { error: { code: 'INVALID_HANDLE' } } })
  }
  expect((await rename(carol, 'circles.test')).status).toBe(200)
})
