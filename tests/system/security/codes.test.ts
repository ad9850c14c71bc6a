/** Every code that somebody types can be guessed only so often: then the right one is refused too. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { openAgentClaim, registerAgent } from '../../support/clients/agent.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { giveRole } from '../../support/clients/role-holder.ts'
import { sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { agentAuth: { anonymousEnabled: true }, inviteCodeRequired: true } })

let addresses = 0
/** Each guesser has an address of its own, at a provider of its own. */
function from(): Record<string, string> {
  addresses++
  return { 'x-forwarded-for': `${20 + (addresses >> 8)}.${addresses & 255}.0.7` }
}
const operate = async (path: string, json: object = {}) =>
  (await request(`${pds.url}${path}`, { json, headers: bearer(ADMIN_TOKEN) })).body
let people = 0
async function join(name: string): Promise<TestAccount> {
  const { code } = await operate('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
  return createAccount(pds, `${name}-${++people}`, { inviteCode: code }, from())
}
const mailedTo = async ({ email }: TestAccount, ask: () => Promise<Answer>) => {
  expect((await ask()).status).toBe(200)
  return lastCode(pds, email)
}

interface Guessing {
  /** The right code. */
  code: string
  /** A code of the same form that is wrong. */
  wrong: string
  /** Wrong ones after which it is refused. */
  tries: number
  /** How many codes there are, in bits. */
  bits: number
  /** Gives a code. `headers` are those of the guesser. */
  give(code: string, headers: Record<string, string>): Promise<Answer>
  /** Whether each guess may come from another address, and counts all the same. */
  fromAnywhere: boolean
}

const LETTERS = { wrong: 'AAAAA-BBBBB', bits: 50, tries: 5, fromAnywhere: true }
const DIGITS = { wrong: '000000', bits: 20, tries: 8, fromAnywhere: true }

async function ofMail(name: string, ask: string, give: (holder: TestAccount, token: string) => [string, object]) {
  const holder = await join(name)
  const code = await mailedTo(holder, () => holder.call(ask, { method: 'POST' }))
  return {
    ...LETTERS,
    code,
    give: (token: string, headers: Record<string, string>) => {
      const [nsid, json] = give(holder, token)
      return holder.call(nsid, { json, headers })
    },
  }
}

async function withApp(name: string): Promise<FactorHolder> {
  const holder = new FactorHolder(pds, await join(name))
  await holder.signIn()
  await holder.addApp()
  return holder
}

const signIn = (identifier: string, password: string, headers: Record<string, string>, more: object = {}) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password, ...more }, headers })

const codes: Readonly<Record<string, () => Promise<Guessing>>> = {
  'a password': async () => ({
    code: PASSWORD,
    wrong: 'wrong',
    tries: 5,
    bits: 40,
    fromAnywhere: true,
    give: await join('pia').then(
      ({ did }) =>
        (code: string, headers: Record<string, string>) =>
          signIn(did, code, headers),
    ),
  }),
  'the code that confirms an address': () =>
    ofMail('conny', 'com.atproto.server.requestEmailConfirmation', ({ email }, token) => [
      'com.atproto.server.confirmEmail',
      { email, token },
    ]),
  'the code that deletes an account': () =>
    ofMail('dele', 'com.atproto.server.requestAccountDelete', ({ did, password }, token) => [
      'com.atproto.server.deleteAccount',
      { did, password, token },
    ]),
  'the code that changes an identity': () =>
    ofMail('ida', 'com.atproto.identity.requestPlcOperationSignature', (_, token) => [
      'com.atproto.identity.signPlcOperation',
      { token },
    ]),
  async 'the code that changes an address'() {
    const holder = await join('ed')
    const { email } = holder
    const ask = (nsid: string) => () => holder.call(nsid, { method: 'POST' })
    const token = await mailedTo(holder, ask('com.atproto.server.requestEmailConfirmation'))
    await holder.call('com.atproto.server.confirmEmail', { json: { email, token } })
    await ask('com.atproto.server.requestEmailUpdate')()
    const json = (code: string) => ({ email: `new-${email}`, token: code })
    return {
      ...LETTERS,
      code: await lastCode(pds, email, 2),
      give: (code, headers) => holder.call('com.atproto.server.updateEmail', { json: json(code), headers }),
    }
  },
  async 'the mailed code of a sign-in'() {
    const holder = await join('mel')
    const { email, did } = holder
    const token = await mailedTo(holder, () =>
      holder.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' }),
    )
    await holder.call('com.atproto.server.confirmEmail', { json: { email, token } })
    await holder.call('com.atproto.server.updateEmail', { json: { email, emailAuthFactor: true } })
    expect((await signIn(did, PASSWORD, from())).status).toBe(401)
    const code = await lastCode(pds, email, 2)
    const give = (authFactorToken: string, headers: Record<string, string>) =>
      signIn(did, PASSWORD, headers, { authFactorToken })
    return { ...LETTERS, code, give }
  },
  async 'the code of an authenticator app'() {
    const holder = await withApp('app')
    const give = (authFactorToken: string, headers: Record<string, string>) =>
      signIn(holder.account.did, PASSWORD, headers, { authFactorToken })
    return { ...DIGITS, code: holder.nextCode(), give }
  },
  async 'a recovery code'() {
    const holder = await withApp('rec')
    const give = (authFactorToken: string, headers: Record<string, string>) =>
      signIn(holder.account.did, PASSWORD, headers, { authFactorToken })
    return { ...DIGITS, wrong: 'aaaa-bbbb-cccc-dddd', bits: 80, code: holder.recoveryCodes[0]!, give }
  },
  async 'the code of an operator’s app'() {
    const holder = await withApp('opa')
    const { did: account } = holder.account
    await giveRole(pds, account, 'owner')
    const give = (authFactorToken: string, headers: Record<string, string>) =>
      request(`${pds.url}/v1/admin/sessions`, { json: { account, password: PASSWORD, authFactorToken }, headers })
    return { ...DIGITS, code: holder.nextCode(), give }
  },
  async 'the code of a program that asks for access'() {
    const holder = await join('agi')
    const { body } = await registerAgent(pds, { type: 'anonymous' }, from())
    const { user_code: code } = (await openAgentClaim(pds, body.claim_token)).body.claim_attempt
    const json = (userCode: string) => ({ user_code: userCode })
    const give = (userCode: string, headers: Record<string, string>) =>
      request(`${pds.url}/agent/identity/claim/confirm`, {
        json: json(userCode),
        headers: { ...bearer(holder.accessJwt), ...headers },
      })
    return { code, wrong: code === '000000' ? '000001' : '000000', bits: 20, tries: 10, fromAnywhere: true, give }
  },
  async 'the code of a forgotten password'() {
    const holder = await join('fred')
    const code = await mailedTo(holder, () =>
      xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: holder.email }, headers: from() }),
    )
    const give = (token: string, headers: Record<string, string>) =>
      xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password: 'a new password' }, headers })
    return { ...LETTERS, code, tries: 50, fromAnywhere: false, give }
  },
  async 'an invite code'() {
    const { code } = await operate('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
    return { code, wrong: 'localhost-aaaaa-bbbbb', bits: 50, tries: 100, fromAnywhere: false, give: giveInvite }
  },
  async 'a claim code'() {
    const { codes: made } = await operate('/v1/accounts/claim-codes', { count: 1 })
    return { code: made[0], wrong: 'AAAAAA', bits: 31, tries: 100, fromAnywhere: false, give: giveInvite }
  },
  async 'the code of a transfer'() {
    const { code } = await operate('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
    const holder = await sovereignAccount(pds, `tara-${++people}`, { inviteCode: code })
    const wallet = await walletSession(pds, holder.did)
    const begun = await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(wallet) })
    const give = (transferCode: string, headers: Record<string, string>) =>
      request(`${pds.url}/v1/transfer/accept`, {
        json: { transferCode, devicePublicKey: 'z', platform: 'ios' },
        headers,
      })
    return { code: begun.body.transferCode, wrong: 'AAAAAA', bits: 31, tries: 30, fromAnywhere: false, give }
  },
}

let guests = 0
const giveInvite = (inviteCode: string, headers: Record<string, string>): Promise<Answer> => {
  const name = `guest${++guests}`
  const json = { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, inviteCode }
  return xrpc(pds, 'com.atproto.server.createAccount', { json, headers })
}

/** One guess in so many may succeed before the code is void, or its guesser has to wait. */
const LEAST_ODDS = 2 ** 16

/** Gives the right code after so many wrong ones. Returns the status. */
async function giveAfter(wrongs: number, { code, wrong, give, fromAnywhere }: Guessing): Promise<number> {
  const one = from()
  const address = () => (fromAnywhere ? from() : one)
  for (let i = 0; i < wrongs; i++) {
    const { status } = await give(wrong, address())
    expect({ i, isWrong: [400, 401].includes(status) }).toEqual({ i, isWrong: true })
  }
  return (await give(code, address())).status
}

test.each(Object.keys(codes))('%s is good after some wrong ones, and refused after one more', async (name) => {
  const first = await codes[name]!()
  const { tries, bits } = first
  expect(2 ** bits / tries).toBeGreaterThan(LEAST_ODDS - 1)
  expect(await giveAfter(tries - 1, first)).toBe(200)
  // Made afterwards: the code of an app is old a minute later.
  expect([400, 401, 429]).toContain(await giveAfter(tries, await codes[name]!()))
})

test('wrong codes of transfers count over all addresses, and leave nothing for the right one', async () => {
  const right = await codes['the code of a transfer']!()
  const [LIMIT, LAST] = [1000, 30]
  expect(2 ** right.bits / (LIMIT * 4)).toBeGreaterThan(LEAST_ODDS)
  pds.clock.advance({ secs: 300 })
  const guess = () => right.give(right.wrong, from())
  let wrongs = LIMIT - LAST
  await pds.ctx.limits.chargeShared({ name: 'transferAcceptTotal', key: 'all', cost: wrongs })
  while (wrongs <= LIMIT && (await guess()).status === 400) wrongs++
  expect(wrongs).toBe(LIMIT)
  expect((await right.give(right.code, from())).status).toBe(429)
  pds.clock.advance({ secs: 300 })
  expect((await right.give(right.code, from())).status).toBe(200)
})

test('one network cannot use up the codes of transfers that all may try', async () => {
  const right = await codes['the code of a transfer']!()
  pds.clock.advance({ secs: 300 })
  const near = (host: number) => ({ 'x-forwarded-for': `203.0.113.${host}` })
  const statuses = new Set<number>()
  for (let host = 1; host < 200; host++) statuses.add((await right.give(right.wrong, near(host))).status)
  expect([...statuses].toSorted()).toEqual([400, 429])
  expect((await right.give(right.code, from())).status).toBe(200)
})

test('what nobody types is as long as a key', async () => {
  const holder = await join('kim')
  await logIn(pds, holder, holder.password)
  const { id } = await operate('/v1/admin/cases', { subject: holder.did, reason: 'a test' })
  await operate(`/v1/admin/cases/${id}/decision`, { act: 'warn', reason: 'a test' })
  await pds.runSteps()
  // Of two nodes, the other one may send the mail about the sign-in later.
  const texts = pds.mails.filter(({ to }) => to === holder.email).map(({ text }) => text)
  expect(/appeal\?code=([\w-]+)/.exec(texts.join())![1]).toMatch(/^[\w-]{43}$/)
})
