/** Signed examples that other implementations share, and ten thousand decisions that are a little off. */
import { expect, test } from 'bun:test'
import scopes from '../../vectors/contract/scope-hash-v1.json' with { type: 'json' }
import proofs from '../../vectors/contract/signed-proofs-v1.json' with { type: 'json' }
import { insertRequest, type PendingRequest } from '../../../src/features/access/oauth/authorization-request-store.ts'
import { insertConsent } from '../../../src/features/access/oauth/wallet-consent-store.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { startFaultyLine } from '../../support/faults/faulty-line.ts'
import { request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { Random } from '../../support/random.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  latch,
} from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'

/** A directory that knows the identity of the examples and nothing else. */
function directoryOfExamples() {
  const state = {
    alsoKnownAs: ['at://vector.test'],
    verificationMethods: {},
    services: {},
    rotationKeys: proofs.authorisedKeys,
  }
  const operation = { type: 'plc_operation', prev: null, sig: 'unchecked', ...state }
  const entry = {
    did: proofs.accountDid,
    cid: 'bafyreib',
    createdAt: '2024-01-01T00:00:00.000Z',
    nullified: false,
    operation,
  }
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (asked) =>
      asked.url.endsWith(`/${proofs.accountDid}/log/audit`)
        ? Response.json([entry])
        : new Response('', { status: 404 }),
  })
}

const REQUEST_HASH = 'a'.repeat(64)

/** A pending consent as the examples have it, in place of any other. */
async function stage(pds: TestPds, requestId: string, clientId: string, requestedScope: string): Promise<void> {
  const now = pds.clock.now()
  const request = {
    clientId,
    redirectUri: 'https://app.example.com/callback',
    responseMode: 'query',
    state: null,
    scopes: ['atproto'],
  }
  const pushed = { request, client: { clientId, name: null }, clientKey: null } as unknown as PendingRequest
  await pds.lose('oauth_request')
  await pds.lose('wallet_consent')
  await pds.ctx.db.transaction(async (tx) => {
    await insertRequest(tx, REQUEST_HASH, pushed, now + 300_000)
    await insertConsent(tx, {
      requestId,
      requestHash: REQUEST_HASH,
      userCode: 'AAAA-AAAA',
      clientId,
      requestedScopes: requestedScope.split(' '),
      loginHint: null,
      webOrigin: null,
      ip: 'unknown',
      openedWith: null,
      matchCode: null,
      browserHash: null,
      createdAt: now,
      expiresAt: now + 300_000,
    })
  })
}

const examples = proofs.accept.filter(({ kind }) => kind === 'consent')
const grantedScope = async (pds: TestPds) => (await pds.rows('wallet_consent'))[0]!.granted_scope

test('the signed examples are accepted, and what is derived from them is refused', async () => {
  const directory = directoryOfExamples()
  await using pds = await startPds({
    serverDid: proofs.serverDid as Did,
    plcDirectoryUrl: `http://127.0.0.1:${directory.port}`,
    rateLimit: { enabled: false },
  })
  pds.clock.jump({ secs: proofs.timestamp - Math.floor(pds.clock.now() / 1000) })
  await seedAccount(pds, 'vector', { did: proofs.accountDid })
  expect(examples.length).toBe(4)
  for (const { name, requestBody, clientId, requestedScope, storedScope } of examples) {
    const { requestId, decision } = requestBody as { requestId: string; decision: string }
    await stage(pds, requestId, clientId!, requestedScope!)
    expect({ name, ...(await sendDecision(pds, requestBody)) }).toMatchObject({
      name,
      status: 200,
      body: { did: proofs.accountDid },
    })
    expect({ name, scope: await grantedScope(pds) }).toEqual({ name, scope: storedScope ?? null })
    expect((await completeConsent(pds, requestId)).status).toBe(decision === 'approve' ? 303 : 400)
  }
  const derived = proofs.reject.filter(({ of }) => of.startsWith('consent-'))
  expect(derived.length).toBe(4)
  for (const { name, of, requestBody } of derived) {
    const { clientId, requestedScope } = examples.find((example) => example.name === of)!
    const { requestId } = requestBody as { requestId: string }
    await stage(pds, requestId, clientId!, requestedScope!)
    expect({ name, ...(await sendDecision(pds, requestBody)) }).toMatchObject({ name, status: 401 })
    expect(await grantedScope(pds)).toBeNull()
  }
  await directory.stop(true)
})

test('scopes are reduced as in the shared examples', async () => {
  await using pds = await startPds({ accounts: { passwordOptional: true }, rateLimit: { enabled: false } })
  const alice = await sovereignAccount(pds, 'alice', { password: undefined })
  const { requestedScope, cases } = scopes.reduction
  for (const { walletGranted, storedScope } of cases) {
    const consent = { requestId: `poauth_${'A'.repeat(43)}`, clientId: 'https://app.example.com/client.json' }
    await stage(pds, consent.requestId, consent.clientId, requestedScope)
    expect((await sendDecision(pds, decisionOf(pds, alice, consent, { grantedScope: walletGranted }))).status).toBe(200)
    expect({ walletGranted, stored: await grantedScope(pds) }).toEqual({ walletGranted, stored: storedScope })
  }
})

type Body = Record<string, unknown>

/** Changes a decision in one place. Returns the text of the body. */
function mutated(body: Body, random: Random): string {
  const name = random.of(Object.keys(body))
  const text = String(body[name])
  const at = random.below(text.length + 1)
  const letters = 'ABCdef012-_=+/. \n\0é𝒳"\\{'
  const junk = [null, true, 0, -1, 1e308, '', [], {}, [text], { [name]: text }, '\ud800', 'x'.repeat(5000)]
  const change: (() => string)[] = [
    () => JSON.stringify({ ...body, [name]: text.slice(0, at) + random.of([...letters]) + text.slice(at) }),
    () => JSON.stringify({ ...body, [name]: text.slice(0, at) + random.of([...letters]) + text.slice(at + 1) }),
    () => JSON.stringify({ ...body, [name]: text.slice(0, at) + text.slice(at + 1) }),
    () => JSON.stringify({ ...body, [name]: text + text }),
    () => JSON.stringify({ ...body, [name]: text.toUpperCase() }),
    () => JSON.stringify({ ...body, [name]: random.of(junk) }),
    () => JSON.stringify({ ...body, [name]: body[random.of(Object.keys(body))] }),
    () => JSON.stringify({ ...body, timestamp: (body.timestamp as number) + random.below(400) - 200 }),
    () => JSON.stringify({ ...body, [random.of(['scope', 'method', '__proto__x', 'Did'])]: text }),
    () => JSON.stringify({ ...body, [name]: undefined }),
    () => `${JSON.stringify(body).slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(random.of(junk))}}`,
    () => JSON.stringify(body).slice(0, random.below(JSON.stringify(body).length)),
    () => JSON.stringify(body).replace(random.of(['"', ':', ',', '{']), random.of([...letters])),
  ]
  return random.of(change)()
}

test('ten thousand decisions that are a little off let nobody in, break nothing, and ask nobody about what is not signed', async () => {
  await using plc = await startPlcServer()
  await using line = await startFaultyLine(plc.url)
  await using pds = await startPds({
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
    plcDirectoryUrl: line.url,
  })
  const alice = await sovereignAccount(pds, 'alice', { password: undefined })
  const consent = await openConsent(new OAuthClient(pds))
  // Required and not given, so that a change which leaves the proof as it was is refused as well.
  await latch(pds, consent.requestId, '42')
  const bodies = [
    decisionOf(pds, alice, consent),
    decisionOf(pds, alice, consent, { grantedScope: 'atproto' }),
  ] as Body[]
  const random = new Random(20_260_101)
  const before = line.arrived.length
  const answers = new Map<number, number>()
  const send = async () => {
    const body = mutated(random.of(bodies), random)
    const { status } = await request(`${pds.url}/oauth/authorize/approve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    answers.set(status, (answers.get(status) ?? 0) + 1)
  }
  for (let round = 0; round < 1000; round++) await Promise.all(Array.from({ length: 10 }, send))
  expect([...answers.keys()].toSorted()).toEqual([400, 401, 403, 404, 422])
  expect(line.arrived.length - before).toBeLessThanOrEqual(answers.get(403)!)
  expect((await previewOf(pds, { request_id: consent.requestId })).status).toBe(200)
  const approval = decisionOf(pds, alice, consent, { matchCode: '42' })
  expect((await sendDecision(pds, approval)).status).toBe(200)
})
