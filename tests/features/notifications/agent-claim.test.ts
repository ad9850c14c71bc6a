/** Pushes about programs that ask for an account: once for each code, and never with the code. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent, openAgentClaim, pollAgent, registerAgent } from '../../support/clients/agent.ts'
import { MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { queuedPushes, registerDevices, RELAY } from '../../support/clients/queued.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const CODE_SECS = 600
const withPushes = {
  notifications: { relay: RELAY },
  signingKeyMasterKey: MASTER_KEY,
  // A code ends before the registration does.
  agentAuth: {
    anonymousEnabled: true,
    serviceAuthEnabled: true,
    userCodeTtlSecs: CODE_SECS,
    claimTokenTtlSecs: 86_400,
  },
}

const { pds } = useWorld({ config: { ...withPushes, rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
beforeAll(async () => {
  await registerDevices(pds, alice, ['phone', 'tablet'])
})

const asking = async (account: TestAccount, at: TestPds = pds) => {
  const { status, body } = await registerAgent(at, { type: 'service_auth', login_hint: account.email })
  expect(status).toBe(200)
  return { token: body.claim_token as string, code: body.claim.user_code as string, id: body.registration_id as string }
}
const attempts = async (registrationId: string) =>
  (await pds.rows('agent_claim', { registration_id: registrationId }, ['id'])).map(({ id }) => id)
const pushesOf = async (attempt: string) =>
  (await queuedPushes(pds)).filter(({ message }) => message.data['claimAttemptId'] === attempt)

/** How many pushes wait that will still be sent. */
const living = async () => (await queuedPushes(pds)).filter(({ goodUntil }) => goodUntil > pds.clock.now()).length

/** Let the codes that are open end. Devices to which the relay has given no handle ask again. */
async function expire() {
  pds.clock.advance({ secs: CODE_SECS + 1 })
  await registerDevices(pds, alice, ['phone', 'tablet'])
}

test('a program that names an account has its devices told, once each', async () => {
  const { code, id } = await asking(alice)
  const [attempt] = (await attempts(id)) as [string]
  const pushes = await pushesOf(attempt)
  expect(pushes.map(({ device }) => device)).toEqual([
    { owner: alice.did, deviceId: 'phone' },
    { owner: alice.did, deviceId: 'tablet' },
  ])
  for (const { message, goodUntil } of pushes) {
    expect(message).toEqual({
      type: 'agent_claim_pending',
      title: expect.any(String),
      body: expect.any(String),
      data: { claimAttemptId: attempt },
    })
    expect(JSON.stringify({ ...message, data: {} })).not.toContain(code)
    expect(goodUntil - pds.clock.now()).toBeWithin((CODE_SECS - 10) * 1000, CODE_SECS * 1000 + 1)
  }
})

test('asking for the code again tells nobody; a fresh code does', async () => {
  const { token, code, id } = await asking(alice)
  const [first] = (await attempts(id)) as [string]
  for (let i = 0; i < 3; i++) expect((await openAgentClaim(pds, token)).body.claim_attempt.user_code).toBe(code)
  expect(await pushesOf(first)).toHaveLength(2)
  await expire()
  const { body } = await openAgentClaim(pds, token)
  expect(body.claim_attempt_id).not.toBe(first)
  expect(await pushesOf(body.claim_attempt_id)).toHaveLength(2)
})

test('many that ask for a fresh code at once have one push sent to each device', async () => {
  const { token, id } = await asking(alice)
  await expire()
  const answers = await Promise.all(Array.from({ length: 8 }, () => openAgentClaim(pds, token)))
  expect(new Set(answers.map(({ body }) => body.claim_attempt_id)).size).toBe(1)
  const known = await attempts(id)
  expect(known).toHaveLength(2)
  expect(await pushesOf(known[1]!)).toHaveLength(2)
})

test('an account without devices, and a program that names no account, cause none', async () => {
  const { id } = await asking(bob)
  const { body } = await registerAgent(pds, { type: 'anonymous' })
  await openAgentClaim(pds, body.claim_token)
  for (const attempt of [...(await attempts(id)), ...(await attempts(body.registration_id))])
    expect(await pushesOf(attempt)).toEqual([])
})

test('what follows a code is not told: its confirmation, the first token', async () => {
  const { token, code, id } = await asking(alice)
  const before = await living()
  expect((await confirmAgent(pds, alice, code)).status).toBe(200)
  expect((await pollAgent(pds, token)).status).toBe(200)
  expect(await living()).toBe(before)
  expect(await attempts(id)).toHaveLength(1)
})

test('there is no push about an attempt that was not stored', async () => {
  const before = await living()
  const restore = await pds.hide('agent_event')
  const { status } = await registerAgent(pds, { type: 'service_auth', login_hint: alice.email })
  await restore()
  expect(status).toBe(500)
  expect(await living()).toBe(before)
})

test('an account is told ten times in an hour, however many programs ask; each of them gets its code', async () => {
  await using other = await startPds(withPushes, { alone: 'each node may let one more through' })
  const carol = await createAccount(other, 'carol')
  const dave = await createAccount(other, 'dave')
  for (const account of [carol, dave]) await registerDevices(other, account, ['phone'])
  for (let i = 0; i < 13; i++) await asking(carol, other)
  expect(await queuedPushes(other)).toHaveLength(10)
  await asking(dave, other)
  expect((await queuedPushes(other)).at(-1)).toMatchObject({ device: { owner: dave.did } })
})
