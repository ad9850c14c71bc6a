import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const DAY_SECS = 86_400

const { pds } = useWorld({
  config: { inviteCodeRequired: true, invites: { intervalSecs: DAY_SECS }, rateLimit: { enabled: false } },
})

const operator = (nsid: string, init: { json?: object } = {}) =>
  xrpc(pds, nsid, { ...init, headers: basic('admin', ADMIN_TOKEN) })
const createCode = async (useCount = 1, forAccount?: string) =>
  (await operator('com.atproto.server.createInviteCode', { json: { useCount, forAccount } })).body.code as string
let names = 0
const signUp = (inviteCode?: string) => {
  const name = `guest${++names}`
  return xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, inviteCode },
  })
}
const newAccount = async (): Promise<TestAccount> =>
  createAccount(pds, `member${++names}`, { inviteCode: await createCode() })
/** Tokens do not last as long as the tests' days. */
const relogin = (account: TestAccount) => logIn(pds, account, PASSWORD)
const codesOf = async (account: TestAccount, params = '') =>
  (await account.call(`com.atproto.server.getAccountInviteCodes${params}`)).body.codes

const unavailable = { status: 400, body: { error: 'InvalidInviteCode', message: 'Provided invite code not available' } }

test('nobody signs up without a code that is good', async () => {
  expect(await signUp()).toMatchObject({
    status: 400,
    body: { error: 'InvalidInviteCode', message: 'No invite code provided' },
  })
  expect(await signUp('')).toMatchObject({
    status: 400,
    body: { error: 'InvalidInviteCode', message: 'No invite code provided' },
  })
  expect(await signUp('localhost-aaaaa-aaaaa')).toMatchObject(unavailable)
  const code = await createCode(2)
  expect(code).toMatch(/^localhost-[a-z2-7]{5}-[a-z2-7]{5}$/)
  expect((await signUp(code)).status).toBe(200)
  expect((await signUp(code)).status).toBe(200)
  expect(await signUp(code)).toMatchObject(unavailable)
})

test('a code of an account that is taken down lets nobody in, until the account is back', async () => {
  const owner = await newAccount()
  const code = await createCode(1, owner.did)
  const takedown = (applied: boolean) =>
    operator('com.atproto.admin.updateSubjectStatus', {
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: owner.did }, takedown: { applied } },
    })
  expect((await takedown(true)).status).toBe(200)
  expect(await signUp(code)).toMatchObject(unavailable)
  expect((await takedown(false)).status).toBe(200)
  expect((await signUp(code)).status).toBe(200)
})

test('of many who use one code at once, one gets in', async () => {
  const code = await createCode()
  const answers = await Promise.all(Array.from({ length: 6 }, () => signUp(code)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  for (const answer of answers.filter(({ status }) => status !== 200)) expect(answer).toMatchObject(unavailable)
})

test('who used a code is listed with the newest first', async () => {
  const code = await createCode(3)
  const used: string[] = []
  for (let uses = 0; uses < 3; uses++) {
    used.unshift((await signUp(code)).body.did)
    pds.clock.advance({ secs: 1 })
  }
  const { body } = await xrpc(pds, 'com.atproto.admin.getInviteCodes?limit=500', {
    headers: basic('admin', ADMIN_TOKEN),
  })
  const listed = body.codes.find((each: { code: string }) => each.code === code)
  expect(listed.uses.map(({ usedBy }: { usedBy: string }) => usedBy)).toEqual(used)
})

test('a sign-up that fails later does not use the code up', async () => {
  const code = await createCode()
  const json = { handle: 'admin.test', email: 'admin@example.com', password: PASSWORD, inviteCode: code }
  expect((await xrpc(pds, 'com.atproto.server.createAccount', { json })).status).toBe(400)
  expect((await signUp(code)).status).toBe(200)
})

test('an account earns a code a day, five unused ones at most', async () => {
  const alice = await newAccount()
  expect(await codesOf(alice)).toEqual([])
  pds.clock.advance({ secs: DAY_SECS + 1 })
  const alice2 = await relogin(alice)
  const [first] = await codesOf(alice2)
  expect(first).toMatchObject({ available: 1, disabled: false, forAccount: alice.did, createdBy: alice.did, uses: [] })
  expect(await codesOf(alice2)).toHaveLength(1)

  const guest = await signUp(first.code)
  expect(guest.status).toBe(200)
  expect(await codesOf(alice2, '?includeUsed=false')).toEqual([])
  expect((await codesOf(alice2))[0].uses).toMatchObject([{ usedBy: guest.body.did }])

  pds.clock.advance({ days: 30 })
  const alice3 = await relogin(alice)
  expect(await codesOf(alice3, '?createAvailable=false')).toHaveLength(1)
  expect(await codesOf(alice3, '?includeUsed=false')).toHaveLength(5)
})

test('the operator disables codes, and what an account would earn', async () => {
  const bob = await newAccount()
  const gift = await createCode(1, bob.did)
  expect(await codesOf(bob)).toMatchObject([{ code: gift, createdBy: 'admin', forAccount: bob.did }])
  expect((await operator('com.atproto.admin.disableInviteCodes', { json: { accounts: [bob.did] } })).status).toBe(200)
  expect(await signUp(gift)).toMatchObject(unavailable)
  expect(await codesOf(bob)).toEqual([])
  expect(await operator('com.atproto.admin.disableInviteCodes', { json: { accounts: ['admin'] } })).toMatchObject({
    status: 400,
    body: { message: 'cannot disable admin invite codes' },
  })

  await operator('com.atproto.admin.disableAccountInvites', { json: { account: bob.did } })
  pds.clock.advance({ days: 2 })
  const later = await relogin(bob)
  expect(await codesOf(later)).toEqual([])
  await operator('com.atproto.admin.enableAccountInvites', { json: { account: bob.did } })
  pds.clock.advance({ days: 1 })
  expect(await codesOf(await relogin(bob))).toHaveLength(1)
})

test('the operator makes many at once, and lists all in pages', async () => {
  const { body } = await operator('com.atproto.server.createInviteCodes', {
    json: {
      codeCount: 3,
      useCount: 2,
      forAccounts: ['did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb'],
    },
  })
  expect(body.codes.map(({ account, codes }: { account: string; codes: string[] }) => [account, codes.length])).toEqual(
    [
      ['did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 3],
      ['did:plc:bbbbbbbbbbbbbbbbbbbbbbbb', 3],
    ],
  )
  for (const sort of ['recent', 'usage']) {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page: { codes: { code: string }[]; cursor?: string } = (
        await operator(`com.atproto.admin.getInviteCodes?sort=${sort}&limit=4${cursor ? `&cursor=${cursor}` : ''}`)
      ).body
      seen.push(...page.codes.map(({ code }) => code))
      cursor = page.cursor
    } while (cursor)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual(expect.arrayContaining(body.codes.flatMap(({ codes }: { codes: string[] }) => codes)))
  }
  expect(await operator('com.atproto.admin.getInviteCodes?sort=loudest')).toMatchObject({
    status: 400,
    body: { message: 'unknown sort method: loudest' },
  })
  expect(await operator('com.atproto.admin.getInviteCodes?cursor=x')).toMatchObject({
    status: 400,
    body: { message: 'Malformed cursor' },
  })
})

test('only the operator makes codes', async () => {
  const carol = await newAccount()
  expect((await carol.call('com.atproto.server.createInviteCode', { json: { useCount: 1 } })).status).toBe(401)
  expect((await xrpc(pds, 'com.atproto.server.createInviteCode', { json: { useCount: 1 } })).status).toBe(401)
  for (const [user, password] of [
    ['admin', 'wrong'],
    ['root', ADMIN_TOKEN],
  ] as const) {
    expect(
      await xrpc(pds, 'com.atproto.server.createInviteCode', { json: { useCount: 1 }, headers: basic(user, password) }),
    ).toMatchObject({ status: 401, body: { error: 'AuthenticationRequired' } })
  }
})
