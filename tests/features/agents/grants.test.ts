/** The two grants by which agents get tokens. */
import { describe, expect, test } from 'bun:test'
import { decodeJws } from '../../../src/protocol/jws.ts'
import { createAccount } from '../../support/clients/account.ts'
import {
  CLAIM_GRANT,
  confirmAgent,
  confirmedAgent,
  exchangeAgent,
  JWT_BEARER,
  openAgentClaim,
  pollAgent,
  registerAgent,
  tokenGrant,
} from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { eventsOf } from '../../support/agent-rows.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const SCOPE = 'atproto blob:*/* repo:*?action=create&action=update'

const clock = new StillClock()
const { pds } = useWorld({
  config: { agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true }, rateLimit: { enabled: false } },
  options: { clock },
})
const alice = setUp(() => createAccount(pds, 'alice'))

const refusal = ({ status, body }: Answer) => [status, body.error]
const revoke = (id: string) => pds.damage('agent_registration', { id }, { status: 'revoked' })

async function waiting() {
  const { body: registered } = await registerAgent(pds, { type: 'anonymous' })
  const { body: opened } = await openAgentClaim(pds, registered.claim_token)
  return { id: registered.registration_id, token: registered.claim_token, code: opened.claim_attempt.user_code }
}

describe('polling', () => {
  test('says pending, then pays, then says revoked', async () => {
    const { id, token, code } = await waiting()
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'authorization_pending'])
    await confirmAgent(pds, alice, code)
    clock.advance({ secs: 5 })
    const { status, headers, body } = await pollAgent(pds, token)
    expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache'])
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 300,
        scope: SCOPE,
        identity_assertion: expect.any(String),
        assertion_expires: new Date(clock.now() - 5000 + 3_600_000).toISOString(),
      },
    })
    const nowSecs = clock.now() / 1000
    expect(decodeJws(body.access_token)).toMatchObject({
      header: { alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) },
      payload: {
        iss: pds.url,
        aud: pds.url,
        sub: alice.did,
        iat: nowSecs,
        exp: nowSecs + 300,
        scope: SCOPE,
        registration_id: id,
      },
    })
    expect(decodeJws(body.access_token)!.payload['cnf']).toBeUndefined()
    expect(decodeJws(body.identity_assertion)!.payload).toMatchObject({
      sub: alice.did,
      exp: nowSecs - 5 + 3600,
      registration_type: 'anonymous',
    })
    expect(
      await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(body.access_token) }),
    ).toMatchObject({
      status: 200,
      body: { did: alice.did },
    })
    expect((await eventsOf(pds, id)).at(-1)).toEqual({
      type: 'token_exchanged',
      did: alice.did,
      detail: { grant: 'claim', scope: SCOPE },
    })
    await revoke(id)
    clock.advance({ secs: 5 })
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'access_denied'])
    expect(
      (await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(body.access_token) })).status,
    ).toBe(401)
  })

  test('is slowed down within five seconds of the last poll that was let through, known or not', async () => {
    using _ = atOneNode(pds, 'each node paces clients by itself')
    for (const token of [(await waiting()).token, 'clm_unknown', 'x']) {
      const [first] = refusal(await pollAgent(pds, token))
      expect(first).toBe(400)
      clock.advance({ secs: 1 })
      expect(refusal(await pollAgent(pds, token))).toEqual([400, 'slow_down'])
      clock.advance({ secs: 3, millis: 999 })
      expect(refusal(await pollAgent(pds, token))).toEqual([400, 'slow_down'])
      clock.advance({ millis: 1 })
      expect(refusal(await pollAgent(pds, token))[1]).not.toBe('slow_down')
    }
  })

  test('is refused without a token, with one that is unknown, and in the wrong form', async () => {
    expect(refusal(await tokenGrant(pds, CLAIM_GRANT, {}))).toEqual([400, 'invalid_request'])
    expect(refusal(await tokenGrant(pds, CLAIM_GRANT, { claim_token: '' }))).toEqual([400, 'invalid_request'])
    expect(refusal(await pollAgent(pds, 'clm_never'))).toEqual([400, 'invalid_grant'])
    const twice: [string, string][] = [
      ['claim_token', 'a'],
      ['claim_token', 'b'],
    ]
    expect(refusal(await tokenGrant(pds, CLAIM_GRANT, twice))).toEqual([400, 'invalid_request'])
  })

  test('waits before a code was asked for, and is over when the code or the token has expired', async () => {
    const { body } = await registerAgent(pds, { type: 'anonymous' })
    expect(refusal(await pollAgent(pds, body.claim_token))).toEqual([400, 'authorization_pending'])
    clock.advance({ secs: 300 })
    await openAgentClaim(pds, body.claim_token)
    clock.advance({ secs: 299 })
    expect(refusal(await pollAgent(pds, body.claim_token))).toEqual([400, 'authorization_pending'])
    clock.advance({ secs: 6 })
    expect(refusal(await pollAgent(pds, body.claim_token))).toEqual([400, 'expired_token'])
  })

  test('pays again after a lost response, with the same assertion expiry, until the window ends', async () => {
    using _ = atOneNode(pds, 'each node paces clients by itself')
    const { token, code } = await waiting()
    clock.advance({ secs: 599 })
    await confirmAgent(pds, alice, code)
    const { body: first } = await pollAgent(pds, token)
    clock.advance({ secs: 599 })
    const again = await pollAgent(pds, token)
    expect(again).toMatchObject({ status: 200, body: { assertion_expires: first.assertion_expires } })
    expect(again.body.access_token).not.toBe(first.access_token)
    clock.advance({ secs: 1 })
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'slow_down'])
    clock.advance({ secs: 5 })
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'invalid_grant'])
    expect((await exchangeAgent(pds, first.identity_assertion)).status).toBe(200)
  })

  test('sends a new assertion when the stored one is nearly over', async () => {
    await using short = await startPds({ agentAuth: { anonymousEnabled: true, assertionTtlSecs: 90 } }, { clock })
    const owner = await createAccount(short, 'olga')
    const agent = await confirmedAgent(short, owner)
    clock.advance({ secs: 30 })
    const kept = decodeJws((await pollAgent(short, agent.claimToken)).body.identity_assertion)!.payload
    expect(kept['exp']).toBe(clock.now() / 1000 + 60)
    clock.advance({ secs: 5 })
    const renewed = decodeJws((await pollAgent(short, agent.claimToken)).body.identity_assertion)!.payload
    expect(renewed['exp']).toBe(clock.now() / 1000 + 90)
  })

  test('beside a confirmation never says that a code has expired which was confirmed in time', async () => {
    for (let i = 0; i < 10; i++) {
      const { token, code } = await waiting()
      const [polled, confirmed] = await Promise.all([pollAgent(pds, token), confirmAgent(pds, alice, code)])
      expect(confirmed.status).toBe(200)
      expect([undefined, 'authorization_pending']).toContain(polled.body.error)
    }
  })

  test('pays nothing for an account that is not active', async () => {
    const bob = await createAccount(pds, 'bob')
    const agent = await confirmedAgent(pds, bob)
    await bob.call('com.atproto.server.deactivateAccount', { json: {} })
    clock.advance({ secs: 5 })
    expect(refusal(await pollAgent(pds, agent.claimToken))).toEqual([400, 'access_denied'])
    expect(refusal(await exchangeAgent(pds, agent.assertion))).toEqual([400, 'access_denied'])
    await bob.call('com.atproto.server.activateAccount', { method: 'POST' })
    expect((await exchangeAgent(pds, agent.assertion)).status).toBe(200)
  })
})

describe('exchanging an assertion', () => {
  test('gives a Bearer token of five minutes, and records it', async () => {
    const agent = await confirmedAgent(pds, alice)
    for (const resource of [undefined, pds.url, `${pds.url}/`]) {
      const { status, headers, body } = await exchangeAgent(
        pds,
        agent.assertion,
        resource === undefined ? {} : { resource },
      )
      expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache'])
      expect({ status, body }).toEqual({
        status: 200,
        body: { access_token: expect.any(String), token_type: 'Bearer', expires_in: 300, scope: SCOPE },
      })
    }
    expect((await eventsOf(pds, agent.registrationId)).slice(-3)).toEqual(
      Array(3).fill({ type: 'token_exchanged', did: alice.did, detail: { grant: 'jwt_bearer', scope: SCOPE } }),
    )
  })

  test('is for this server alone', async () => {
    const { assertion } = await confirmedAgent(pds, alice)
    for (const resource of ['', 'https://elsewhere.example', `${pds.url}//`, `${pds.url}/xrpc`, `${pds.url}x`])
      expect([resource, ...refusal(await exchangeAgent(pds, assertion, { resource }))]).toEqual([
        resource,
        400,
        'invalid_target',
      ])
    const both: [string, string][] = [
      ['assertion', assertion],
      ['resource', pds.url],
      ['resource', 'https://elsewhere.example'],
    ]
    expect(refusal(await tokenGrant(pds, JWT_BEARER, both))).toEqual([400, 'invalid_target'])
    both[2]![1] = `${pds.url}/`
    expect((await tokenGrant(pds, JWT_BEARER, both)).status).toBe(200)
  })

  test('is refused without an assertion, or with something else', async () => {
    for (const fields of [{}, { assertion: '' }] as Record<string, string>[])
      expect(refusal(await tokenGrant(pds, JWT_BEARER, fields))).toEqual([400, 'invalid_request'])
    const agent = await confirmedAgent(pds, alice)
    for (const text of [
      agent.accessToken,
      alice.accessJwt,
      alice.refreshJwt,
      agent.claimToken,
      'a.b.c',
      'x',
      `${agent.assertion}=`,
    ])
      expect(refusal(await exchangeAgent(pds, text))).toEqual([400, 'invalid_grant'])
  })

  test('ends with the hour, without leeway', async () => {
    const agent = await confirmedAgent(pds, alice)
    clock.advance({ secs: 3599, millis: 999 })
    expect((await exchangeAgent(pds, agent.assertion)).status).toBe(200)
    clock.advance({ millis: 1 })
    expect(refusal(await exchangeAgent(pds, agent.assertion))).toEqual([400, 'invalid_grant'])
  })

  test('an assertion is exchanged no more after a revocation', async () => {
    const agent = await confirmedAgent(pds, alice)
    await revoke(agent.registrationId)
    expect(refusal(await exchangeAgent(pds, agent.assertion))).toEqual([400, 'access_denied'])
  })

  test('is refused over http of another server, with its key known to nobody here', async () => {
    await using other = await startPds({ agentAuth: { anonymousEnabled: true } })
    const agent = await confirmedAgent(other, await createAccount(other, 'alice'))
    expect(refusal(await exchangeAgent(pds, agent.assertion))).toEqual([400, 'invalid_grant'])
  })

  test('is limited for each agent', async () => {
    await using limited = await startPds({ agentAuth: { anonymousEnabled: true } })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    const agent = await confirmedAgent(limited, await createAccount(limited, 'alice'))
    for (let i = 0; i < 98; i++) await exchangeAgent(limited, agent.assertion)
    expect((await exchangeAgent(limited, agent.assertion)).status).toBe(200)
    expect((await exchangeAgent(limited, agent.assertion)).status).toBe(429)
  })
})

describe('scopes', () => {
  test('narrow with the configuration and never widen', async () => {
    await using own = await startPds(
      {
        agentAuth: { anonymousEnabled: true, grantedScopes: ['atproto', 'blob:*/*', 'repo:*?action=create'] },
        rateLimit: { enabled: false },
      },
      { clock },
    )
    const agent = await confirmedAgent(own, await createAccount(own, 'alice'))
    const scopeAfter = async (grantedScopes: string[]) => {
      await own.restart({ agentAuth: { anonymousEnabled: true, grantedScopes } })
      clock.advance({ secs: 5 })
      const [exchanged, polled] = [await exchangeAgent(own, agent.assertion), await pollAgent(own, agent.claimToken)]
      expect(polled.body.scope).toBe(exchanged.body.scope)
      return exchanged.body.scope ?? exchanged.body.error
    }
    expect(await scopeAfter(['atproto', 'blob:*/*', 'repo:*?action=create', 'transition:generic'])).toBe(
      'atproto blob:*/* repo:*?action=create',
    )
    expect(await scopeAfter(['atproto', 'repo:*'])).toBe('atproto')
    expect(await scopeAfter(['blob:*/*'])).toBe('blob:*/*')
    expect(await scopeAfter(['repo:app.bsky.feed.post'])).toBe('invalid_grant')
    expect(await scopeAfter(['atproto', 'blob:*/*', 'repo:*?action=create'])).toBe(
      'atproto blob:*/* repo:*?action=create',
    )
  })
})
