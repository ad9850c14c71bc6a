/**
 * What people and operators do once somebody else was signed in to an account, and what it does to the agents that were
 * confirmed since.
 */
import { describe, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import {
  confirmAgent,
  confirmedAgent,
  exchangeAgent,
  openAgentClaim,
  pollAgent,
  registerAgent,
} from '../../support/clients/agent.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { fixedIssuer, identityAssertion, ISSUER, issuerKey } from '../../support/servers/issuer.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { eventsOf } from '../../support/agent-rows.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const NEW_PASSWORD = 'a password of the holder alone'
const provider = issuerKey('one')
let count = 0
const { pds } = useWorld({
  config: {
    agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true, trustedIssuers: [fixedIssuer([provider])] },
    rateLimit: { enabled: false },
  },
})

const newcomer = () => createAccount(pds, `person${count++}`)
const seen = (token: string) => request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token) })
const agentsOf = async ({ accessJwt }: Pick<TestAccount, 'accessJwt'>) =>
  (await request(`${pds.url}/v1/agents`, { headers: bearer(accessJwt) })).body.agents as Record<string, unknown>[]

async function resetPassword({ email }: TestAccount): Promise<void> {
  await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
  const json = { token: await lastCode(pds, email), password: NEW_PASSWORD }
  expect((await xrpc(pds, 'com.atproto.server.resetPassword', { json })).status).toBe(200)
}

const revokeCredentials = async ({ did }: TestAccount) =>
  (await request(`${pds.url}/v1/admin/accounts/${did}/revoke-credentials`, { json: {}, headers: bearer(ADMIN_TOKEN) }))
    .body

/** What the provider says of somebody with the address of the account. */
const vouch = ({ email }: TestAccount, sub: string) =>
  registerAgent(pds, {
    type: 'identity_assertion',
    assertion: identityAssertion(pds, provider, { claims: { email, sub } }),
  })

async function vouchedAgent(account: TestAccount, sub: string): Promise<string> {
  const { status, body } = await vouch(account, sub)
  expect({ status, error: body.error }).toEqual({ status: 401, error: 'interaction_required' })
  expect((await confirmAgent(pds, account, body.claim.user_code)).status).toBe(200)
  const { registration_id: id } = (await vouch(account, sub)).body
  return id
}

describe.each([
  ['a password reset', 'password_reset', resetPassword],
  ['the revocation of all credentials by an operator', 'operator', revokeCredentials],
] as const)('%s', (_, source, end) => {
  /** Returns the holder, who has signed in again. */
  async function cleanUp(account: TestAccount): Promise<TestAccount> {
    await end(account)
    return logIn(pds, account, end === resetPassword ? NEW_PASSWORD : account.password)
  }

  test('ends what was confirmed, at once and for good', async () => {
    const [alice, bob] = [await newcomer(), await newcomer()]
    const [agent, other, bobs] = [
      await confirmedAgent(pds, alice),
      await confirmedAgent(pds, alice),
      await confirmedAgent(pds, bob),
    ]
    const back = await cleanUp(alice)
    for (const { accessToken, assertion, claimToken } of [agent, other]) {
      expect((await seen(accessToken)).status).toBe(401)
      expect(await exchangeAgent(pds, assertion)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
      pds.clock.advance({ secs: 5 })
      expect(await pollAgent(pds, claimToken)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
    }
    expect((await eventsOf(pds, agent.registrationId)).at(-1)).toEqual({
      type: 'revoked',
      did: alice.did,
      detail: { source },
    })
    expect((await agentsOf(back)).map(({ status }) => status)).toEqual(['revoked', 'revoked'])
    expect((await seen(bobs.accessToken)).status).toBe(200)
  })

  test('leaves a code that nobody has entered, which the holder may still enter', async () => {
    const carol = await newcomer()
    const { claim_token: claimToken } = (await registerAgent(pds, { type: 'service_auth', login_hint: carol.email }))
      .body
    const back = await cleanUp(carol)
    const { user_code: code } = (await openAgentClaim(pds, claimToken)).body.claim_attempt
    expect((await confirmAgent(pds, back, code)).status).toBe(200)
  })

  test('lets a provider ask for the account again, who has to be confirmed again', async () => {
    const dora = await newcomer()
    const sub = `subject of ${dora.did}`
    const first = await vouchedAgent(dora, sub)
    const back = await cleanUp(dora)
    const second = await vouchedAgent(back, sub)
    expect(second).not.toBe(first)
    const known = { registrationType: 'identity_assertion', issuer: ISSUER, subject: sub }
    expect(await agentsOf(back)).toMatchObject([
      { registrationId: second, status: 'claimed', ...known },
      { registrationId: first, status: 'revoked', ...known },
    ])
  })

  test('does not bring back what the holder has ended', async () => {
    const erin = await newcomer()
    const sub = `subject of ${erin.did}`
    const id = await vouchedAgent(erin, sub)
    await request(`${pds.url}/v1/agents/${id}/revoke`, { json: {}, headers: bearer(erin.accessJwt) })
    await cleanUp(erin)
    expect(await vouch(erin, sub)).toMatchObject({ status: 403, body: { error: 'access_denied' } })
  })
})

test('the mail about a password reset says that programs have lost their access', async () => {
  const frank = await newcomer()
  await resetPassword(frank)
  expect((await noticesTo(pds, frank.email)).at(-1)!.text).toContain(
    'Every app, browser and program has lost its access',
  )
})

test('an operator reads how many agents lost their access, and a second time ends none', async () => {
  const grace = await newcomer()
  await confirmedAgent(pds, grace)
  expect(await revokeCredentials(grace)).toMatchObject({ agentRegistrationsRevoked: 1 })
  expect(await revokeCredentials(grace)).toMatchObject({ agentRegistrationsRevoked: 0 })
})

test('a password that is replaced by its holder, or by an operator, ends no agent, as it ends no app', async () => {
  const heidi = await newcomer()
  const { accessToken } = await confirmedAgent(pds, heidi)
  const headers = basic('admin', ADMIN_TOKEN)
  await xrpc(pds, 'com.atproto.admin.updateAccountPassword', {
    json: { did: heidi.did, password: 'given by an operator' },
    headers,
  })
  expect((await seen(accessToken)).status).toBe(200)
  expect(await thrownBy(logIn(pds, heidi, PASSWORD))).toThrow('401')
})
