/** The release of a share: opened by a code, waited for, collected once; and all ways in which it is refused. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from '../../src/platform/database/database.ts'
import { parseShare } from '../../src/protocol/escrow-share.ts'
import { createAccount, type TestAccount } from '../harness/account.ts'
import { basic, request, type Answer } from '../harness/http.ts'
import { noticesTo } from '../harness/mail.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../harness/pds.ts'
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
} from '../harness/recovery.ts'
import { walletSession } from '../harness/wallet.ts'

const DAY_SECS = 86_400

let pds: TestPds
let people = 0
/** Somebody with a share in escrow. */
let alice: TestAccount
/** Her wallet's session. */
let wallet: string
let share: string

beforeAll(async () => {
  pds = await startPds({ ...withMasterKey, rateLimit: { enabled: false } })
})
afterAll(() => pds[Symbol.asyncDispose]())
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
  test('is opened by a code, and collected once after the delay', async () => {
    const { status, body } = await open()
    expect({ status, state: body.status }).toEqual({ status: 200, state: 'pending' })
    expect(Math.abs(Date.parse(body.availableAt) - Date.parse(inOneDay()))).toBeLessThan(60_000)
    expect(Object.keys(body)).toEqual(['status', 'availableAt'])
    pds.clock.advance({ secs: DAY_SECS - 60 })
    expect(wire(await poll())).toEqual({ status: 200, body: { status: 'pending', availableAt: body.availableAt } })
    pds.clock.advance({ secs: 61 })
    expect(wire(await poll())).toEqual(released())
    expect(wire(await poll())).toEqual(REFUSED)
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested', 'released'])
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
    for (const again of [release, initiate]) expect(wire(await again(pds, alice.did, code))).toEqual({ status: 200, body })
    pds.clock.advance({ days: 1 })
    expect(wire(await release(pds, alice.did, code))).toEqual(released())
    expect(wire(await release(pds, alice.did, code))).toEqual(REFUSED)
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
    expect(wire(await poll())).toEqual(REFUSED)
  })

  test('waits longer when the clock is set back, and is collected once whatever the clock says', async () => {
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
    const answers = await Promise.all(refused.map(async ([why, identifier, otp]) => [why, await release(pds, identifier, otp)] as const))
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
    const { wrapped } = (await pds.ctx.db.get<{ wrapped: string }>(
      sql`SELECT share_wrapped AS wrapped FROM escrow_share WHERE did = ${alice.did}`,
    ))!
    const store = (text: string) => pds.ctx.db.run(sql`UPDATE escrow_share SET share_wrapped = ${text} WHERE did = ${alice.did}`)
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
  test('one collects, and the others are refused', async () => {
    const code = await newRecoveryCode(pds, alice)
    await release(pds, alice.did, code)
    pds.clock.advance({ days: 1 })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => release(pds, alice.did, i % 2 === 0 ? undefined : code)))
    expect(answers.filter(({ status }) => status === 200).map(({ body }) => body)).toEqual([released().body])
    for (const answer of answers.filter(({ status }) => status !== 200)) expect(wire(answer)).toEqual(REFUSED)
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested', 'released'])
  })

  test('who show the same code, one opens and the others see how it stands', async () => {
    const code = await newRecoveryCode(pds, alice)
    const answers = await Promise.all(Array.from({ length: 8 }, () => release(pds, alice.did, code)))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(answers[0]).toMatchObject(pending)
    expect(await escrowEvents(pds, alice.did)).toEqual(['deposited', 'release_requested'])
  })

  test('either the holder cancels or somebody collects', async () => {
    for (let round = 0; round < 4; round++) {
      await putShare(pds, wallet, share)
      const before = (await escrowEvents(pds, alice.did)).length
      await open()
      pds.clock.advance({ secs: DAY_SECS })
      const tries = [poll(), cancelRelease(pds, wallet)]
      const [collected] = await Promise.all(round % 2 === 0 ? tries : tries.reverse()).then((both) =>
        round % 2 === 0 ? both : both.reverse(),
      )
      const [, end] = (await escrowEvents(pds, alice.did)).slice(before)
      expect(end).toBe(collected!.status === 200 ? 'released' : 'release_cancelled')
      expect(wire(await poll())).toEqual(REFUSED)
    }
  })
})

describe('without a delay', () => {
  let hasty: TestPds
  beforeAll(async () => {
    hasty = await startPds({ ...withMasterKey, recovery: { releaseDelaySecs: 0 }, rateLimit: { enabled: false } })
  })
  afterAll(() => hasty[Symbol.asyncDispose]())

  test('one call returns the share, once for each code, and tells the holder of both', async () => {
    const bob = await createAccount(hasty, 'bob')
    await putShare(hasty, bob.accessJwt, share)
    const code = await newRecoveryCode(hasty, bob)
    expect(wire(await release(hasty, bob.did))).toEqual(REFUSED)
    expect(wire(await release(hasty, bob.did, code))).toEqual(released())
    expect(wire(await release(hasty, bob.did, code))).toEqual(REFUSED)
    expect(wire(await release(hasty, bob.did))).toEqual(REFUSED)
    expect(wire(await initiate(hasty, bob.handle, await newRecoveryCode(hasty, bob)))).toEqual(released())
    expect(await escrowEvents(hasty, bob.did)).toEqual(['deposited', 'release_requested', 'released', 'release_requested', 'released'])
    expect((await noticesTo(hasty, bob.email)).map(({ subject }) => subject.split(' (')[0])).toEqual([
      'Recovery of your account was requested',
      'Your recovery share was handed out',
      'Recovery of your account was requested',
      'Your recovery share was handed out',
    ])
  })

  test('a share that cannot be read costs no code', async () => {
    const dave = await createAccount(hasty, 'dave')
    await putShare(hasty, dave.accessJwt, share)
    const code = await newRecoveryCode(hasty, dave)
    const store = (text: string) => hasty.ctx.db.run(sql`UPDATE escrow_share SET share_wrapped = ${text} WHERE did = ${dave.did}`)
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
    const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(body.availableAt))
    expect(asked!.text).toContain(day)
    expect(asked!.text).toContain('Cancel the release now')
    pds.clock.advance({ days: 1 })
    await poll()
    const [, handedOut] = await noticesTo(pds, alice.email)
    expect(handedOut!.subject).toContain('Your recovery share was handed out')
    expect([asked!.text, handedOut!.text].join()).not.toContain(share)
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
