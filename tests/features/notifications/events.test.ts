/**
 * The whole way of an event: from the page of an app, or from a program that asks, to what the phone does with the
 * push.
 */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { confirmAgent, openAgentClaim, pollAgent, registerAgent } from '../../support/clients/agent.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  statusOf,
} from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { Phone } from '../../support/clients/phone.ts'
import { startWith } from '../../support/servers/pushing.ts'
import { setUp } from '../../support/set-up.ts'

const plc = setUp(startPlcServer)
const relay = setUp(() => PushRelay.start({ codes: null }))
const pds = setUp(() =>
  startWith(relay, {
    plcDirectoryUrl: plc.url,
    accounts: { passwordOptional: true },
    agentAuth: { serviceAuthEnabled: true },
  }),
)
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))
const phone = setUp(() => new Phone(pds, alice))
beforeAll(async () => {
  await phone.register()
  await pds.runSteps()
})

/** The push that follows, once it is sent. */
async function nextPush(event: () => Promise<unknown>) {
  const before = relay.sent.length
  await event()
  const sent = (await relay.untilSent(before + 1))[before]!
  return {
    sent,
    read: (await phone.read(sent)) as {
      type: string
      title: string
      body: string
      data: Record<string, string | null>
    },
  }
}

test('a phone that is told of a sign-in approves it with the number on the page', async () => {
  const app = new OAuthClient(pds)
  let page: Awaited<ReturnType<typeof openConsent>> | undefined
  const { sent, read } = await nextPush(async () => {
    page = await openConsent(app, { login_hint: alice.handle }, { origin: 'https://app.example.com' })
  })
  const { requestId, matchCode, userCode, clientId } = page!
  expect(read).toMatchObject({
    type: 'login-approval',
    data: { requestId, did: alice.did, origin: 'https://app.example.com' },
  })
  expect(Object.keys(read)).toEqual(['type', 'title', 'body', 'data', 'pad'])
  expect([1023, 1024]).toContain(sent.length)
  expect(sent.ttlSecs).toBeWithin(1, 301)
  expect(JSON.stringify(read)).not.toContain(userCode)

  const preview = await previewOf(pds, { request_id: read.data['requestId']! })
  expect(preview.body).toMatchObject({ requestId, matchRequired: true })
  const decision = (number?: string) =>
    sendDecision(pds, decisionOf(pds, alice, { requestId, clientId }, { matchCode: number }))
  expect((await decision()).status).toBe(403)
  expect((await decision(matchCode!)).status).toBe(200)
  expect((await completeConsent(pds, requestId)).status).toBe(303)
})

test('a phone that is told of a program confirms it with the code that the program shows', async () => {
  const ben = await createAccount(pds, 'ben')
  const other = new Phone(pds, ben)
  await other.register()
  await pds.runSteps()
  const before = relay.sent.length
  const { body } = await registerAgent(pds, { type: 'service_auth', login_hint: ben.email })
  await pds.runSteps()
  const sent = relay.sent.slice(before)
  expect(sent).toHaveLength(1)
  expect(sent[0]!.token).toBe(other.token)
  expect([1023, 1024]).toContain(sent[0]!.length)
  const read = await other.read(sent[0]!)
  const { claim_attempt_id: attempt } = (await openAgentClaim(pds, body.claim_token)).body
  expect(read).toMatchObject({ type: 'agent_claim_pending', data: { claimAttemptId: attempt } })
  expect(JSON.stringify(read)).not.toContain(body.claim_token)
  expect((await confirmAgent(pds, ben, body.claim.user_code)).status).toBe(200)
  expect((await pollAgent(pds, body.claim_token)).status).toBe(200)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(before + 1)
})

/** While the relay does not answer a first push, so that all others wait. */
async function whileHeld(work: () => Promise<unknown>) {
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  await nextPush(() => openConsent(new OAuthClient(pds), { login_hint: alice.did }))
  await work()
  relay.held = null
  resolve()
  await pds.runSteps()
}

test('nobody who waits for an answer waits for a relay that does not answer', async () => {
  await whileHeld(async () => {
    const consent = await openConsent(new OAuthClient(pds), { login_hint: alice.did })
    expect(consent.matchCode).toMatch(/^\d\d$/)
    expect((await statusOf(pds, consent.requestId)).body).toEqual({ status: 'pending' })
    expect((await registerAgent(pds, { type: 'service_auth', login_hint: alice.email })).status).toBe(200)
  })
  const types = await Promise.all(relay.sent.slice(-2).map(async (sent) => (await phone.read(sent))['type']))
  expect(types).toEqual(['login-approval', 'agent_claim_pending'])
})

test('a phone is not told of a request that is over', async () => {
  let recent: Awaited<ReturnType<typeof openConsent>> | undefined
  const before = relay.sent.length
  await whileHeld(async () => {
    await openConsent(new OAuthClient(pds), { login_hint: alice.did })
    pds.clock.advance({ secs: 301 })
    recent = await openConsent(new OAuthClient(pds), { login_hint: alice.did })
  })
  const [, ...told] = await Promise.all(relay.sent.slice(before).map((sent) => phone.read(sent)))
  expect(told.map(({ data }) => (data as { requestId: string }).requestId)).toEqual([recent!.requestId])
})

test('a relay that is away changes no page, and passes on what it missed once it is back', async () => {
  await relay.disappear()
  const before = relay.sent.length
  const consent = await openConsent(new OAuthClient(pds), { login_hint: alice.did })
  expect(consent.matchCode).toMatch(/^\d\d$/)
  await relay.comeBack()
  // Whoever dials at the moment may still find that it is away, and tries again a few seconds later.
  await until(async () => {
    pds.clock.advance({ secs: 6 })
    await pds.runSteps()
    return relay.sent.length > before
  })
  expect((await phone.read(relay.sent[before]!))['data']).toMatchObject({ requestId: consent.requestId })
})
