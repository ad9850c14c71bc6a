/** Which rotation keys stay and which go: shown before anything is signed, decided by the holder, and nothing else. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { answer, begin, giveCode, giveMailedCode, moveOf, plan } from '../../support/clients/mover.ts'
import { lastOperation, publish } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { startLyingHost, type LyingHost } from '../../support/faults/lying-host.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { nextOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })
const host: LyingHost = setUp(startLyingHost)
const old: TestPds = setUp(async () => {
  const behind = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }, { publicUrl: host.url })
  host.to = behind.url
  return behind
})
afterEach(() => {
  host.lie = () => null
})

const CREDENTIALS = 'com.atproto.identity.getRecommendedDidCredentials'

let names = 0
/** Somebody with a recovery key, which the old server claims as its own beside the one that is. */
async function robbed() {
  const own = deviceKey()
  const name = `keys${names++}`
  const from = await createAccount(old, name, { recoveryKey: own.did })
  const theirs = (await operationOf(from)).rotationKeys.find((key) => key !== own.did)!
  host.lie = (nsid) => (nsid === CREDENTIALS ? Response.json({ rotationKeys: [own.did, theirs] }) : null)
  return { from, name, own, theirs }
}

const operationOf = async (account: TestAccount) => (await lastOperation({ directory: plc, account })) as Operation

/** Adds a key to the identity behind everybody's back. */
async function addKey(account: TestAccount, own: ReturnType<typeof deviceKey>, added: string): Promise<void> {
  const last = await operationOf(account)
  const next = nextOperation(last, { rotationKeys: [...last.rotationKeys, added] })!
  await publish({ directory: plc, account }, signOperation(next, own.key))
}

async function waiting(wishes: object = {}) {
  const all = await robbed()
  const moving = await begin(pds, all.from, `${all.name}-here`, wishes)
  await pds.runSteps()
  return { ...all, moving, shown: await moveOf(pds, moving) }
}

const keep = (moving: TestAccount, keepKeys: string[]) => answer(pds, moving, { keepKeys })

describe('an old server that claims a key of the holder', () => {
  test('is shown in the plan, with whose each key is believed to be', async () => {
    const { from, own, theirs } = await robbed()
    const { keys } = (await plan(pds, from)).body
    expect(keys.go).toEqual([
      { key: own.did, owner: 'old-server', isChoice: true },
      { key: theirs, owner: 'old-server', isChoice: true },
    ])
    expect(keys.stay).toEqual([{ key: expect.any(String), owner: 'this-server', isChoice: false }])
  })

  test('does not take it if the holder keeps it, and the operation says what was shown', async () => {
    const { from, moving, own, theirs, shown } = await waiting()
    expect(shown.keys!.go.map(({ key }) => key)).toEqual([own.did, theirs])
    const kept = (await keep(moving, [own.did])).body.move
    expect(kept.keys.stay.map(({ key }: { key: string }) => key)[0]).toBe(own.did)
    expect(kept.agreement).not.toBe(shown.agreement)

    const code = await lastCode(old, from.email)
    const before = await answer(pds, moving, { code, agreement: shown.agreement })
    expect(before).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } })
    expect((await answer(pds, moving, { code, agreement: kept.agreement })).status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', keys: null, agreement: null })
    const { rotationKeys } = await operationOf(from)
    expect(rotationKeys).toEqual(kept.keys.stay.map(({ key }: { key: string }) => key))
    expect(rotationKeys).not.toContain(theirs)
  })

  test('does not take it if the holder says so when the move begins', async () => {
    const { from, name, own } = await robbed()
    const moving = await begin(pds, from, `${name}-here`, { keepKeys: [own.did] })
    await pds.runSteps()
    expect((await moveOf(pds, moving)).keys!.stay[0]).toEqual({ key: own.did, owner: 'old-server', isChoice: true })
    expect((await keep(moving, [])).body.move.keys.go).toHaveLength(2)
  })

  test('loses a key that it signs with, whatever the holder says, and never gets it back', async () => {
    const { from, moving, own, theirs } = await waiting()
    expect((await keep(moving, [own.did, theirs])).status).toBe(200)
    expect(await thrownBy(giveMailedCode(pds, moving, old, from.email))).toThrow('was answered 400')
    const { keys } = await moveOf(pds, moving)
    expect(keys!.go).toEqual([{ key: theirs, owner: 'old-server', isChoice: false }])
    const again = await keep(moving, [own.did, theirs])
    expect(again).toMatchObject({ status: 400 })
    expect(again.body.error.message).toContain('the old server has signed with')

    expect((await answer(pds, moving, { mail: true })).status).toBe(200)
    expect((await giveCode(pds, moving, await lastCode(old, from.email, 2))).status).toBe(200)
    await pds.runSteps()
    const { rotationKeys } = await operationOf(from)
    expect(rotationKeys[0]).toBe(own.did)
    expect(rotationKeys).not.toContain(theirs)
  })
})

describe('keys that are to stay', () => {
  test('are refused unless the identity has them, and while they are too many', async () => {
    const { from, moving, own, theirs, shown } = await waiting()
    const stranger = deviceKey()
    expect((await keep(moving, [stranger.did])).body.error.message).toContain('is not among the rotation keys')
    expect(await keep(moving, Array(65).fill(own.did))).toMatchObject({ status: 422 })
    expect(await answer(pds, moving, { keepKeys: 'all' })).toMatchObject({ status: 422 })
    expect((await moveOf(pds, moving)).agreement).toBe(shown.agreement)

    for (let count = 0; count < 3; count++) await addKey(from, own, deviceKey().did)
    const { rotationKeys } = await operationOf(from)
    const many = await keep(moving, rotationKeys)
    expect(many.body.error.message).toContain('would have 6 rotation keys, and the directory takes 5')
    expect(
      (
        await keep(
          moving,
          rotationKeys.filter((key) => key !== theirs),
        )
      ).status,
    ).toBe(200)
  })

  test('stop the move while they are too many by themselves, until the holder chooses', async () => {
    const { from, name, moving, own } = await waiting()
    host.lie = () => null
    for (let count = 0; count < 3; count++) await addKey(from, own, deviceKey().did)
    const restarted = await begin(pds, from, `${name}-here`, { recoveryKey: deviceKey().did })
    await pds.runSteps()
    const { fault, operation, keys } = await moveOf(pds, restarted)
    expect(operation).toBeNull()
    expect(fault).toContain('choose which stay')
    expect(keys!.stay).toHaveLength(6)
    expect(await giveCode(pds, restarted, 'AAAAA-BBBBB')).toMatchObject({ status: 400 })
    const chosen = await keep(restarted, [own.did])
    expect(chosen.body.move).toMatchObject({ fault: null, agreement: expect.any(String) })
    expect(await keep(moving, [own.did])).toMatchObject({ status: 401 })
  })
})

describe('what is signed is what was shown', () => {
  test('so a code is refused without the agreement', async () => {
    const { from, moving } = await waiting()
    const code = await lastCode(old, from.email)
    expect((await answer(pds, moving, { code })).body.error.message).toContain('agreement')
  })

  test('so an identity that changes before the code is given is shown again', async () => {
    const { from, moving, own, shown } = await waiting()
    const added = deviceKey()
    await addKey(from, own, added.did)
    const code = await lastCode(old, from.email)
    expect(await answer(pds, moving, { code, agreement: shown.agreement })).toMatchObject({ status: 409 })
    const now = await moveOf(pds, moving)
    expect(now.keys!.stay[0]).toEqual({ key: added.did, owner: 'yours', isChoice: true })
    expect((await answer(pds, moving, { code, agreement: now.agreement })).status).toBe(200)
    await pds.runSteps()
    expect((await operationOf(from)).rotationKeys[0]).toBe(added.did)
  })

  test('so an identity that changes while the old server signs is not changed back', async () => {
    const { from, moving, own, shown } = await waiting()
    const added = deviceKey()
    host.lie = async (nsid) => {
      if (nsid === 'com.atproto.identity.signPlcOperation') await addKey(from, own, added.did)
      return null
    }
    const code = await lastCode(old, from.email)
    expect(await answer(pds, moving, { code, agreement: shown.agreement })).toMatchObject({ status: 409 })
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'identity', needs: 'signature' })
    expect((await operationOf(from)).rotationKeys).toContain(added.did)
  })

  test('so other keys that the old server names later change nothing', async () => {
    const { from, moving, own, shown } = await waiting({ recoveryKey: deviceKey().did })
    const kept = (await keep(moving, [own.did])).body.move
    host.lie = (nsid) => (nsid === CREDENTIALS ? Response.json({ rotationKeys: [own.did] }) : null)
    expect(await moveOf(pds, moving)).toMatchObject({ agreement: kept.agreement, keys: kept.keys })
    expect(kept.agreement).not.toBe(shown.agreement)
    await giveMailedCode(pds, moving, old, from.email)
    expect((await operationOf(from)).rotationKeys).toContain(own.did)
  })
})

test('with an archive and a key, the offer shows the keys, and keeps those that the holder names', async () => {
  const { from, name, own, theirs } = await robbed()
  const second = deviceKey()
  await addKey(from, own, second.did)
  const wish = { identifier: from.did, handle: `${name}-here.test`, recoveryKey: own.did }
  const offer = (json: object) => request(`${pds.url}/v1/move-in/offer`, { json })
  const first = (await offer(wish)).body
  expect(first.keys.go.map(({ key }: { key: string }) => key)).toEqual([theirs, second.did])
  expect(await offer({ ...wish, keepKeys: [deviceKey().did] })).toMatchObject({ status: 400 })
  const kept = (await offer({ ...wish, keepKeys: [second.did] })).body
  expect(kept.operation.rotationKeys.slice(0, 2)).toEqual([own.did, second.did])

  const account = { email: `${name}-here@example.com`, password: from.password }
  const begun = (json: object) => request(`${pds.url}/v1/move-in`, { json: { ...wish, ...account, ...json } })
  const signed = signOperation(kept.operation, own.key)
  expect(await begun({ operation: signed })).toMatchObject({ status: 400 })
  expect(await begun({ operation: signed, keepKeys: [second.did] })).toMatchObject({ status: 200 })
})
