/** Moves that somebody else has begun, that two requests decide about at once, or that take too long. */
import { afterEach, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { answer, begin, giveCode, giveMailedCode, moveOf, plan } from '../../support/clients/mover.ts'
import { lastOperation, publish } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { startLyingHost, type LyingHost } from '../../support/faults/lying-host.ts'
import { TestClock } from '../../support/clock.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { nextOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { thrownBy } from '../../support/thrown.ts'

const clock = new TestClock()
const { pds, plc, line } = useWorld({
  plc: true,
  line: true,
  options: { clock },
  config: { rateLimit: { enabled: false } },
})
const host: LyingHost = setUp(startLyingHost)
/** Another address of the old server. */
const otherHost: LyingHost = setUp(startLyingHost)
const old: TestPds = setUp(async () => {
  const behind = await startPds(
    { plcDirectoryUrl: plc.url, rateLimit: { enabled: false } },
    { publicUrl: host.url, clock },
  )
  host.to = behind.url
  otherHost.to = behind.url
  return behind
})
afterEach(() => {
  host.lie = otherHost.lie = () => null
  line.fate = () => 'answered'
})

let names = 0
async function someone(input: Record<string, unknown> = {}): Promise<{ name: string; from: TestAccount }> {
  const name = `contested${names++}`
  return { name, from: await createAccount(old, name, input) }
}

const operationOf = async (account: TestAccount) => (await lastOperation({ directory: plc, account })) as Operation

test('a move that begins again keeps neither the recovery key nor the session of who began it before', async () => {
  const { from, name } = await someone()
  const [thief, owner] = [deviceKey(), deviceKey()]
  const stolen = await begin(pds, from, `${name}-here`, { recoveryKey: thief.did })
  await pds.runSteps()
  expect((await moveOf(pds, stolen)).needs).toBe('signature')

  const moving = await begin(pds, from, `${name}-here`, { recoveryKey: owner.did, password: 'another-password-1' })
  expect(await request(`${pds.url}/v1/move-in`, { headers: bearer(stolen.accessJwt) })).toMatchObject({ status: 401 })
  await pds.runSteps()
  await giveMailedCode(pds, moving, old, from.email)
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
  const { rotationKeys } = await operationOf(from)
  expect(rotationKeys[0]).toBe(owner.did)
  expect(rotationKeys).not.toContain(thief.did)
})

test('a move that begins again asks for no second factor of who began it before', async () => {
  const { from, name } = await someone()
  const stolen = await begin(pds, from, `${name}-here`)
  const thief = new FactorHolder(pds, { ...stolen, password: PASSWORD })
  await thief.signIn()
  await thief.addApp()

  const password = 'another-password-1'
  await begin(pds, from, `${name}-here`, { password })
  const json = { identifier: from.did, password }
  expect(await xrpc(pds, 'com.atproto.server.createSession', { json })).toMatchObject({ status: 200 })
  expect(await pds.count('factor_recovery_code', { did: from.did })).toBe(0)
})

/** Have the identity name the other address of the old server. */
async function nameOther(from: TestAccount, device: ReturnType<typeof deviceKey>): Promise<void> {
  const last = await operationOf(from)
  const services = { atproto_pds: { ...last.services['atproto_pds']!, endpoint: otherHost.url } }
  const operation = signOperation(nextOperation(last, { services })!, device.key)
  await publish({ directory: plc, account: from }, operation)
}

test('a server that the identity names no longer gets nothing of a move from the one that it names now', async () => {
  const device = deviceKey()
  const { from, name } = await someone({ recoveryKey: device.did })
  host.lie = (nsid) => (nsid === 'com.atproto.sync.getRepo' ? new Response('out of order', { status: 502 }) : null)
  const earlier = await plan(pds, from)
  await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  const unused = await plan(pds, from)
  expect([earlier.status, unused.status]).toEqual([200, 200])

  await nameOther(from, device)
  const wanted = { handle: `${name}-here.test`, email: `${name}-here@example.com`, password: from.password }
  const late = await request(`${pds.url}/v1/move-in`, { json: { plan: unused.body.plan, ...wanted } })
  expect(late).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })

  const calledBefore = host.called.length
  const moving = await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  expect((await moveOf(pds, moving)).needs).toBe('signature')
  expect(host.called.slice(calledBefore)).toEqual([])
})

test('an account whose identity may have changed is kept, however long the directory is out of order', async () => {
  const device = deviceKey()
  const { from, name } = await someone({ recoveryKey: device.did })
  const archive = await (await fetch(`${old.url}/xrpc/com.atproto.sync.getRepo?did=${from.did}`)).arrayBuffer()
  const wish = { identifier: from.did, handle: `${name}-here.test`, recoveryKey: device.did }
  const offer = await request(`${pds.url}/v1/move-in/offer`, { json: wish })
  const operation = signOperation(offer.body.operation, device.key)
  const account = { email: `${name}-here@example.com`, password: from.password }
  const { body } = await request(`${pds.url}/v1/move-in`, { json: { ...wish, ...account, operation } })
  const headers = { ...bearer(body.accessJwt), 'content-type': 'application/vnd.ipld.car' }
  let isSent = false
  line.fate = ({ method }) => {
    if (method !== 'POST') return isSent ? 503 : 'answered'
    isSent = true
    return 'answer lost'
  }
  const given = await request(`${pds.url}/v1/move-in/archive`, { method: 'POST', headers, body: archive })
  expect(given.status).toBe(200)
  await pds.runSteps()
  expect(isSent).toBe(true)
  clock.advance({ days: 4 })
  await pds.runSteps()
  await pds.runSweep('account-reaper')
  expect(await pds.count('account', { did: from.did })).toBe(1)
  line.fate = () => 'answered'
  clock.advance({ secs: 3600 })
  await pds.runSteps()
  const here = await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
  expect(here.body).toMatchObject({ active: true })
})

async function waiting(input: Record<string, unknown> = {}): Promise<{ from: TestAccount; moving: TestAccount }> {
  const { from, name } = await someone(input)
  const moving = await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  expect((await moveOf(pds, moving)).needs).toBe('signature')
  return { from, moving }
}

const cancel = ({ accessJwt }: TestAccount) =>
  request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers: bearer(accessJwt) })

test('the identity of an account that is taken down stays where it is, and moves once that is lifted', async () => {
  const { from, moving } = await waiting()
  const takedown = (applied: boolean) =>
    xrpc(pds, 'com.atproto.admin.updateSubjectStatus', {
      headers: basic('admin', ADMIN_TOKEN),
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: from.did }, takedown: { applied } },
    })
  const untilDone = async () => {
    line.fate = () => 'answered'
    clock.advance({ secs: 3600 })
    await pds.runSteps()
  }
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  await giveMailedCode(pds, moving, old, from.email)
  const hosting = async () => (await operationOf(from)).services['atproto_pds']!.endpoint
  expect((await takedown(true)).status).toBe(200)
  await untilDone()
  expect(await hosting()).toBe(host.url)
  expect((await takedown(false)).status).toBe(200)
  await untilDone()
  expect(await hosting()).toBe(pds.url)
  const here = await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
  expect(here.body).toMatchObject({ active: true })
})

test('of a code and a cancellation at the same time, one counts', async () => {
  const { from, moving } = await waiting()
  const [reading, given] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  // The cancellation has seen that the identity is not being changed.
  line.fate = async ({ method }): Promise<Fate> => {
    if (method === 'GET') {
      reading.resolve()
      await given.promise
    }
    return 'answered'
  }
  const cancelled = cancel(moving)
  await reading.promise
  line.fate = () => 'answered'
  await giveMailedCode(pds, moving, old, from.email)
  given.resolve()
  expect(await cancelled).toMatchObject({ status: 409 })
  expect(await pds.count('account', { did: from.did })).toBe(1)
})

test('a move that comes a stage further while it is being cancelled is cancelled', async () => {
  const { from, name } = await someone()
  const preferences = Promise.withResolvers<void>()
  const [reading, moved] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  host.lie = async (nsid) => {
    if (nsid === 'app.bsky.actor.getPreferences') await preferences.promise
    return null
  }
  const moving = await begin(pds, from, `${name}-here`)
  await until(() => host.called.at(-1) === 'app.bsky.actor.getPreferences')
  line.fate = async (): Promise<Fate> => {
    // What the move itself asks is answered.
    line.fate = () => 'answered'
    reading.resolve()
    await moved.promise
    return 'answered'
  }
  const cancelled = cancel(moving)
  await reading.promise
  preferences.resolve()
  await until(async () => (await pds.rows('move_in', { did: from.did }))[0]?.['stage'] === 'identity')
  moved.resolve()
  expect(await cancelled).toMatchObject({ status: 200 })
  expect(await pds.count('account', { did: from.did })).toBe(0)
})

test('a move is not cancelled if its holder has changed the identity without this server', async () => {
  const device = deviceKey()
  const { from, moving } = await waiting({ recoveryKey: device.did })
  const operation = signOperation((await moveOf(pds, moving)).operation, device.key)
  await publish({ directory: plc, account: from }, operation)
  expect(await cancel(moving)).toMatchObject({ status: 409 })
  expect(await pds.count('account', { did: from.did })).toBe(1)
})

test('a decision to continue without the old server that comes too late leaves the session there', async () => {
  const { from, moving } = await waiting()
  {
    using _ = beforeTransaction(pds, () => pds.damage('move_in', { did: from.did }, { stage: 'preferences' }))
    expect(await answer(pds, moving, { withoutOldServer: true })).toMatchObject({ status: 409 })
  }
  await pds.damage('move_in', { did: from.did }, { stage: 'identity' })
  await giveMailedCode(pds, moving, old, from.email)
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
})

test('an identity that its holder changes back before the account is active ends the move, which can be cancelled', async () => {
  const device = deviceKey()
  const { from, moving } = await waiting({ recoveryKey: device.did })
  let isSent = false
  line.fate = ({ method }) => {
    if (method !== 'POST') return isSent ? 503 : 'answered'
    isSent = true
    return 'answered'
  }
  await giveCode(pds, moving, await lastCode(old, from.email))
  await pds.runSteps()
  expect(await pds.rows('move_in', { did: from.did }, ['stage'])).toEqual([{ stage: 'activation' }])
  const last = await operationOf(from)
  const services = { atproto_pds: { ...last.services['atproto_pds']!, endpoint: host.url } }
  await publish({ directory: plc, account: from }, signOperation(nextOperation(last, { services })!, device.key))

  line.fate = () => 'answered'
  clock.advance({ secs: 3600 })
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({
    stage: 'identity',
    needs: 'signature',
    fault: expect.stringContaining('Your identity has changed again'),
  })
  expect(await cancel(moving)).toMatchObject({ status: 200 })
  const there = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
  expect(there.body).toMatchObject({ active: true })
})

test('an old server that does not name its key as its own loses it all the same', async () => {
  const { from, name } = await someone()
  const { rotationKeys: theirs } = await operationOf(from)
  host.lie = (nsid) =>
    nsid === 'com.atproto.identity.getRecommendedDidCredentials' ? Response.json({ rotationKeys: [] }) : null
  const moving = await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  expect(await thrownBy(giveMailedCode(pds, moving, old, from.email))).toThrow('was answered 400')
  expect((await answer(pds, moving, { mail: true })).status).toBe(200)
  const given = await giveCode(pds, moving, await lastCode(old, from.email, 2))
  expect(given.status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
  const { rotationKeys } = await operationOf(from)
  expect(rotationKeys.filter((key) => theirs.includes(key))).toEqual([])
})

test('an account that is on its way here cannot be left, and is deleted when the move is cancelled', async () => {
  const { from, moving } = await waiting()
  const headers = bearer(moving.accessJwt)
  const left = await request(`${pds.url}/v1/move-out/leave`, { json: { deleteAfterDays: 1 }, headers })
  expect(left).toMatchObject({ status: 409 })
  expect(await cancel(moving)).toMatchObject({ status: 200 })
  expect(await pds.count('account', { did: from.did })).toBe(0)
})
