/** The page at which people enter the code of an agent and decide. It works without scripts, and without cookies. */
import { describe, expect, test } from 'bun:test'
import { endAccess } from '../../../src/http/hooks.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { confirmAgent, openAgentClaim, pollAgent, registerAgent, withClaims } from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import { eventsOf } from '../../support/agent-rows.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { transferAway } from '../../support/clients/wallet.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const GRANTED = ['atproto', 'identity:handle', 'repo:app.bsky.feed.post?action=create']

const clock = new StillClock()
const { pds } = useWorld({
  config: { agentAuth: withClaims(GRANTED), rateLimit: { enabled: false } },
  options: { clock },
})
const alice = setUp(() => createAccount(pds, 'alice'))

const submit = (
  fields: Record<string, string>,
  headers: Record<string, string> = {},
  path = '/agent/claim',
): Promise<Answer> =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

async function waiting(userAgent = 'Robot/1.0') {
  const { body } = await registerAgent(pds, { type: 'anonymous' })
  const { body: opened } = await request(`${pds.url}/agent/identity/claim`, {
    json: { claim_token: body.claim_token },
    headers: { 'user-agent': userAgent },
  })
  return {
    id: body.registration_id as string,
    token: body.claim_token as string,
    code: opened.claim_attempt.user_code as string,
  }
}

const identify = (code: string, { handle = alice.handle, password = PASSWORD } = {}, headers = {}) =>
  submit({ step: 'identify', user_code: code, identifier: handle, password }, headers)
const idOf = ({ body }: Answer) => hiddenFields(body)['id'] ?? 'none'
const decide = (id: string, decision = 'approve', headers = {}) => submit({ step: 'decide', id, decision }, headers)
const statusOf = async (id: string) => (await pds.rows('agent_registration', { id }))[0]!.status
const asks = (answer: Answer) => String(answer.body).includes('<h1>Let this program act for you?</h1>')
const says = (answer: Answer) => /role="alert" id="fault"[^>]*>([^<]*)</.exec(String(answer.body))?.[1]

describe('the form for the code', () => {
  test('is a page of its own, in no frame and no cache, with a field for six digits', async () => {
    const { status, headers, body } = await request(`${pds.url}/agent/claim`)
    expect(status).toBe(200)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    const policy = headers.get('content-security-policy')!
    for (const rule of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
      expect(policy).toContain(rule)
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(body).toContain('inputmode="numeric"')
    expect(body).toContain('name="user_code"')
    expect(body).not.toContain('wallet')
    expect(body).not.toContain('<script')
  })

  test('is filled in from the address with a code, and nothing else', async () => {
    const valueOf = async (query: string) =>
      /name="user_code"[^>]*value="([^"]*)"/.exec((await request(`${pds.url}/agent/claim?${query}`)).body)?.[1]
    expect(await valueOf('code=042917')).toBe('042917')
    expect(await valueOf('code=042-917')).toBe('042917')
    for (const query of ['', 'code=', 'code=1', 'code=%22%3E%3Cscript%3E', 'code=0429171'])
      expect(await valueOf(query)).toBe('')
  })

  test('takes GET and POST alone', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const { status, headers } = await request(`${pds.url}/agent/claim`, { method })
      expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
    }
  })

  test('is there too if programs are told to show another address', async () => {
    const verificationUri = 'https://wallet.example/confirm'
    await using own = await startPds({
      agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true, verificationUri },
    })
    const { email } = await createAccount(own, 'alice')
    const { body: anonymous } = await registerAgent(own, { type: 'anonymous' })
    expect((await openAgentClaim(own, anonymous.claim_token)).body.claim_attempt.verification_uri).toBe(verificationUri)
    const { body } = await registerAgent(own, { type: 'service_auth', login_hint: email })
    expect(body.claim.verification_uri).toBe(verificationUri)
    expect((await request(`${own.url}/agent/claim`)).status).toBe(200)
  })
})

describe('entering a code', () => {
  test('shows who asks, from where, for whom and the exact scopes in plain words', async () => {
    const { id, code } = await waiting('<b>Robot</b>/1.0')
    const answer = await identify(`${code.slice(0, 3)} ${code.slice(3)}`)
    expect(asks(answer)).toBe(true)
    for (const text of [
      '@alice.test',
      'Change your handle',
      'Create posts',
      'Far-reaching',
      'No identity provider vouches for it',
      'from the network 127.0.0.0/24',
      id,
      ...GRANTED,
    ])
      expect(answer.body).toContain(text)
    expect(answer.body).not.toContain('<b>Robot')
    expect(await statusOf(id)).toBe('active')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('judges the password first: a wrong one says nothing about the code', async () => {
    const { code } = await waiting()
    const [right, wrong] = [
      await identify(code, { password: 'not it' }),
      await identify('000000', { password: 'not it' }),
    ]
    expect(says(right)).toContain('The account or the password is wrong')
    expect(says(wrong)).toBe(says(right))
    clock.advance({ secs: 61 })
  })

  test('says one thing whatever is wrong with the code', async () => {
    const bob = await createAccount(pds, 'bob')
    const { body: bobs } = await registerAgent(pds, { type: 'service_auth', login_hint: bob.email })
    const used = await waiting()
    await confirmAgent(pds, alice, used.code)
    const expired = await waiting()
    clock.advance({ secs: 600 })
    const words = new Set<string | undefined>()
    for (const code of ['', 'nonsense', '12345', bobs.claim.user_code, used.code, expired.code]) {
      const answer = await identify(code)
      expect({ code, asks: asks(answer), status: answer.status }).toEqual({ code, asks: false, status: 200 })
      words.add(says(answer))
    }
    expect([...words]).toEqual([expect.stringContaining('This code does not exist')])
  })

  test('is for the account itself: an app password opens nothing', async () => {
    const { code } = await waiting()
    const { body: app } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'page' } })
    expect(asks(await identify(code, { password: app.password }))).toBe(false)
  })

  test('is refused for an account that is not active', async () => {
    const carol = await createAccount(pds, 'carol')
    await carol.call('com.atproto.server.deactivateAccount', { json: {} })
    const { code } = await waiting()
    expect(says(await identify(code, { handle: carol.handle }))).toContain('not active')
  })

  test('is not taken from another site', async () => {
    const { code } = await waiting()
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ])
      expect((await identify(code, {}, headers)).status).toBe(403)
  })

  test('counts together with confirmations by wallets, before anything else', async () => {
    await using own = await startPds({ agentAuth: { anonymousEnabled: true } })
    using _ = atOneNode(own, 'the last request of a limit is counted, and each node may let one more through')
    const enter = () =>
      request(`${own.url}/agent/claim`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'step=decide&id=none&decision=approve',
      })
    for (let i = 0; i < 29; i++) expect((await enter()).status).toBe(400)
    expect((await confirmAgent(own, { accessJwt: 'none' }, '000000')).status).toBe(401)
    expect((await enter()).status).toBe(429)
    expect((await confirmAgent(own, { accessJwt: 'none' }, '000000')).status).toBe(429)
  })

  test('counts failed passwords as sign-ins do', async () => {
    const dora = await createAccount(pds, 'dora')
    const { code } = await waiting()
    for (let i = 0; i < 5; i++) await identify(code, { handle: dora.handle, password: `guess ${i}` })
    expect(says(await identify(code, { handle: dora.handle }))).toContain('Too many attempts')
    expect(await thrownBy(logIn(pds, dora, PASSWORD))).toThrow('429')
    clock.advance({ secs: 61 })
  })
})

describe('deciding', () => {
  test('approval confirms the registration with what was shown', async () => {
    const { id, token, code } = await waiting()
    const answer = await decide(idOf(await identify(code)))
    expect([answer.status, answer.body]).toEqual([200, expect.stringContaining('You can return to your program')])
    expect((await eventsOf(pds, id)).at(-1)).toMatchObject({
      type: 'claim_confirmed',
      did: alice.did,
      detail: { scopes: GRANTED },
    })
    expect((await pollAgent(pds, token)).status).toBe(200)
  })

  test('names what only the account sees as a line that can be unticked, and keeps it', async () => {
    const approved = async (box: Record<string, string>) => {
      const { id, code } = await waiting()
      const shown = await identify(code)
      expect(shown.body).toContain('<input type="checkbox" name="private_reads" value="yes" checked>')
      expect(shown.body).toMatch(/Notifications, bookmarks, mutes, drafts/)
      await submit({ step: 'decide', id: idOf(shown), decision: 'approve', ...box })
      const { agents } = (await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })).body
      return {
        privateReads: agents.find(({ registrationId }: { registrationId: string }) => registrationId === id)
          .privateReads,
        detail: (await eventsOf(pds, id)).at(-1)!.detail,
      }
    }
    expect(await approved({ private_reads: 'yes' })).toEqual({
      privateReads: undefined,
      detail: { claim_attempt_id: expect.any(String), scopes: GRANTED },
    })
    expect(await approved({})).toMatchObject({ privateReads: false, detail: { scopes: GRANTED, private_reads: false } })
  })

  test('denial of what belongs to nobody ends the code alone', async () => {
    const { id, token, code } = await waiting()
    expect((await decide(idOf(await identify(code)), 'deny')).body).toContain('Denied')
    expect((await eventsOf(pds, id)).at(-1)).toMatchObject({ type: 'claim_expired', did: null })
    expect((await pollAgent(pds, token)).body.error).toBe('expired_token')
    const { body } = await openAgentClaim(pds, token)
    expect(body.claim_attempt.user_code).not.toBe(code)
  })

  test("denial of what asks for one's own account ends the registration", async () => {
    const { body } = await registerAgent(pds, { type: 'service_auth', login_hint: alice.email })
    const shown = await identify(body.claim.user_code)
    expect(shown.body).toContain(alice.email)
    await decide(idOf(shown), 'deny')
    expect((await eventsOf(pds, body.registration_id)).map(({ type }) => type)).toEqual([
      'registered',
      'claim_initiated',
      'revoked',
      'claim_expired',
    ])
    expect((await pollAgent(pds, body.claim_token)).body.error).toBe('access_denied')
  })

  test('counts once, within five minutes, and only with an id that was handed out', async () => {
    const { id, code } = await waiting()
    const first = idOf(await identify(code))
    const both = await Promise.all([decide(first), decide(first)])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 400])
    expect(await decide(first)).toMatchObject({ status: 400, body: expect.stringContaining('enter its code again') })
    const late = await waiting()
    const lateId = idOf(await identify(late.code))
    clock.advance({ secs: 300 })
    expect((await decide(lateId)).status).toBe(400)
    for (const guess of ['', 'none', 'A'.repeat(43), `${first}=`]) expect((await decide(guess)).status).toBe(400)
    expect([await statusOf(id), await statusOf(late.id)]).toEqual(['claimed', 'active'])
  })

  test('the page of a claim needs a decision', async () => {
    const { id, code } = await waiting()
    const pageId = idOf(await identify(code))
    for (const decision of ['', 'maybe', 'toString']) expect((await decide(pageId, decision)).status).toBe(400)
    expect(await statusOf(id)).toBe('active')
    expect((await decide(pageId)).status).toBe(200)
  })

  test('of two people who entered one code, the first one decides', async () => {
    const erin = await createAccount(pds, 'erin')
    const { id, code } = await waiting()
    const pages = [idOf(await identify(code)), idOf(await identify(code, { handle: erin.handle }))]
    const answers = await Promise.all(pages.map((pageId) => decide(pageId)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 403])
    expect((await eventsOf(pds, id)).filter(({ type }) => type === 'claim_confirmed')).toHaveLength(1)
  })

  test('comes too late when the code has expired, the account was deactivated or moved, or the password replaced', async () => {
    const frank = await createAccount(pds, 'frank')
    const opened = async () => {
      const claim = await waiting()
      return { ...claim, pageId: idOf(await identify(claim.code, { handle: frank.handle })) }
    }
    const expired = await waiting()
    clock.advance({ secs: 400 })
    const pageId = idOf(await identify(expired.code, { handle: frank.handle }))
    clock.advance({ secs: 200 })
    expect((await decide(pageId)).status).toBe(409)
    const inactive = await opened()
    await frank.call('com.atproto.server.deactivateAccount', { json: {} })
    expect((await decide(inactive.pageId)).status).toBe(403)
    await frank.call('com.atproto.server.activateAccount', { method: 'POST' })
    const signedOut = await opened()
    await pds.ctx.db.transaction((tx) => endAccess(pds.ctx, tx, frank.did as Did, 'new_password'))
    expect((await decide(signedOut.pageId)).status).toBe(400)
    const transferred = await opened()
    await transferAway(pds, frank.did)
    expect((await decide(transferred.pageId)).status).toBe(400)
    for (const { id } of [expired, inactive, signedOut, transferred]) expect(await statusOf(id)).toBe('active')
  })

  test('counts for nothing if the password is reset while it is on its way', async () => {
    using _ = atOneNode(pds, 'the transactions of one node are interrupted')
    for (const passedOver of [0, 1]) {
      const { id, code } = await waiting()
      const pageId = idOf(await identify(code))
      let isReset = false
      const reset = async () => {
        await pds.ctx.db.transaction((tx) => endAccess(pds.ctx, tx, alice.did as Did, 'reset_password'))
        // Nobody may wait for the transaction that this comes before.
        isReset = true
      }
      using __ = beforeTransaction(pds, reset, { passedOver })
      await decide(pageId)
      expect([isReset, await statusOf(id)]).not.toEqual([true, 'claimed'])
    }
  })

  test('fails when the configuration has changed what the program would be able to do', async () => {
    const { id, code } = await waiting()
    const pageId = idOf(await identify(code))
    await pds.restart({ agentAuth: { anonymousEnabled: true, grantedScopes: [...GRANTED, 'transition:generic'] } })
    expect((await decide(pageId)).status).toBe(400)
    expect(await statusOf(id)).toBe('active')
    await pds.restart()
  })
})

describe('on a browser where somebody is signed in', () => {
  async function signedIn(): Promise<{ cookie: string; form: Record<string, string> }> {
    const { headers } = await submit({ identifier: alice.handle, password: PASSWORD }, {}, '/account/sign-in')
    const cookie = headers.get('set-cookie')!.split(';')[0]!
    const { body } = await request(`${pds.url}/agent/claim`, { headers: { cookie } })
    expect(body).toContain('Choose an account')
    return { cookie, form: hiddenFields(body) }
  }

  test('no password is needed', async () => {
    const { cookie, form } = await signedIn()
    const { id, code } = await waiting()
    const shown = await submit({ ...form, user_code: code, account: alice.did }, { cookie })
    expect(asks(shown)).toBe(true)
    expect((await decide(idOf(shown), 'approve', { cookie })).status).toBe(200)
    expect(await statusOf(id)).toBe('claimed')
  })

  test('what is shown there is decided there alone, and only while somebody is signed in', async () => {
    const { cookie, form } = await signedIn()
    const shown = async () => {
      const { id, code } = await waiting()
      return { id, pageId: idOf(await submit({ ...form, user_code: code, account: alice.did }, { cookie })) }
    }
    const signOut = () => submit({ ...form, account: alice.did }, { cookie }, '/account/sign-out')
    const [elsewhere, here] = [await shown(), await shown()]
    expect((await decide(elsewhere.pageId)).status).toBe(400)
    expect((await decide(elsewhere.pageId, 'approve', { cookie: (await signedIn()).cookie })).status).toBe(400)
    expect((await decide(here.pageId, 'approve', { cookie })).status).toBe(200)
    const left = await shown()
    expect((await signOut()).status).toBe(303)
    expect((await decide(left.pageId, 'approve', { cookie })).status).toBe(400)
    for (const { id } of [elsewhere, left]) expect(await statusOf(id)).toBe('active')
  })

  test.each(['approve', 'deny'])(
    'to %s counts for nothing if the browser is signed out meanwhile',
    async (decision) => {
      const { cookie, form } = await signedIn()
      const { id, code } = await waiting()
      const pageId = idOf(await submit({ ...form, user_code: code, account: alice.did }, { cookie }))
      const events = await eventsOf(pds, id)
      using _ = atOneNode(pds, 'the transactions of one node are interrupted')
      using __ = beforeTransaction(pds, async () => {
        expect((await submit({ ...form, account: alice.did }, { cookie }, '/account/sign-out')).status).toBe(303)
      })
      expect((await decide(pageId, decision, { cookie })).status).toBe(401)
      expect(await eventsOf(pds, id)).toEqual(events)
    },
  )

  test('a code is not looked at for a browser that is signed out meanwhile', async () => {
    const { cookie, form } = await signedIn()
    const { code } = await waiting()
    using _ = atOneNode(pds, 'the transactions of one node are interrupted')
    using __ = beforeTransaction(pds, async () => {
      const fields = { ...form, account: alice.did }
      expect((await submit(fields, { cookie }, '/account/sign-out')).status).toBe(303)
    })
    const shown = await submit({ ...form, user_code: code, account: alice.did }, { cookie })
    expect([asks(shown), shown.status]).toEqual([false, 401])
  })

  test('only the form of the page counts, and only for accounts that are signed in', async () => {
    const { cookie, form } = await signedIn()
    const { id, code } = await waiting()
    const mallory = await createAccount(pds, `m${Math.random().toString(36).slice(2, 10)}`)
    expect(
      (await submit({ ...form, user_code: code, account: alice.did, form_token: 'guess' }, { cookie })).status,
    ).toBe(403)
    expect(
      asks(await submit({ step: 'identify', user_code: code, account: alice.did, identifier: '', password: '' })),
    ).toBe(false)
    expect(asks(await submit({ ...form, user_code: code, account: mallory.did }, { cookie }))).toBe(false)
    expect(await statusOf(id)).toBe('active')
  })

  test('an old sign-in needs the password again', async () => {
    const { headers } = await submit(
      { identifier: alice.handle, password: PASSWORD, remember: 'yes' },
      {},
      '/account/sign-in',
    )
    const cookie = headers.get('set-cookie')!.split(';')[0]!
    clock.advance({ days: 8 })
    const { body } = await request(`${pds.url}/agent/claim`, { headers: { cookie } })
    expect(body).toContain('Enter your password again')
    const { code } = await waiting()
    const fields = { ...hiddenFields(body), user_code: code, account: alice.did }
    expect(asks(await submit({ ...fields, password: '' }, { cookie }))).toBe(false)
    expect(asks(await submit({ ...fields, password: PASSWORD }, { cookie }))).toBe(true)
  })
})

test('neither codes nor ids of the page are in the log', async () => {
  const { code } = await waiting()
  const pageId = idOf(await identify(code))
  await decide(pageId)
  const log = JSON.stringify(pds.log)
  expect(log).not.toContain(pageId)
  expect(log).not.toContain(`"${code}"`)
})
