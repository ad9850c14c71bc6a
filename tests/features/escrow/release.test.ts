/** The release of a share: opened by a code, waited for, collected for an hour; and all ways in which it is refused. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { parseShare } from '../../../src/protocol/escrow-share.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, request, type Answer } from '../../support/clients/http.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import {
  cancelRelease,
  dropShare,
  escrowEvents,
  initiate,
  newRecoveryCode,
  newShare,
  putShare,
  REFUSED,
  release,
  withMasterKey,
} from '../../support/clients/recovery.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const DAY_SECS = 86_400
const HOUR_SECS = 3600

let people = 0
/** Somebody with a share in escrow. */
let alice: TestAccount
/** Her wallet's session. */
let wallet: string
let share: string

const { pds } = useWorld({ config: { ...withMasterKey, rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `alice${++people}`)
  wallet = await walletSession(pds, alice.did)
  share = newShare()
  await putShare(pds, wallet, share)
})

const open = async (account = alice): Promise<Answer> => release(pds, account.did, await newRecoveryCode(pds, account))
const poll = (account = alice) => release(pds, account.did)
const inOneDay = () => new Date(pds.clock.now() + DAY_SECS * 1000).toISOString()
const released = () => ({ status: 200, body: { status: 'released', share } })
const pending = { status: 200, body: { status: 'pending', availableAt: expect.any(String) } }
function bytesOf(text: string): Uint8Array {
  const outcome = parseShare(text)
  if (!outcome.ok) throw new Error(outcome.fault)
  return outcome.share.bytes
}
/** What is compared byte by byte. */
const wire = ({ status, body }: Answer) => ({ status, body })
const setStatus = (did: string, applied: boolean) =>
  request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, takedown: { applied } },
    headers: basic('admin', ADMIN_TOKEN),
  })

describe('a release', () => {
  test('is opened by a code, and collected after the delay', async () => {
    const { status, body } = await open()
    expect({ status, state: body.status }).toEqual({ status: 200, state: 'pending' })
    expect(Math.abs(Date.parse(body.availableAt) - Date.parse(inOneDay()))).toBeLessThan(60_000)
    expect(Object.keys(body)).toEqual(['status', 'availableAt'])
    pds.clock.advance({ secs: DAY_SECS - 60 })
    expect(wire(await poll())).toEqual({ status: 200, body: { status: 'pending', availableAt: body.availableAt } })
    pds.clock.advance({ secs: 61 })
    expect(wire(await poll())).toEqual(released())
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested', 'released'])
  })

  test('hands the share out again for an hour, each time on record and with a mail, and then no more', async () => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    pds.clock.advance({ days: 1 })
    expect(wire(await poll())).toEqual(released())
    pds.clock.advance({ secs: HOUR_SECS - 60 })
    expect(wire(await poll())).toEqual(released())
    expect(wire(await release(pds, alice.did, code))).toEqual(released())
    expect(wire(await initiate(pds, alice.did, code))).toEqual(released())
    expect(await escrowEvents(pds, alice.did)).toEqual([
      'deposited',
      'release_requested',
      ...Array<string>(4).fill('released'),
    ])
    const mails = await noticesTo(pds, alice.email)
    expect(mails.filter(({ subject }) => subject.startsWith('Your recovery share was handed out'))).toHaveLength(4)
    pds.clock.advance({ secs: 61 })
    for (const otp of [undefined, code]) expect(wire(await release(pds, alice.did, otp))).toEqual(REFUSED)
    await pds.runSweep('recovery-codes')
    expect(wire(await poll())).toEqual(REFUSED)
    expect(await cancelRelease(pds, wallet)).toMatchObject({ body: { status: 'cancelled' } })
    expect((await escrowEvents(pds, alice.did)).at(-1)).toBe('released')
  })

  test.each([
    ['cancelled', () => cancelRelease(pds, wallet)],
    ['ended by deleting the share', () => dropShare(pds, wallet)],
    ['ended by another share', () => putShare(pds, wallet, newShare())],
  ] as const)('is %s after it was collected too', async (_, end) => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    pds.clock.advance({ days: 1 })
    await poll()
    await end()
    for (const otp of [undefined, code]) expect(wire(await release(pds, alice.did, otp))).toEqual(REFUSED)
  })

  test('that a wallet opened with a required code is collected with that code only', async () => {
    const code = await newRecoveryCode(pds, alice)
    const opened = await release(pds, alice.did, code, { code: 'required' })
    expect(opened).toMatchObject(pending)
    expect(wire(await poll())).toEqual(REFUSED)
    expect(wire(await release(pds, alice.did, 'A'.repeat(43)))).toEqual(REFUSED)
    expect(wire(await release(pds, alice.did, code))).toEqual({ status: 200, body: opened.body })
    pds.clock.advance({ days: 1 })
    expect(wire(await poll())).toEqual(REFUSED)
    for (const otp of [code, code])
      expect(wire(await release(pds, alice.did, otp, { code: 'required' }))).toEqual(released())
    expect(wire(await poll())).toEqual(REFUSED)
  })

  test('is opened by initiate with a required code too, and a later code decides anew', async () => {
    await initiate(pds, alice.did, await newRecoveryCode(pds, alice), { code: 'required' })
    expect(wire(await poll())).toEqual(REFUSED)
    await open()
    expect(wire(await poll())).toMatchObject(pending)
  })

  test.each(['optional', '', true, null])('takes no other word for a required code: %j', async (code) => {
    const otp = await newRecoveryCode(pds, alice)
    expect((await release(pds, alice.did, otp, { code })).status).toBe(422)
    expect(await release(pds, alice.did, otp)).toMatchObject(pending)
  })

  test('leaves the share in escrow, for another time', async () => {
    for (let round = 0; round < 2; round++) {
      await open()
      pds.clock.advance({ days: 1 })
      expect(wire(await poll())).toEqual(released())
    }
  })

  test('is opened by initiate too', async () => {
    expect(wire(await initiate(pds, alice.did, await newRecoveryCode(pds, alice)))).toEqual(pending)
    expect(wire(await initiate(pds, alice.did, 'A'.repeat(43)))).toEqual(REFUSED)
    pds.clock.advance({ days: 1 })
    expect(wire(await poll())).toEqual(released())
  })

  test('shows how it stands to the code that opened it, which ends with it', async () => {
    const code = await newRecoveryCode(pds, alice)
    const { body } = await release(pds, alice.did, code)
    pds.clock.advance({ secs: 7200 })
    for (const again of [release, initiate])
      expect(wire(await again(pds, alice.did, code))).toEqual({ status: 200, body })
    pds.clock.advance({ days: 1 })
    expect(wire(await release(pds, alice.did, code))).toEqual(released())
    const next = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, next)
    await cancelRelease(pds, wallet)
    expect(wire(await release(pds, alice.did, next))).toEqual(REFUSED)
    expect(wire(await release(pds, alice.did, code))).toEqual(REFUSED)
  })

  test('begins anew with a fresh code, whether it waits or is over', async () => {
    const first = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, first)
    pds.clock.advance({ secs: DAY_SECS - 60 })
    expect(await open()).toMatchObject(pending)
    expect(wire(await release(pds, alice.did, first))).toEqual(REFUSED)
    pds.clock.advance({ secs: 120 })
    expect(await poll()).toMatchObject(pending)
    pds.clock.advance({ days: 1 })
    expect(await open()).toMatchObject(pending)
    expect(await poll()).toMatchObject(pending)
  })

  test.each([
    ['cancelled', () => cancelRelease(pds, wallet), 'cancelled'],
    ['ended by deleting the share', () => dropShare(pds, wallet), 'deleted'],
    ['ended by another share', () => putShare(pds, wallet, newShare()), 'rotated'],
  ] as const)('is %s, while it waits and when it is over', async (_, end, status) => {
    for (const days of [0, 2]) {
      await putShare(pds, wallet, share)
      expect(await open()).toMatchObject(pending)
      pds.clock.advance({ days })
      expect(wire(await end())).toEqual({ status: 200, body: { status } })
      expect(wire(await poll())).toEqual(REFUSED)
      pds.clock.advance({ days: 2 })
      expect(wire(await poll())).toEqual(REFUSED)
    }
  })

  test('that there is none of is cancelled all the same, and nothing is noted', async () => {
    expect(wire(await cancelRelease(pds, wallet))).toEqual({ status: 200, body: { status: 'cancelled' } })
    await dropShare(pds, wallet)
    expect(wire(await dropShare(pds, wallet))).toEqual({ status: 200, body: { status: 'deleted' } })
    expect(wire(await cancelRelease(pds, wallet))).toEqual({ status: 200, body: { status: 'cancelled' } })
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'deleted'])
  })

  test('goes on over a restart', async () => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    await pds.restart()
    expect(wire(await release(pds, alice.did, code))).toEqual(pending)
    pds.clock.advance({ days: 1 })
    await pds.restart()
    expect(wire(await poll())).toEqual(released())
    await pds.restart()
    expect(wire(await poll())).toEqual(released())
    pds.clock.advance({ secs: HOUR_SECS })
    await pds.restart()
    expect(wire(await poll())).toEqual(REFUSED)
  })

  test('waits longer when the clock is set back, and is collected for no longer whatever the clock says', async () => {
    await open()
    pds.clock.jump({ days: -1 })
    pds.clock.advance({ days: 1 })
    expect(await poll()).toMatchObject(pending)
    pds.clock.jump({ days: 1 })
    expect(wire(await poll())).toEqual(released())
    pds.clock.jump({ days: -2 })
    expect(wire(await poll())).toEqual(REFUSED)
    expect(wire(await release(pds, alice.did, await newRecoveryCode(pds, alice)))).toEqual(pending)
    pds.clock.jump({ days: 2 })
  })

  test('of a deactivated account goes its way; that of one taken down is refused until it is back', async () => {
    await alice.call('com.atproto.server.deactivateAccount', { json: {} })
    expect(await open()).toMatchObject(pending)
    await setStatus(alice.did, true)
    pds.clock.advance({ days: 1 })
    expect(wire(await poll())).toEqual(REFUSED)
    await setStatus(alice.did, false)
    expect(wire(await poll())).toEqual(released())
  })
})

describe('the one refusal', () => {
  test('is for everything that does not open or collect', async () => {
    const [bob, carol] = [await createAccount(pds, `bob${people}`), await createAccount(pds, `carol${people}`)]
    const theirs = await newRecoveryCode(pds, bob)
    const used = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, used)
    await cancelRelease(pds, wallet)
    const expired = await newRecoveryCode(pds, alice)
    pds.clock.advance({ secs: 3601 })
    const good = await newRecoveryCode(pds, carol)
    await setStatus(carol.did, true)
    const refused: [string, string, string?][] = [
      ['nobody', 'nobody.test'],
      ['nobody, with a code', 'did:plc:aliceaaaaaaaaaaaaaaaaaaa', 'A'.repeat(43)],
      ['nothing', ''],
      ['no identifier at all', 'a b\u0000c', 'x'],
      ['no release', alice.did],
      ['no share', bob.did],
      ['a wrong code', alice.did, 'A'.repeat(43)],
      ['no code', alice.did, ''],
      ['a code in another spelling', alice.did, `${good}=`],
      ['a code of another', alice.did, theirs],
      ['a used code', alice.did, used],
      ['an expired code', alice.did, expired],
      ['somebody taken down', carol.did, good],
      ['somebody taken down, without a code', carol.did],
      ['an address', alice.email, 'A'.repeat(43)],
    ]
    const answers = await Promise.all(
      refused.map(async ([why, identifier, otp]) => [why, await release(pds, identifier, otp)] as const),
    )
    for (const [why, answer] of answers) {
      expect([why, wire(answer)]).toEqual([why, REFUSED])
      expect([...answer.headers].filter(([name]) => name !== 'date')).toEqual(
        [...answers[0]![1].headers].filter(([name]) => name !== 'date'),
      )
    }
  })

  test('costs an account without a share its code', async () => {
    const bob = await createAccount(pds, `bob${people}`)
    const code = await newRecoveryCode(pds, bob)
    expect(wire(await release(pds, bob.did, code))).toEqual(REFUSED)
    await putShare(pds, bob.accessJwt, newShare())
    expect(wire(await release(pds, bob.did, code))).toEqual(REFUSED)
    expect(await escrowEvents(pds, bob.did)).toEqual(['deposited'])
  })

  test('a share that cannot be read is a fault of the server, and stays collectable', async () => {
    await open()
    pds.clock.advance({ days: 1 })
    const wrapped = (await pds.rows('escrow_share', { did: alice.did }))[0]!.share_wrapped
    const store = (text: string) => pds.damage('escrow_share', { did: alice.did }, { share_wrapped: text })
    for (const broken of ['', pds.ctx.vault.wrap(Buffer.from('not a share'))]) {
      await store(broken)
      expect(await poll()).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL_ERROR' } } })
    }
    await store(wrapped)
    expect(wire(await poll())).toEqual(released())
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested', 'released'])
  })
})

describe('of many at once', () => {
  test('who collect, all get the share, and each is on record', async () => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    pds.clock.advance({ days: 1 })
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => release(pds, alice.did, i % 2 === 0 ? undefined : code)),
    )
    for (const answer of answers) expect(wire(answer)).toEqual(released())
    expect(await escrowEvents(pds, alice.did)).toEqual([
      'deposited',
      'release_requested',
      ...answers.map(() => 'released'),
    ])
  })

  test('who show the same code, one opens and the others see how it stands', async () => {
    const code = await newRecoveryCode(pds, alice)
    const answers = await Promise.all(Array.from({ length: 8 }, () => release(pds, alice.did, code)))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(answers[0]).toMatchObject(pending)
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested'])
  })

  test('who collect and cancel, nobody collects once it is cancelled', async () => {
    for (let round = 0; round < 4; round++) {
      await putShare(pds, wallet, share)
      const before = (await escrowEvents(pds, alice.did)).length
      await open()
      pds.clock.advance({ secs: DAY_SECS })
      const tries = [poll(), cancelRelease(pds, wallet)]
      const [collected] = await Promise.all(round % 2 === 0 ? tries : tries.reverse()).then((both) =>
        round % 2 === 0 ? both : both.reverse(),
      )
      const [, ...ends] = (await escrowEvents(pds, alice.did)).slice(before)
      expect(ends).toEqual(collected!.status === 200 ? ['released', 'release_cancelled'] : ['release_cancelled'])
      expect(wire(await poll())).toEqual(REFUSED)
    }
  })
})

describe('without a delay', () => {
  const { pds: hasty } = useWorld({
    config: { ...withMasterKey, recovery: { releaseDelaySecs: 0 }, rateLimit: { enabled: false } },
  })

  test('one call returns the share, only to those who show the code, and tells the holder of both', async () => {
    const bob = await createAccount(hasty, 'bob')
    await putShare(hasty, bob.accessJwt, share)
    const code = await newRecoveryCode(hasty, bob)
    expect(wire(await release(hasty, bob.did))).toEqual(REFUSED)
    for (let time = 0; time < 2; time++) expect(wire(await release(hasty, bob.did, code))).toEqual(released())
    expect(wire(await release(hasty, bob.did))).toEqual(REFUSED)
    expect(wire(await initiate(hasty, bob.handle, await newRecoveryCode(hasty, bob)))).toEqual(released())
    expect(await escrowEvents(hasty, bob.did)).toEqual([
      'deposited',
      'release_requested',
      'released',
      'released',
      'release_requested',
      'released',
    ])
    expect((await noticesTo(hasty, bob.email)).map(({ subject }) => subject.split(' (')[0])).toEqual([
      'Recovery of your account was requested',
      'Your recovery share was handed out',
      'Your recovery share was handed out',
      'Recovery of your account was requested',
      'Your recovery share was handed out',
    ])
  })

  test('a share that cannot be read costs no code', async () => {
    const dave = await createAccount(hasty, 'dave')
    await putShare(hasty, dave.accessJwt, share)
    const code = await newRecoveryCode(hasty, dave)
    const store = (text: string) => hasty.damage('escrow_share', { did: dave.did }, { share_wrapped: text })
    await store('')
    expect((await release(hasty, dave.did, code)).status).toBe(500)
    await store(hasty.ctx.vault.wrap(bytesOf(share)))
    expect(wire(await release(hasty, dave.did, code))).toEqual(released())
    expect(await escrowEvents(hasty, dave.did)).toEqual(['deposited', 'release_requested', 'released'])
  })

  test('nobody who has no code gets in between, however many ask', async () => {
    const carol = await createAccount(hasty, 'carol')
    await putShare(hasty, carol.accessJwt, share)
    const code = await newRecoveryCode(hasty, carol)
    const [opened, ...others] = await Promise.all([
      release(hasty, carol.did, code),
      ...Array.from({ length: 10 }, () => release(hasty, carol.did)),
    ])
    expect(wire(opened!)).toEqual(released())
    for (const other of others) expect(wire(other)).toEqual(REFUSED)
  })
})

describe('the holder', () => {
  test('is told that somebody asked, until when it can be cancelled, and that the share was handed out', async () => {
    const { body } = await open()
    const [asked] = await noticesTo(pds, alice.email)
    expect(asked!.subject).toBe(`Recovery of your account was requested (${new URL(pds.url).host})`)
    const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(
      new Date(body.availableAt),
    )
    expect(asked!.text).toContain(day)
    expect(asked!.text).toContain('Cancel the release now')
    pds.clock.advance({ days: 1 })
    await poll()
    const [, handedOut] = await noticesTo(pds, alice.email)
    expect(handedOut!.subject).toContain('Your recovery share was handed out')
    expect([asked!.text, handedOut!.text].join()).not.toContain(share)
  })

  test('is told at every address of the last 30 days, which may all be those of others by now', async () => {
    const changed = async (email: string) => {
      const { token } = (await alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' })).body
      const answer = await alice.call('com.atproto.server.updateEmail', { json: { email, token } })
      expect(answer.status).toBe(200)
    }
    const [old, first, present] = [
      `old${people}@example.com`,
      `first${people}@example.com`,
      `present${people}@example.com`,
    ]
    const original = alice.email
    await changed(old)
    pds.clock.advance({ days: 29 })
    alice = await logIn(pds, alice, alice.password)
    await changed(first)
    pds.clock.advance({ days: 1 })
    alice = await logIn(pds, alice, alice.password)
    await changed(present)
    await changed(present)
    const account = { ...alice, email: present }
    await open(account)
    const asked = async (address: string) =>
      (await noticesTo(pds, address))
        .filter(({ subject }) => subject.startsWith('Recovery of your account'))
        .map(({ text }) => text)
    // The first address was replaced 30 days ago.
    expect(await asked(original)).toEqual([])
    for (const former of [old, first])
      expect(await asked(former)).toEqual([expect.stringContaining('This was the address of the account')])
    expect(await asked(present)).toEqual([expect.stringContaining('a code that we emailed to you')])
    pds.clock.advance({ days: 1 })
    await poll(account)
    const handedOut = await Promise.all([old, first, present].map((address) => noticesTo(pds, address)))
    for (const mails of handedOut) expect(mails.at(-1)!.subject).toContain('Your recovery share was handed out')
    pds.clock.advance({ days: 30 })
    expect(await pds.runSweep('former-addresses')).toEqual({ deleted: 3 })
  })

  test('is told at the address that was replaced first, however many others follow it', async () => {
    const original = alice.email
    for (let change = 0; change < 8; change++)
      await alice.call('com.atproto.server.updateEmail', { json: { email: `away${people}-${change}@example.com` } })
    await alice.call('com.atproto.server.updateEmail', { json: { email: original } })
    await alice.call('com.atproto.server.updateEmail', { json: { email: `away${people}-9@example.com` } })
    await open({ ...alice, email: `away${people}-9@example.com` })
    expect((await noticesTo(pds, original)).at(-1)!.text).toContain('This was the address of the account')
    const told = pds.mails.filter(({ text }) => text.includes('This was the address') && text.includes(alice.handle))
    expect(told).toHaveLength(5)
  })

  test('is the one of whom the log of the server tells, without code or share', async () => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    await cancelRelease(pds, wallet)
    const lines = pds.log.filter((line) => 'did' in line && line.did === alice.did).map(({ message }) => message)
    expect(lines).toEqual(
      expect.arrayContaining([
        'recovery share deposited',
        'release of the recovery share opened',
        'release of the recovery share cancelled',
      ]),
    )
    const everything = JSON.stringify(pds.log)
    for (const secret of [code, share]) expect(everything).not.toContain(secret)
  })
})

test('those who show no code collect a share 100 times in the hour, and the code still opens it', async () => {
  await using limited = await startPds({ ...withMasterKey, rateLimit: { recoveryPer5min: 1000 } })
  const bob = await createAccount(limited, 'bob')
  await putShare(limited, bob.accessJwt, newShare())
  const code = await newRecoveryCode(limited, bob)
  await release(limited, bob.did, code)
  limited.clock.advance({ days: 1 })
  for (let time = 0; time < 100; time++) expect((await release(limited, bob.did)).status).toBe(200)
  expect(wire(await release(limited, bob.did))).toEqual(REFUSED)
  expect((await release(limited, bob.did, code)).status).toBe(200)
})
