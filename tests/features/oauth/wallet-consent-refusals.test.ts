/** What must not let an app in: a proof that is not quite one, one for something else, and two decisions at once. */
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'bun:test'
import { base64url, parseBase64url } from '../../../src/protocol/base64url.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { nextOperation, signOperation, type PlcState } from '../../../src/protocol/plc.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { answerOf, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  statusOf,
  walletPathOf,
  type Decider,
  latch,
} from '../../support/clients/wallet-consent.ts'
import { deviceKey, type DeviceKey, sovereignAccount } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

type Holder = TestAccount & { device: DeviceKey }

let alice: Holder
let bob: Holder
const { pds, plc, line } = useWorld({
  line: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
  },
})
beforeAll(async () => {
  alice = await sovereignAccount(pds, 'alice', { password: undefined })
  bob = await sovereignAccount(pds, 'bob', { password: undefined }, deviceKey('k256'))
})

const client = () => new OAuthClient(pds)
const isPending = async (requestId: string) => (await previewOf(pds, { request_id: requestId })).status === 200
const readsOf = ({ did }: Decider) => line.arrived.filter(({ path }) => path === `/${did}/log/audit`).length
const outcome = ({ status, body }: Answer) => ({ status, code: body.error?.code })
const flipped = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)

/** The other valid signature of the same bytes, with an `s` in the upper half of the order. */
function highS(signature: string): string {
  const bytes = parseBase64url(signature)!
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const s = order - BigInt(`0x${Buffer.from(bytes.slice(32)).toString('hex')}`)
  return base64url(Buffer.concat([bytes.slice(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]))
}

function der(signature: string): string {
  const bytes = parseBase64url(signature)!
  const integer = (part: Uint8Array) => Buffer.from([2, 33, 0, ...part])
  const body = Buffer.concat([integer(bytes.slice(0, 32)), integer(bytes.slice(32))])
  return base64url(Buffer.concat([Buffer.from([0x30, body.length]), body]))
}

describe('a proof', () => {
  test('that is wrong in any way gets one answer, and leaves the request as it was', async () => {
    const consent = await openConsent(client(), { login_hint: alice.did })
    const other = await openConsent(client())
    const good = decisionOf(pds, alice, consent) as Record<string, string>
    const denial = decisionOf(pds, alice, consent, { decision: 'deny' })
    const narrow = decisionOf(pds, alice, consent, { grantedScope: 'atproto' })
    const now = Math.floor(pds.clock.now() / 1000)
    const at = (timestamp: number) => decisionOf(pds, alice, consent, { signed: { timestamp } })
    const stranger = { did: alice.did, device: deviceKey() }
    const inactive = await sovereignAccount(pds, `away${Math.floor(pds.clock.monotonic())}`, { password: undefined })
    await inactive.call('com.atproto.server.deactivateAccount', { json: {} })
    const { publicKey } = alice.device.key
    const wrong: Record<string, unknown> = {
      'a padded signature': { ...good, signature: `${good.signature}==` },
      'a short signature': { ...good, signature: base64url(randomBytes(63)) },
      'a long signature': { ...good, signature: base64url(randomBytes(65)) },
      'no signature': { ...good, signature: '' },
      'another signature': { ...good, signature: flipped(good.signature!, 10) },
      'trailing bits': { ...good, signature: flipped(good.signature!, 85) },
      'a signature in the upper half': { ...good, signature: highS(good.signature!) },
      'a DER signature': { ...good, signature: der(good.signature!) },
      'a short nonce': decisionOf(pds, alice, consent, { signed: { nonce: base64url(randomBytes(31)) } }),
      'a padded nonce': decisionOf(pds, alice, consent, { signed: { nonce: `${base64url(randomBytes(32))}=` } }),
      'a nonce spelled in another way': decisionOf(pds, alice, consent, { signed: { nonce: `${'A'.repeat(42)}B` } }),
      'another nonce': { ...good, nonce: base64url(randomBytes(32)) },
      'an early clock': at(now + 62),
      'a late clock': at(now - 62),
      'another time': { ...good, timestamp: now - 1 },
      'a huge time': { ...good, timestamp: Number.MAX_SAFE_INTEGER },
      'an unknown decision': { ...good, decision: 'Approve' },
      'an inherited decision': { ...good, decision: 'toString' },
      'no decision': { ...good, decision: '' },
      'a denial turned into an approval': { ...denial, decision: 'approve' },
      'an approval turned into a denial': { ...good, decision: 'deny' },
      'wider scopes': { ...narrow, grantedScope: 'atproto transition:generic' },
      'scopes in another order': { ...good, grantedScope: 'transition:generic atproto' },
      'scopes left out': { ...good, grantedScope: undefined },
      'scopes with another space': { ...good, grantedScope: 'atproto  transition:generic' },
      'another request': { ...good, requestId: other.requestId },
      'another client': decisionOf(pds, alice, { ...consent, clientId: 'https://app.example.com/client.json' }),
      'another server': decisionOf(pds, alice, consent, { signed: { aud: 'did:web:elsewhere.example' } }),
      'a key that is none of the identity': decisionOf(pds, stranger, consent),
      'the key of another account': decisionOf(pds, { did: alice.did, device: bob.device }, consent),
      'another account': decisionOf(pds, bob, consent),
      'another key of the same curve': { ...good, signingKey: deviceKey().did },
      'a key in other words': { ...good, signingKey: `${good.signingKey}#key` },
      'a bare key': { ...good, signingKey: base64url(publicKey.bytes) },
      'an unknown account': decisionOf(pds, { did: 'did:plc:abcdefghijklmnopqrstuvwx', device: alice.device }, consent),
      'no DID': { ...good, did: 'alice.test' },
      'an inactive account': decisionOf(pds, inactive, consent),
    }
    const answers = new Set<string>()
    for (const [name, body] of Object.entries(wrong)) {
      const answer = await sendDecision(pds, body)
      expect({ name, ...outcome(answer) }).toEqual({ name, status: 401, code: 'AUTHENTICATION_REQUIRED' })
      answers.add(JSON.stringify(answer.body))
    }
    expect(answers.size).toBe(1)
    expect(await isPending(consent.requestId)).toBe(true)
    expect(await isPending(other.requestId)).toBe(true)
    expect((await sendDecision(pds, good)).status).toBe(200)
  })

  test('is good for a minute on either side of the server’s clock, and with both curves', async () => {
    for (const [by, offset] of [
      [alice, 59],
      [alice, -59],
      [bob, 0],
    ] as const) {
      const consent = await openConsent(client())
      const timestamp = Math.floor(pds.clock.now() / 1000) + offset
      expect((await sendDecision(pds, decisionOf(pds, by, consent, { signed: { timestamp } }))).status).toBe(200)
    }
  })

  test('asks the directory nothing unless it is signed, and once if it is', async () => {
    const consent = await openConsent(client())
    const good = decisionOf(pds, alice, consent) as Record<string, string>
    const before = readsOf(alice)
    await sendDecision(pds, { ...good, signature: flipped(good.signature!, 10) })
    await sendDecision(pds, { ...good, requestId: `poauth_${'A'.repeat(43)}` })
    await sendDecision(pds, { ...good, timestamp: 1 })
    expect(readsOf(alice)).toBe(before)
    expect((await sendDecision(pds, good)).status).toBe(200)
    expect(readsOf(alice)).toBe(before + 1)
  })

  test('is worth nothing after it was used, after the request has lapsed, and for what is unknown', async () => {
    const used = await openConsent(client())
    const proof = decisionOf(pds, alice, used)
    await sendDecision(pds, proof)
    const lapsed = await openConsent(client())
    const answers = [await sendDecision(pds, proof), await previewOf(pds, { user_code: used.userCode })]
    await completeConsent(pds, used.requestId)
    answers.push(
      await sendDecision(pds, proof),
      await sendDecision(pds, decisionOf(pds, bob, used, { decision: 'deny' })),
    )
    pds.clock.advance({ secs: 301 })
    answers.push(
      await sendDecision(pds, decisionOf(pds, alice, lapsed)),
      await previewOf(pds, { request_id: lapsed.requestId }),
    )
    const unknown = { requestId: `poauth_${'A'.repeat(43)}`, clientId: 'x' }
    answers.push(
      await sendDecision(pds, decisionOf(pds, alice, unknown)),
      await sendDecision(
        pds,
        decisionOf(pds, { did: 'did:plc:abcdefghijklmnopqrstuvwx', device: alice.device }, unknown),
      ),
      await sendDecision(pds, decisionOf(pds, alice, { requestId: "' OR 1=1 --", clientId: 'x' })),
      await previewOf(pds, { user_code: 'AAAA-AAAA' }),
      await previewOf(pds, { user_code: '' }),
      await previewOf(pds, { request_id: 'poauth_\0' }),
    )
    for (const answer of answers) expect(outcome(answer)).toEqual({ status: 404, code: 'NOT_FOUND' })
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  })

  test('counts with the keys that the identity has now', async () => {
    const carol = await sovereignAccount(pds, 'carol', { password: undefined })
    await change(carol, { rotationKeys: [deviceKey().did] })
    const consent = await openConsent(client())
    expect((await sendDecision(pds, decisionOf(pds, carol, consent))).status).toBe(401)
    expect(await isPending(consent.requestId)).toBe(true)
  })

  test('waits for a directory that is away: nothing is used up', async () => {
    const consent = await openConsent(client())
    const proof = decisionOf(pds, alice, consent)
    line.fate = () => 'answer lost'
    expect(outcome(await sendDecision(pds, proof))).toEqual({ status: 502, code: 'PLC_DIRECTORY_ERROR' })
    line.fate = () => 'answered'
    expect((await sendDecision(pds, proof)).status).toBe(200)
  })
})

/** The next operation of an identity, by its device. */
async function change({ did, device }: Decider, changes: Partial<PlcState>): Promise<void> {
  const operation = signOperation(nextOperation((await pds.ctx.plc.lastOperation(did as Did))!, changes)!, device.key)
  const { ok } = await fetch(`${plc.url}/${did}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(operation),
  })
  if (!ok) throw new Error('the directory refused the operation')
}

describe('a request that names', () => {
  const decided = async (loginHint: string, by: Decider, decision: 'approve' | 'deny' = 'approve') => {
    const consent = await openConsent(client(), { login_hint: loginHint })
    return (await sendDecision(pds, decisionOf(pds, by, consent, { decision }))).status
  }

  test('an account is decided by nobody else, by DID or handle, for better or worse', async () => {
    expect(await decided(alice.did, bob)).toBe(401)
    expect(await decided(alice.handle, bob)).toBe(401)
    expect(await decided(alice.handle, bob, 'deny')).toBe(401)
    expect(await decided(alice.did, alice)).toBe(200)
    expect(await decided('ALICE.test', alice)).toBe(200)
  })

  test('a handle elsewhere is decided by the identity that claims it and to which it leads, both of them now', async () => {
    const dave = await sovereignAccount(pds, 'dave', { password: undefined })
    const name = 'dave.example.com'
    expect(await decided(name, dave)).toBe(401)
    pds.dns.setHandle(name, dave.did)
    expect(await decided(name, dave)).toBe(401)
    await change(dave, { alsoKnownAs: ['at://dave.test', `at://Dave.Example.com`] })
    expect(await decided(name, dave)).toBe(200)
    pds.dns.setHandle(name, bob.did)
    expect(await decided(name, dave)).toBe(401)
    expect(await decided(name, bob)).toBe(401)
    await change(dave, { alsoKnownAs: ['https://dave.example.com', 'dave.example.com', 'at://dave.test'] })
    pds.dns.setHandle(name, dave.did)
    expect(await decided(name, dave)).toBe(401)
  })

  test('a handle of this server that another identity claims too stays with its account', async () => {
    const erin = await sovereignAccount(pds, 'erin', { password: undefined })
    await change(erin, { alsoKnownAs: ['at://alice.test'] })
    pds.dns.setHandle('alice.test', erin.did)
    expect(await decided('alice.test', erin)).toBe(401)
    expect(await decided('erin.test', erin)).toBe(401)
    expect(await decided(erin.did, erin)).toBe(200)
  })
})

describe('a request with a match code', () => {
  const withCode = async (matchCode: string) => {
    const app = client()
    const consent = await openConsent(app, { login_hint: alice.did })
    expect(await latch(pds, consent.requestId, matchCode)).toBe(1)
    return { app, consent }
  }

  test('shows it on the page alone, and is approved with it alone', async () => {
    const { app, consent } = await withCode('07')
    expect(walletPathOf((await request(app.authorizeUrl(consent.requestUri))).body)).toMatchObject({ matchCode: '07' })
    const { body } = await previewOf(pds, { request_id: consent.requestId })
    expect(body.matchRequired).toBe(true)
    expect(Object.keys(body)).not.toContain('matchCode')
    for (const matchCode of [undefined, '', '7', '70', '007', ' 07'])
      expect(outcome(await sendDecision(pds, decisionOf(pds, alice, consent, { matchCode })))).toEqual({
        status: 403,
        code: 'FORBIDDEN',
      })
    expect(await isPending(consent.requestId)).toBe(true)
    expect((await sendDecision(pds, decisionOf(pds, bob, consent, { matchCode: '07' }))).status).toBe(401)
    expect((await sendDecision(pds, decisionOf(pds, alice, consent, { matchCode: '07' }))).status).toBe(200)
  })

  test('a request with a match code is denied without it', async () => {
    const { consent } = await withCode('99')
    expect((await sendDecision(pds, decisionOf(pds, alice, consent, { decision: 'deny' }))).body).toEqual({
      status: 'denied',
      did: alice.did,
    })
  })

  test('keeps the first one, and gets none once it is decided', async () => {
    const { consent } = await withCode('12')
    expect(await latch(pds, consent.requestId, '34')).toBe(0)
    const other = await openConsent(client())
    await sendDecision(pds, decisionOf(pds, alice, other))
    expect(await latch(pds, other.requestId, '34')).toBe(0)
  })

  test('a code that comes while the directory is asked is required all the same', async () => {
    const consent = await openConsent(client())
    const held = Promise.withResolvers<'answered'>()
    const asked = Promise.withResolvers<void>()
    line.fate = () => {
      asked.resolve()
      return held.promise
    }
    const decision = sendDecision(pds, decisionOf(pds, alice, consent))
    await asked.promise
    await latch(pds, consent.requestId, '55')
    held.resolve('answered')
    expect(outcome(await decision)).toEqual({ status: 400, code: 'InvalidRequest' })
    expect(await isPending(consent.requestId)).toBe(true)
  })
})

describe('of several decisions at once', () => {
  /** Sends decisions of different accounts so that both ask the directory before either is answered. */
  async function atOnce(...decisions: [() => Promise<Answer>, () => Promise<Answer>]): Promise<Answer[]> {
    const held = Promise.withResolvers<Fate>()
    let asked = 0
    line.fate = () => {
      asked++
      if (asked === decisions.length) held.resolve('answered')
      return held.promise
    }
    return Promise.all(decisions.map((decide) => decide()))
  }

  test('one counts, whoever makes it and whatever it says', async () => {
    for (const [first, second] of [
      [{}, {}],
      [{}, { decision: 'deny' }],
      [{ decision: 'deny' }, { decision: 'deny' }],
    ] as const) {
      const app = client()
      const consent = await openConsent(app)
      const answers = await atOnce(
        () => sendDecision(pds, decisionOf(pds, alice, consent, first)),
        () => sendDecision(pds, decisionOf(pds, bob, consent, second)),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
      const winner = answers.find(({ status }) => status === 200)!.body
      expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: winner.status } })
      const completed = await completeConsent(pds, consent.requestId)
      expect(completed.status).toBe(winner.status === 'approved' ? 303 : 400)
      if (winner.status === 'approved')
        expect((await app.redeem(answerOf(completed).get('code')!)).body.sub).toBe(winner.did)
    }
  })

  test('one on the page and one in the wallet leave one code', async () => {
    const frank = await createAccount(pds, 'frank')
    const app = client()
    const consent = await openConsent(app)
    await sendDecision(pds, decisionOf(pds, alice, consent))
    const answers = await Promise.all([
      completeConsent(pds, consent.requestId),
      app.decide(consent.requestUri, { identifier: frank.handle, password: frank.password }),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 400])
  })

  test('a request that lapses while the directory is asked is not decided', async () => {
    const consent = await openConsent(client())
    const asked = Promise.withResolvers<void>()
    line.fate = async (): Promise<Fate> => {
      pds.clock.advance({ secs: 301 })
      asked.resolve()
      return 'answered'
    }
    expect(outcome(await sendDecision(pds, decisionOf(pds, alice, consent)))).toEqual({
      status: 400,
      code: 'InvalidRequest',
    })
    await asked.promise
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'expired' } })
  })

  test('an account that is taken down meanwhile decides nothing', async () => {
    const grace = await sovereignAccount(pds, 'grace', { password: undefined })
    const takeDown = () => pds.damage('account', { did: grace.did }, { takedown_ref: 'reason' })
    const consent = await openConsent(client())
    line.fate = async (): Promise<Fate> => {
      await takeDown()
      return 'answered'
    }
    expect((await sendDecision(pds, decisionOf(pds, grace, consent))).status).toBe(401)
    expect(await isPending(consent.requestId)).toBe(true)
  })
})

describe('a completion', () => {
  test('of what an account has approved ends with its sessions', async () => {
    const heidi = await sovereignAccount(pds, 'heidi', { password: undefined })
    const consent = await openConsent(client())
    await sendDecision(pds, decisionOf(pds, heidi, consent))
    const ended = await request(`${pds.url}/v1/admin/accounts/${heidi.did}/revoke-credentials`, {
      json: {},
      headers: bearer(ADMIN_TOKEN),
    })
    expect(ended.status).toBe(200)
    expect((await completeConsent(pds, consent.requestId)).status).toBe(400)
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'expired' } })
  })

  test('happens once, and only of what is approved', async () => {
    const app = client()
    const consent = await openConsent(app)
    const refused = async (requestId: string) => {
      const { status, headers } = await completeConsent(pds, requestId)
      expect({ status, type: headers.get('content-type'), location: headers.get('location') }).toEqual({
        status: 400,
        type: 'text/html; charset=utf-8',
        location: null,
      })
    }
    for (const id of [consent.requestId, `poauth_${'A'.repeat(43)}`, '', 'x\0y']) await refused(id)
    expect(await isPending(consent.requestId)).toBe(true)
    await sendDecision(pds, decisionOf(pds, alice, consent))
    const answers = await Promise.all([1, 2, 3].map(() => completeConsent(pds, consent.requestId)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 400, 400])
    await refused(consent.requestId)
    const code = answerOf(answers.find(({ status }) => status === 303)!).get('code')!
    expect((await app.redeem(code)).status).toBe(200)
  })

  test('is not sent from another site, and needs no cookie', async () => {
    const consent = await openConsent(client())
    await sendDecision(pds, decisionOf(pds, alice, consent))
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
    ] as Record<string, string>[])
      expect((await completeConsent(pds, consent.requestId, headers)).status).toBe(403)
    expect((await completeConsent(pds, consent.requestId, { origin: 'null' })).status).toBe(303)
  })

  test('that cannot store its code can be made again', async () => {
    const app = client()
    const consent = await openConsent(app)
    await sendDecision(pds, decisionOf(pds, alice, consent))
    const restore = await pds.hide('oauth_code')
    expect((await completeConsent(pds, consent.requestId)).status).toBe(500)
    await restore()
    const completed = await completeConsent(pds, consent.requestId)
    expect((await app.redeem(answerOf(completed).get('code')!)).status).toBe(200)
  })
})

test('a page that cannot offer a wallet offers the password', async () => {
  const app = client()
  const requestUri = await app.requestUri()
  const restore = await pds.hide('wallet_consent')
  const { status, body } = await request(app.authorizeUrl(requestUri))
  await restore()
  expect({ status, path: walletPathOf(body) }).toEqual({ status: 200, path: null })
  expect(body).toContain('name="password"')
})

describe('a malformed', () => {
  test('decision is told apart from a wrong one', async () => {
    const good = decisionOf(pds, alice, await openConsent(client()))
    for (const name of ['did', 'signingKey', 'requestId', 'decision', 'timestamp', 'nonce', 'signature']) {
      for (const value of [undefined, null, 1.5, [], {}])
        expect({ name, value, status: (await sendDecision(pds, { ...good, [name]: value })).status }).toEqual({
          name,
          value,
          status: 422,
        })
    }
    for (const changed of [
      { ...good, grantedScope: null },
      { ...good, grantedScope: ['atproto'] },
      { ...good, matchCode: 12 },
      { ...good, matchCode: null },
      { ...good, scope: 'atproto' },
      [good],
      'text',
      null,
    ])
      expect(outcome(await sendDecision(pds, changed))).toEqual({ status: 422, code: 'InvalidRequest' })
    const post = (body: string, type: string) =>
      request(`${pds.url}/oauth/authorize/approve`, {
        method: 'POST',
        headers: type === '' ? {} : { 'content-type': type },
        body,
      })
    expect((await post(JSON.stringify(good), 'text/plain')).status).toBe(415)
    expect((await post(new URLSearchParams({ did: 'x' }).toString(), 'application/x-www-form-urlencoded')).status).toBe(
      415,
    )
    expect(outcome(await post('{"did":', 'application/json'))).toEqual({ status: 400, code: 'InvalidRequest' })
    expect((await post(JSON.stringify({ ...good, grantedScope: 'x'.repeat(40_000) }), 'application/json')).status).toBe(
      413,
    )
    expect((await post(JSON.stringify(good), 'application/json; charset=utf-8')).status).toBe(200)
  })

  test('question names one of the two', async () => {
    const { requestId, userCode } = await openConsent(client())
    const ask = (query: string) => request(`${pds.url}/oauth/authorize/consent-request${query}`)
    for (const query of [
      '',
      '?other=1',
      `?user_code=${userCode}&request_id=${requestId}`,
      `?user_code=${userCode}&user_code=${userCode}`,
      `?request_id=${requestId}&request_id=x`,
    ])
      expect(outcome(await ask(query))).toEqual({ status: 400, code: 'InvalidRequest' })
    const { status, headers } = await ask(`?request_id=${requestId}`)
    expect({ status, cors: headers.get('access-control-allow-origin'), cache: headers.get('cache-control') }).toEqual({
      status: 200,
      cors: '*',
      cache: 'no-store',
    })
  })
})
