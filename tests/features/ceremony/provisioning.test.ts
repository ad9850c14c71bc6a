/** How accounts in the making begin: with which codes, names and devices, and who is refused. */
import { describe, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import {
  bear,
  begin,
  claimCode,
  forCeremonies,
  mobile,
  newWallet,
  operate,
  prepared,
  sendDid,
  signingKeyFor,
} from '../../support/clients/ceremony.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds } = useWorld({ config: { ...forCeremonies, inviteCodeRequired: true } })

const refused = (status: number, code: string) => ({ status, body: { error: { code } } })
const signUp = (handle: string, email: string, inviteCode: string): Promise<Answer> =>
  xrpc(pds, 'com.atproto.server.createAccount', { json: { handle, email, password: PASSWORD, inviteCode } })
const statusOfCode = async (code: string): Promise<string> =>
  (await operate(pds, '/v1/accounts/claim-codes?limit=200')).body.codes.find(
    (found: { code: string }) => found.code === code,
  )?.status
const ceremonyCount = () => pds.count('ceremony')

describe('a wallet with a code', () => {
  test('is refused for what its request lacks, and the code stays good', async () => {
    const wallet = { ...newWallet('careful'), code: await claimCode(pds) }
    const whole = {
      email: wallet.email,
      handle: wallet.handle,
      devicePublicKey: wallet.devicePublicKey,
      platform: 'ios',
      claimCode: wallet.code,
    }
    const send = (json: unknown) => request(`${pds.url}/v1/accounts/mobile`, { json })
    for (const name of Object.keys(whole)) {
      expect({ name, ...(await send({ ...whole, [name]: undefined })) }).toMatchObject({
        name,
        ...refused(422, 'InvalidRequest'),
      })
      expect({ name, ...(await send({ ...whole, [name]: 7 })) }).toMatchObject({
        name,
        ...refused(422, 'InvalidRequest'),
      })
    }
    expect(await send({ ...whole, platform: 'amiga' })).toMatchObject(refused(422, 'InvalidRequest'))
    for (const devicePublicKey of ['', 'z'.repeat(513)])
      expect(await send({ ...whole, devicePublicKey })).toMatchObject(refused(400, 'INVALID_CLAIM'))
    for (const email of ['', '   ', 'careful@mailinator.com', 'nobody', 'a@b', 'a b@example.com', 'a@@example.com'])
      expect({ email, ...(await send({ ...whole, email })) }).toMatchObject({ email, ...refused(400, 'INVALID_CLAIM') })
    for (const handle of [
      '',
      'careful',
      'careful.example.com',
      'a.careful.test',
      'admin.test',
      '-x-.test',
      'x_y.test',
      `${'x'.repeat(64)}.test`,
    ])
      expect({ handle, ...(await send({ ...whole, handle })) }).toMatchObject({
        handle,
        ...refused(400, 'INVALID_HANDLE'),
      })
    // What is wrong first is what the answer says.
    expect(await send({ ...whole, devicePublicKey: '', email: '', handle: '' })).toMatchObject({
      body: { error: { message: expect.stringContaining('devicePublicKey') } },
    })
    expect(await send({ ...whole, email: '', handle: '' })).toMatchObject(refused(400, 'INVALID_CLAIM'))
    const plain = await fetch(`${pds.url}/v1/accounts/mobile`, { method: 'POST', body: JSON.stringify(whole) })
    expect(plain.status).toBe(415)
    const broken = await fetch(`${pds.url}/v1/accounts/mobile`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"email"',
    })
    expect(broken.status).toBe(400)
    expect(await statusOfCode(wallet.code)).toBe('pending')
    expect(await send({ ...whole, unknown: 1, devicePublicKey: 'z'.repeat(512) })).toMatchObject({ status: 201 })
    expect(await statusOfCode(wallet.code)).toBe('redeemed')
  })

  test('needs one that can be used, and is told whether it was used before', async () => {
    for (const code of ['', 'ZZZZZZ', 'x'.repeat(5000), 'a b', 'pds-example-com-aaaaa-aaaaa'])
      expect(await mobile(pds, newWallet('codeless'), { claimCode: code })).toMatchObject(refused(404, 'NOT_FOUND'))
    const revoked = await claimCode(pds)
    await operate(pds, '/v1/accounts/claim-codes/revoke', { code: revoked })
    expect(await mobile(pds, newWallet('codeless'), { claimCode: revoked })).toMatchObject(refused(404, 'NOT_FOUND'))

    const { code } = await begin(pds, 'freda')
    expect(await mobile(pds, newWallet('second'), { claimCode: code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
    expect(await signUp('second.test', 'second@example.com', code)).toMatchObject({
      status: 400,
      body: { error: 'InvalidInviteCode' },
    })
    expect(await operate(pds, '/v1/accounts/claim-codes/revoke', { code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )

    const late = await claimCode(pds)
    pds.clock.advance({ secs: 24 * 3600 + 1 })
    expect(await mobile(pds, newWallet('codeless'), { claimCode: late })).toMatchObject(refused(404, 'NOT_FOUND'))
    expect(await mobile(pds, newWallet('second'), { claimCode: code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
    expect(await xrpc(pds, 'com.atproto.temp.checkHandleAvailability?handle=codeless.test')).toMatchObject({
      body: { result: { $type: 'com.atproto.temp.checkHandleAvailability#resultAvailable' } },
    })
  })

  test('may use an invite of the standard kind, as often as it allows', async () => {
    const { body } = await operate(pds, '/xrpc/com.atproto.server.createInviteCode', { useCount: 2 })
    expect(await mobile(pds, newWallet('guest-a'), { claimCode: body.code })).toMatchObject({ status: 201 })
    expect(await signUp('guest-b.test', 'guest-b@example.com', body.code)).toMatchObject({ status: 200 })
    expect(await mobile(pds, newWallet('guest-c'), { claimCode: body.code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
    // Who used it is told by DID, and an account in the making has none.
    const { body: listed } = await operate(pds, '/xrpc/com.atproto.admin.getInviteCodes?limit=500')
    const uses = listed.codes.find((found: { code: string }) => found.code === body.code).uses
    expect(uses.map(({ usedBy }: { usedBy: string }) => usedBy.split(':')[0])).toEqual(['did'])
  })

  test('is told that one is no good that was disabled like any invite', async () => {
    const code = await claimCode(pds)
    await operate(pds, '/xrpc/com.atproto.admin.disableInviteCodes', { codes: [code] })
    expect(await statusOfCode(code)).toBe('revoked')
    expect(await mobile(pds, newWallet('disabled'), { claimCode: code })).toMatchObject(refused(404, 'NOT_FOUND'))
  })

  test('stays redeemed after the account is deleted', async () => {
    const gone = await bear(pds, 'gone')
    await operate(pds, '/xrpc/com.atproto.admin.deleteAccount', { did: gone.did })
    expect(await statusOfCode(gone.code)).toBe('redeemed')
    expect(await mobile(pds, newWallet('gone'), { claimCode: gone.code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
    expect(await operate(pds, '/v1/accounts/claim-codes/revoke', { code: gone.code })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
  })
})

describe('names', () => {
  test('of accounts, of accounts in the making and of new accounts exclude each other', async () => {
    const invite = async () =>
      (await operate(pds, '/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })).body.code as string
    await createAccount(pds, 'settled', { inviteCode: await invite() })
    await begin(pds, 'making')
    const code = await claimCode(pds)
    const other = { ...newWallet('otto'), code }
    for (const [name, changes, expected] of [
      ['address of an account', { email: 'SETTLED@example.com' }, refused(409, 'ACCOUNT_EXISTS')],
      ['address in the making', { email: ' making@EXAMPLE.com' }, refused(409, 'ACCOUNT_EXISTS')],
      ['handle of an account', { handle: 'Settled.test' }, refused(409, 'HANDLE_TAKEN')],
      ['handle in the making', { handle: 'MAKING.test' }, refused(409, 'HANDLE_TAKEN')],
      [
        'both: the address is told first',
        { email: 'making@example.com', handle: 'making.test' },
        refused(409, 'ACCOUNT_EXISTS'),
      ],
    ] as const) {
      expect({ name, ...(await mobile(pds, other, changes)) }).toMatchObject({ name, ...expected })
      expect({
        name,
        ...(await operate(pds, '/v1/accounts', { email: other.email, handle: other.handle, tier: 'pro', ...changes })),
      }).toMatchObject({
        name,
        ...expected,
      })
    }
    expect(await statusOfCode(code)).toBe('pending')

    expect(await signUp('making.test', 'elsewhere@example.com', await invite())).toMatchObject({
      status: 400,
      body: { message: 'Handle already taken: making.test' },
    })
    expect((await signUp('elsewhere.test', 'making@example.com', await invite())).status).toBe(400)
    const settled = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: 'settled.test', password: PASSWORD },
    })
    const change = (nsid: string, json: object) => xrpc(pds, nsid, { headers: bearer(settled.body.accessJwt), json })
    expect(await change('com.atproto.identity.updateHandle', { handle: 'making.test' })).toMatchObject({
      status: 400,
      body: { error: 'HandleNotAvailable' },
    })
    expect((await change('com.atproto.server.updateEmail', { email: 'making@example.com' })).status).toBe(400)
    expect(await xrpc(pds, 'com.atproto.temp.checkHandleAvailability?handle=making.test')).toMatchObject({
      body: { result: { $type: 'com.atproto.temp.checkHandleAvailability#resultUnavailable' } },
    })
    expect(await mobile(pds, other)).toMatchObject({ status: 201 })
  })

  test('that many want at once belong to one of them, and the codes of the others stay good', async () => {
    for (const wish of ['handle', 'address', 'code', 'everything'] as const) {
      const shared = newWallet(`wanted-${wish}`)
      const code = await claimCode(pds)
      const before = await ceremonyCount()
      const rivals = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const own = { ...newWallet(`rival-${wish}-${i}`), code: await claimCode(pds) }
          if (wish === 'handle') return { ...own, handle: shared.handle }
          if (wish === 'address') return { ...own, email: shared.email }
          if (wish === 'code') return { ...own, code }
          return { ...own, handle: shared.handle, email: shared.email, code }
        }),
      )
      const answers = await Promise.all(rivals.map((rival) => mobile(pds, rival)))
      const conflict = {
        handle: 'HANDLE_TAKEN',
        address: 'ACCOUNT_EXISTS',
        code: 'CLAIM_CODE_REDEEMED',
        everything: 'ACCOUNT_EXISTS',
      }[wish]
      expect(answers.map(({ status, body }) => (status === 201 ? 'in' : body.error.code)).toSorted()).toEqual(
        [...Array.from({ length: 7 }, () => conflict), 'in'].toSorted(),
      )
      expect(await ceremonyCount()).toBe(before + 1)
      if (wish === 'code')
        expect(await mobile(pds, { ...newWallet('rival-free'), code: await claimCode(pds) })).toMatchObject({
          status: 201,
        })
      else
        for (const [index, rival] of rivals.entries())
          if (wish !== 'everything')
            expect(await statusOfCode(rival.code)).toBe(answers[index]!.status === 201 ? 'redeemed' : 'pending')
    }
  })

  test('go to a sign-up or to a ceremony, never to both', async () => {
    for (let round = 0; round < 5; round++) {
      const wallet = { ...newWallet(`torn-${round}`), code: await claimCode(pds) }
      const { body } = await operate(pds, '/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
      const [signedUp, begun] = await Promise.all([
        signUp(wallet.handle, `else-${round}@example.com`, body.code),
        mobile(pds, wallet),
      ])
      expect([signedUp.status, begun.status].toSorted()).toEqual(signedUp.status === 200 ? [200, 409] : [201, 400])
    }
  })
})

describe('whoever comes back with the same code, names and device', () => {
  test('goes on with the same account in a new session, and the one before is void', async () => {
    const wallet = await begin(pds, 'returning')
    const request1 = await prepared(pds, wallet)
    const { status, body } = await mobile(pds, wallet, { handle: 'RETURNING.test', email: 'Returning@Example.com' })
    const again = { ...wallet, token: body.sessionToken as string }
    expect(status).toBe(201)
    expect(await signingKeyFor(pds, wallet)).toMatchObject(refused(401, 'UNAUTHORIZED'))
    expect(await sendDid(pds, wallet, request1)).toMatchObject(refused(401, 'UNAUTHORIZED'))
    expect((await prepared(pds, again)).signedCreationOp.verificationMethods).toEqual(
      request1.signedCreationOp.verificationMethods,
    )
    expect(await sendDid(pds, again, request1)).toMatchObject({ status: 200 })
    // Afterwards the names belong to the account.
    expect(await mobile(pds, wallet)).toMatchObject(refused(409, 'ACCOUNT_EXISTS'))
  })

  test('gets in after the session has expired, too', async () => {
    const wallet = await begin(pds, 'sleeper')
    pds.clock.advance({ secs: 24 * 3600 })
    expect(await signingKeyFor(pds, wallet)).toMatchObject(refused(401, 'UNAUTHORIZED'))
    const { body } = await mobile(pds, wallet)
    expect(await signingKeyFor(pds, { ...wallet, token: body.sessionToken })).toMatchObject({ status: 200 })
  })

  test('must have all of them', async () => {
    const wallet = await begin(pds, 'imitated')
    const other = newWallet('imitator')
    expect(await mobile(pds, wallet, { devicePublicKey: other.devicePublicKey })).toMatchObject(
      refused(409, 'ACCOUNT_EXISTS'),
    )
    expect(await mobile(pds, wallet, { claimCode: await claimCode(pds) })).toMatchObject(refused(409, 'ACCOUNT_EXISTS'))
    expect(await mobile(pds, wallet, { email: other.email })).toMatchObject(refused(409, 'HANDLE_TAKEN'))
    expect(await mobile(pds, wallet, { handle: other.handle })).toMatchObject(refused(409, 'ACCOUNT_EXISTS'))
    expect(await mobile(pds, wallet, { handle: other.handle, email: other.email })).toMatchObject(
      refused(409, 'CLAIM_CODE_REDEEMED'),
    )
    expect(await signingKeyFor(pds, wallet)).toMatchObject({ status: 200 })
  })

  test('finds one account, however many requests cross', async () => {
    const wallet = { ...newWallet('impatient'), code: await claimCode(pds) }
    const answers = await Promise.all(Array.from({ length: 6 }, () => mobile(pds, wallet)))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.accountId}`)).size).toBe(1)
    const live = await Promise.all(
      answers.map(({ body }) => signingKeyFor(pds, { ...wallet, token: body.sessionToken })),
    )
    expect(live.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('an operator', () => {
  const provision = (json: unknown, token?: string) =>
    token === undefined
      ? operate(pds, '/v1/accounts', json)
      : request(`${pds.url}/v1/accounts`, { json, headers: bearer(token) })

  test('provisions an account, whose code opens it alone', async () => {
    const wallet = newWallet('prepared')
    const { status, body } = await provision({
      email: ' Prepared@Example.com',
      handle: 'Prepared.test',
      tier: 'business',
    })
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        accountId: expect.any(String),
        did: null,
        claimCode: expect.stringMatching(/^[A-Z0-9]{6}$/),
        status: 'pending',
      },
    })
    const { claimCode: code, accountId } = body
    expect(await statusOfCode(code)).toBe('pending')
    expect(await signUp('stranger.test', 'stranger@example.com', code)).toMatchObject({
      body: { error: 'InvalidInviteCode' },
    })
    expect(await mobile(pds, newWallet('stranger'), { claimCode: code })).toMatchObject(refused(404, 'NOT_FOUND'))

    const device = { claimCode: code, devicePublicKey: wallet.devicePublicKey, platform: 'android' }
    const redeem = (changes: object = {}) => request(`${pds.url}/v1/devices`, { json: { ...device, ...changes } })
    for (const devicePublicKey of ['', 'z'.repeat(513)])
      expect(await redeem({ devicePublicKey })).toMatchObject(refused(400, 'INVALID_CLAIM'))
    expect(await redeem({ platform: 'amiga' })).toMatchObject(refused(422, 'InvalidRequest'))
    const redeemed = await redeem()
    expect(redeemed).toMatchObject({ status: 201, body: { accountId } })
    expect(
      await request(`${pds.url}/v1/devices/${redeemed.body.deviceId}/pds`, {
        headers: bearer(redeemed.body.deviceToken),
      }),
    ).toMatchObject({
      status: 200,
      body: { pdsUrl: pds.url, websocketUrl: pds.url.replace('http', 'ws') },
    })
    expect(await statusOfCode(code)).toBe('redeemed')

    // The same device goes on as any wallet does.
    const begun = await mobile(pds, { ...wallet, code })
    expect(begun).toMatchObject({ status: 201, body: { accountId } })
    const going = { ...wallet, code, token: begun.body.sessionToken as string }
    expect(await sendDid(pds, going, await prepared(pds, going))).toMatchObject({ status: 200 })
    expect(
      await request(`${pds.url}/v1/devices/${redeemed.body.deviceId}/pds`, {
        headers: bearer(redeemed.body.deviceToken),
      }),
    ).toMatchObject(refused(401, 'UNAUTHORIZED'))
  })

  test('gives a code that a wallet can use at once', async () => {
    const wallet = newWallet('directly')
    const { body } = await provision({ email: wallet.email, handle: wallet.handle, tier: 'free' })
    expect(await mobile(pds, wallet, { claimCode: await claimCode(pds) })).toMatchObject(refused(409, 'ACCOUNT_EXISTS'))
    const begun = await mobile(pds, { ...wallet, code: body.claimCode })
    expect(begun).toMatchObject({ status: 201, body: { accountId: body.accountId } })
    expect(await mobile(pds, { ...wallet, code: body.claimCode }, { devicePublicKey: 'another' })).toMatchObject(
      refused(409, 'ACCOUNT_EXISTS'),
    )
  })

  test('redeems for a device in the same words for every code that is no good', async () => {
    const { body } = await provision({ email: 'worded@example.com', handle: 'worded.test', tier: 'free' })
    const { body: revoked } = await provision({ email: 'worded2@example.com', handle: 'worded2.test', tier: 'free' })
    const { body: expired } = await provision({ email: 'worded3@example.com', handle: 'worded3.test', tier: 'free' })
    const redeem = (code: string) =>
      request(`${pds.url}/v1/devices`, { json: { claimCode: code, devicePublicKey: 'key', platform: 'ios' } })
    await operate(pds, '/v1/accounts/claim-codes/revoke', { code: revoked.claimCode })
    expect(await redeem(body.claimCode)).toMatchObject({ status: 201 })
    const unbound = await claimCode(pds)
    const codes = [body.claimCode, revoked.claimCode, unbound, 'ZZZZZZ', '']
    pds.clock.advance({ secs: 24 * 3600 })
    codes.push(expired.claimCode)
    const answers = await Promise.all(codes.map(redeem))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1)
    expect(answers[0]).toMatchObject(refused(400, 'INVALID_CLAIM'))
  })

  test('is refused for what does not fit, in order, and alone may ask', async () => {
    const whole = { email: 'ordered@example.com', handle: 'ordered.test', tier: 'free' }
    expect(await provision(whole, 'x')).toMatchObject(refused(401, 'UNAUTHORIZED'))
    for (const name of Object.keys(whole))
      expect({ name, ...(await provision({ ...whole, [name]: undefined })) }).toMatchObject({
        name,
        ...refused(422, 'InvalidRequest'),
      })
    expect(await provision({ ...whole, handle: 'nope', tier: 'gold' })).toMatchObject(refused(400, 'INVALID_HANDLE'))
    expect(await provision({ ...whole, tier: 'gold', email: 'settled@example.com' })).toMatchObject(
      refused(400, 'INVALID_CLAIM'),
    )
    expect(await provision({ ...whole, tier: '' })).toMatchObject(refused(400, 'INVALID_CLAIM'))
    const { body: audit } = await operate(pds, '/v1/admin/audit?action=claim_codes_minted&limit=1')
    const { body } = await provision(whole)
    const { body: after } = await operate(pds, '/v1/admin/audit?action=claim_codes_minted&limit=1')
    expect(after.events[0]).toMatchObject({
      actor: 'master-token',
      subject: body.accountId,
      detail: JSON.stringify({ count: 1, expiresInHours: 24 }),
    })
    expect(after.events[0].id).not.toBe(audit.events[0].id)
    expect(JSON.stringify(after)).not.toContain(body.claimCode)
  })

  test('sees accounts in the making, the newest first, and neither keys nor addresses', async () => {
    const wallet = await begin(pds, 'watched')
    const { body: key } = await signingKeyFor(pds, wallet)
    pds.clock.advance({ secs: 90 })
    await provision({ email: 'watched2@example.com', handle: 'watched2.test', tier: 'pro' })
    const { status, body } = await operate(pds, '/v1/admin/ceremonies?limit=2')
    expect(status).toBe(200)
    expect(body.ceremonies).toEqual([
      expect.objectContaining({
        handle: 'watched2.test',
        tier: 'pro',
        state: 'created',
        did: null,
        ageSecs: 0,
        hasCode: true,
        hasSession: false,
      }),
      expect.objectContaining({
        handle: 'watched.test',
        tier: 'free',
        state: 'key_issued',
        ageSecs: 90,
        hasCode: false,
        hasSession: true,
      }),
    ])
    expect(JSON.stringify(body)).not.toMatch(
      new RegExp(`${key.keyId}|@example|${wallet.code}|${wallet.devicePublicKey}`),
    )
    const seen = new Set<string>()
    for (let cursor = ''; ;) {
      const page = (await operate(pds, `/v1/admin/ceremonies?limit=3&cursor=${encodeURIComponent(cursor)}`)).body
      for (const { accountId } of page.ceremonies) {
        expect(seen.has(accountId)).toBe(false)
        seen.add(accountId)
      }
      if (page.cursor === undefined) break
      cursor = page.cursor
    }
    expect(seen.size).toBe(await ceremonyCount())
    for (const cursor of ['x', '1', '|', 'x|y'])
      expect((await operate(pds, `/v1/admin/ceremonies?cursor=${cursor}`)).status).toBe(400)
    const metrics = await (await fetch(`${pds.url}/metrics`)).text()
    expect(metrics).toMatch(/^ceremonies\{state="key_issued"\} [1-9]/m)
  })
})

test('codes are limited like sign-ups, whatever is wrong with the request', async () => {
  await using limited = await startPds({ ...forCeremonies, rateLimit: { createAccountPer5min: 3 } })
  using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
  expect(await mobile(limited, newWallet('limited'))).toMatchObject(refused(404, 'NOT_FOUND'))
  expect(await request(`${limited.url}/v1/devices`, { json: {} })).toMatchObject({ status: 422 })
  expect(await operate(limited, '/v1/accounts', {})).toMatchObject({ status: 422 })
  expect(await mobile(limited, newWallet('limited'))).toMatchObject(refused(429, 'RATE_LIMITED'))
  expect((await xrpc(limited, 'com.atproto.server.createAccount', { json: {} })).status).toBe(429)
})
