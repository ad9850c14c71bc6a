/**
 * Codes by mail: who gets one, how long and how often it works, and that nobody learns or abuses anything by asking.
 */
import { beforeEach, describe, expect, test } from 'bun:test'
import { createMailer } from '../../../src/platform/network/mailer.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { systemResolver } from '../../../src/platform/network/resolver.ts'
import type { Mailer } from '../../../src/platform/network/mailer.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { testConfig } from '../../support/servers/config.ts'
import { basic, request } from '../../support/clients/http.ts'
import { testLog } from '../../support/log.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import {
  escrowEvents,
  initiate,
  newRecoveryCode,
  newShare,
  putShare,
  recoveryCodes,
  REFUSED,
  release,
  withMasterKey,
} from '../../support/clients/recovery.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const HOUR = { secs: 3601 }
const JUST_UNDER_AN_HOUR = { secs: 3590 }

let people = 0
let alice: TestAccount
const { pds } = useWorld({ config: { ...withMasterKey, rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `alice${++people}`)
  await putShare(pds, alice.accessJwt, newShare())
})

const mailsTo = async (address: string) => {
  await pds.runSteps()
  return pds.mails.filter(({ to }) => to === address)
}
const ask = async (times: number, identifier = alice.did) => {
  for (let i = 0; i < times; i++) {
    await initiate(pds, identifier)
    await pds.runSteps()
  }
}
const isPending = async (code: string, { did } = alice) => (await release(pds, did, code)).status === 200

describe('a code', () => {
  test('comes with its label, alone on its line, and says how long it works and what to do about it', async () => {
    await initiate(pds, alice.handle)
    const [mail] = await mailsTo(alice.email)
    expect(mail!.subject).toBe(`Account recovery requested (${new URL(pds.url).host})`)
    expect(mail!.text).toMatch(/\n\nRecovery code:\n[A-Za-z0-9_-]{43}\n\n/)
    for (const words of [alice.handle, 'once, within an hour', 'Do not share the code', 'When: '])
      expect(mail!.text).toContain(words)
  })

  test('is asked for by handle in any case, or by DID as it is', async () => {
    for (const identifier of [alice.handle.toUpperCase(), alice.did]) await ask(1, identifier)
    expect(await recoveryCodes(pds, alice.email)).toHaveLength(2)
    await ask(1, alice.did.toUpperCase())
    expect(await recoveryCodes(pds, alice.email)).toHaveLength(2)
  })

  test('comes for accounts that have no share, and for those that are deactivated, and for no others', async () => {
    const [bob, carol] = [await createAccount(pds, `bob${people}`), await createAccount(pds, `carol${people}`)]
    await bob.call('com.atproto.server.deactivateAccount', { json: {} })
    await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: carol.did }, takedown: { applied: true } },
      headers: basic('admin', ADMIN_TOKEN),
    })
    for (const { did } of [bob, carol]) await initiate(pds, did)
    expect(await recoveryCodes(pds, bob.email)).toHaveLength(1)
    expect(await recoveryCodes(pds, carol.email)).toEqual([])
  })

  test('works for an hour', async () => {
    const [first, second] = [await newRecoveryCode(pds, alice), await newRecoveryCode(pds, alice)]
    pds.clock.advance(JUST_UNDER_AN_HOUR)
    expect(await isPending(first)).toBe(true)
    pds.clock.advance({ secs: 20 })
    expect(await isPending(second)).toBe(false)
  })

  test('of several that work each works once', async () => {
    const codes = [
      await newRecoveryCode(pds, alice),
      await newRecoveryCode(pds, alice),
      await newRecoveryCode(pds, alice),
    ]
    for (const code of codes.toReversed()) expect(await isPending(code)).toBe(true)
    // Each began the release anew, so the last one is that of the release in flight.
    expect(await Promise.all(codes.map((code) => isPending(code)))).toEqual([true, false, false])
  })

  test('does not work once the clock is before the time at which it was sent, nor does its row live forever', async () => {
    pds.clock.jump({ days: 1 })
    const code = await newRecoveryCode(pds, alice)
    pds.clock.jump({ days: -1 })
    expect(await isPending(code)).toBe(false)
    expect(await isPending(await newRecoveryCode(pds, alice))).toBe(true)
    pds.clock.advance({ days: 3 })
    await pds.runSweep('recovery-codes')
    await pds.runSweep('recovery-codes')
    expect(await pds.rows('recovery_code')).toHaveLength(0)
  })

  test('is void once the account has another address', async () => {
    const code = await newRecoveryCode(pds, alice)
    await alice.call('com.atproto.server.updateEmail', { json: { email: `new${people}@example.com` } })
    expect(await isPending(code)).toBe(false)
  })

  test.each([
    ['its holder', (email: string) => alice.call('com.atproto.server.updateEmail', { json: { email } })],
    [
      'the operator',
      (email: string) =>
        request(`${pds.url}/v1/admin/accounts/${alice.did}/email`, {
          json: { email },
          headers: basic('admin', ADMIN_TOKEN),
        }),
    ],
  ])('opens nothing for longer than the account has the address: %s replaces it', async (_, replace) => {
    const code = await newRecoveryCode(pds, alice)
    expect(await isPending(code)).toBe(true)
    const email = `new${people}@example.com`
    await replace(alice.email)
    expect(await isPending(code)).toBe(true)
    expect((await replace(email)).status).toBe(200)
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested', 'release_cancelled'])
    pds.clock.advance({ days: 2 })
    for (const given of [code, undefined]) expect(await release(pds, alice.did, given)).toMatchObject(REFUSED)
    expect(await isPending(await newRecoveryCode(pds, { ...alice, email }))).toBe(true)
  })

  test('is nowhere but in the mail', async () => {
    const code = await newRecoveryCode(pds, alice)
    expect(JSON.stringify(pds.log)).not.toContain(code)
    expect(JSON.stringify(await pds.rows('recovery_code'))).not.toContain(code)
    const { body } = await request(`${pds.url}/v1/admin/steps?kind=mail`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    })
    expect(JSON.stringify(body)).not.toContain(code)
  })

  test('is not opened by a forged request origin: a stranger puts no words into the mail', async () => {
    await request(`${pds.url}/v1/recovery/initiate`, {
      json: { identifier: alice.did },
      headers: { 'user-agent': 'Buy cheap coins at https://evil.example', origin: 'https://evil.example' },
    })
    const [mail] = await mailsTo(alice.email)
    expect(mail!.text).not.toContain('evil')
  })
})

describe('asking', () => {
  test('answers the same for everybody, byte by byte', async () => {
    const identifiers = [
      alice.did,
      alice.handle,
      'nobody.test',
      'did:plc:aliceaaaaaaaaaaaaaaaaaaa',
      '',
      ' ',
      'x'.repeat(5000),
      'a\u0000b',
      '💥',
      alice.email,
    ]
    const answers = await Promise.all(identifiers.map((identifier) => initiate(pds, identifier)))
    const wire = answers.map(({ status, body, headers }) => ({
      status,
      body,
      headers: [...headers].filter(([name]) => name !== 'date'),
    }))
    for (const one of wire) expect(one).toEqual({ ...wire[0]!, status: 200, body: '' })
    await pds.runSteps()
    expect(
      pds.mails.filter(
        ({ to, text }) => to !== alice.email && text.includes('Recovery code') && text.includes('x'.repeat(50)),
      ),
    ).toEqual([])
  })

  test('writes the same for everybody, and sends no mail before the answer', async () => {
    using _ = atOneNode(pds, 'each node counts for itself')
    const costs = async (identifier: string) => {
      await pds.runSteps()
      const before = { ...pds.ctx.db.counters }
      const mails = pds.mails.length
      await initiate(pds, identifier)
      // Nothing is awaited between the answer and these.
      return { transactions: pds.ctx.db.counters.transactions > before.transactions, mails: pds.mails.length - mails }
    }
    expect(await costs('nobody.test')).toMatchObject({ transactions: true, mails: 0 })
    expect(await costs(alice.did)).toMatchObject({ transactions: true })
  })

  test.each([
    '{}',
    '{"identifier":null}',
    '{"identifier":1}',
    '{"identifier":"a","otp":1}',
    '{"identifier":"a","otp":null}',
    '[]',
    '""',
  ])('without the right members is 422: %s', async (body) => {
    for (const path of ['initiate', 'release'])
      expect(
        await request(`${pds.url}/v1/recovery/${path}`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        }),
      ).toMatchObject({ status: 422, body: { error: { code: 'InvalidRequest' } } })
  })

  test('in another form is 400 or 415', async () => {
    for (const path of ['initiate', 'release']) {
      const post = (body: string, type: string) =>
        request(`${pds.url}/v1/recovery/${path}`, { method: 'POST', body, headers: { 'content-type': type } })
      expect((await post('{"identifier":', 'application/json')).status).toBe(400)
      expect((await post('{"identifier":"a"}', 'text/plain')).status).toBe(415)
    }
  })

  test('answers 200 although nothing can be written', async () => {
    await using ill = await startPds({ ...withMasterKey })
    await ill.hide('step')
    expect(await initiate(ill, 'nobody.test')).toMatchObject({ status: 200, body: '' })
    expect(ill.log.map(({ message }) => message)).toContain('could not store a request for a recovery code')
  })
})

describe('who asks again and again', () => {
  test('for somebody causes five mails an hour, then one, and the holder always has a code that works', async () => {
    for (const sent of [5, 10, 15, 16, 17, 18]) {
      await ask(8)
      expect(await recoveryCodes(pds, alice.email)).toHaveLength(sent)
      pds.clock.advance(HOUR)
    }
    await ask(8)
    expect(await isPending((await recoveryCodes(pds, alice.email)).at(-1)!)).toBe(true)
    pds.clock.advance({ days: 1 })
    await ask(8)
    expect(await recoveryCodes(pds, alice.email)).toHaveLength(24)
  })

  test('causes no more after a restart, or from many addresses at once', async () => {
    await ask(3)
    await pds.restart()
    await Promise.all(Array.from({ length: 30 }, (_, i) => initiate(pds, i % 2 === 0 ? alice.did : alice.handle)))
    await ask(5)
    expect(await recoveryCodes(pds, alice.email)).toHaveLength(5)
  })

  test('is limited by address, with release in one budget', async () => {
    await using limited = await startPds({ ...withMasterKey, rateLimit: { recoveryPer5min: 4 } })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    expect((await initiate(limited, 'a.test')).status).toBe(200)
    expect((await release(limited, 'a.test')).status).toBe(401)
    expect((await request(`${limited.url}/v1/recovery/release`, { method: 'POST', body: '{' })).status).toBe(415)
    const last = await initiate(limited, 'a.test')
    expect([last.status, last.headers.get('ratelimit-remaining')]).toEqual([200, '0'])
    for (const refused of [await initiate(limited, 'a.test'), await release(limited, 'a.test', 'x')])
      expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
    limited.clock.advance({ secs: 301 })
    expect((await release(limited, 'a.test')).status).toBe(401)
  })
})

describe('when the mail server', () => {
  test('is real, the code of its mail opens a release', async () => {
    await using box = await startMailbox({ tls: 'none' })
    const place = { dataDir: '/nowhere', port: 0, publicUrl: 'http://localhost:1' }
    const config = testConfig(place, {
      email: { provider: 'smtp', from: 'pds@example.org', smtpHost: 'localhost', smtpPort: box.port, smtpTls: 'none' },
    })
    const { log } = testLog(Date.now)
    const mailer = createMailer(config, {
      upstream: createOutbound({ resolver: systemResolver(), reach: 'anywhere' }),
      log,
    })
    await using real = await startPds({ ...withMasterKey, recovery: { releaseDelaySecs: 0 } }, { mailer })
    const bob = await createAccount(real, 'bob')
    const share = newShare()
    await putShare(real, bob.accessJwt, share)
    const arriving = box.next()
    await initiate(real, bob.handle)
    const { to, source } = await arriving
    expect(to).toEqual([bob.email])
    const [, code] = /\r\nRecovery code:\r\n(\S{43})\r\n/.exec(source)!
    expect((await release(real, bob.did, code)).body).toEqual({ status: 'released', share })
    await real.runSteps()
    expect(box.received.map(({ source: text }) => /^Subject: (.*) \(/m.exec(text)?.[1])).toEqual([
      'Account recovery requested',
      'Recovery of your account was requested',
      'Your recovery share was handed out',
    ])
  })

  test('is away, the answer is the same and the mail comes later, unless its code has expired by then', async () => {
    const sent: string[] = []
    let isAway = true
    const mailer: Mailer = {
      async send({ text }) {
        if (isAway) throw new Error('nobody there')
        sent.push(text)
      },
      check: async () => null,
    }
    await using far = await startPds(withMasterKey, { mailer })
    const bob = await createAccount(far, 'bob')
    expect((await initiate(far, bob.did)).status).toBe(200)
    await far.runSteps()
    far.clock.advance({ secs: 1800 })
    await initiate(far, bob.did)
    await far.runSteps()
    isAway = false
    far.clock.advance({ secs: 1850 })
    await far.runSteps()
    expect(sent).toHaveLength(1)
    const [, code] = /^Recovery code:\n(.*)$/m.exec(sent[0]!)!
    expect(await release(far, bob.did, code)).toMatchObject(REFUSED)
    await putShare(far, bob.accessJwt, newShare())
    expect((await release(far, bob.did, code)).status).toBe(401)
  })
})
