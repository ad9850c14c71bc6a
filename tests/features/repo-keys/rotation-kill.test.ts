/**
 * `kill -9` between any two steps of a rotation: it is finished or undone at the next start, and before the next write.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Operation } from '../../../src/protocol/plc.ts'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { startFaultyLine, type Fate, type FaultyLine } from '../../support/faults/faulty-line.ts'
import { freePort } from '../../support/ports.ts'
import { startPlcServer, type PlcHost } from '../../support/servers/plc-server.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import {
  complete,
  namedKey,
  publish,
  publishing,
  stagedKey,
  verifiedRecords,
  write,
  type Wallet,
} from '../../support/clients/rotating.ts'

let folder: string
let directory: PlcHost
let line: FaultyLine
let server: RunningServer
let start: () => Promise<void>
let alice: Wallet
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-rotation-'))
  directory = await startPlcServer()
  line = await startFaultyLine(directory.url)
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(folder, 'data'),
    SERVICE_PLC_DIRECTORY_URL: line.url,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  start = async () => void (server = await startProgram(['dev'], env, folder))
  await start()
  const device = deviceKey()
  alice = { pds: server, directory, account: await createAccount(server, 'alice', { recoveryKey: device.did }), device }
  await write(alice, 'before')
})
afterEach(async () => {
  await server[Symbol.asyncDispose]()
  await line[Symbol.asyncDispose]()
  await directory[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const kill = async () => server[Symbol.asyncDispose]()
async function startAgain(): Promise<void> {
  line.fate = () => 'answered'
  await start()
  alice = { ...alice, pds: server, account: await logIn(server, alice.account, alice.account.password) }
}

/**
 * Complete the rotation, and kill the server while the directory is being told. `reaches`: whether the directory hears
 * it.
 */
async function killedWhileSubmitting(operation: Operation, { reaches }: { reaches: boolean }): Promise<void> {
  const submitted = Promise.withResolvers<void>()
  const lost = Promise.withResolvers<Fate>()
  line.fate = async ({ method }) => {
    if (method !== 'POST') return 'answered'
    if (reaches) await publish(alice, operation)
    submitted.resolve()
    return lost.promise
  }
  const completing = complete(alice, operation).catch(() => null)
  await submitted.promise
  await kill()
  lost.resolve('question lost')
  await completing
}

test('killed when a key is staged: the key is there', async () => {
  const staged = await stagedKey(alice)
  await kill()
  await startAgain()
  expect(await complete(alice, await publishing(alice, staged))).toMatchObject({
    status: 200,
    body: { signingKey: staged },
  })
  expect(await verifiedRecords(alice)).toBe(1)
})

test.each([
  ['the operation is on its way', false],
  ['the directory has it', true],
])('killed when %s: finished at the next start', async (_, reaches) => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  await killedWhileSubmitting(operation, { reaches })
  await startAgain()
  const events = new Subscriber(server.url, '?cursor=0')
  const told = await events.untilSeen((messages) => messages.filter(({ type }) => type === '#sync').length === 2)
  events.close()
  expect(told.slice(-2).map(({ type }) => type)).toEqual(['#identity', '#sync'])
  expect(await namedKey(alice)).toBe(staged)
  expect(await verifiedRecords(alice)).toBe(1)
  expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
})

test.each([
  ['the operation is on its way', false],
  ['the directory has it', true],
])('killed when %s: the next write is signed by the key that the identity names', async (_, reaches) => {
  const staged = await stagedKey(alice)
  await killedWhileSubmitting(await publishing(alice, staged), { reaches })
  await startAgain()
  expect((await write(alice, 'after')).status).toBe(200)
  expect(await namedKey(alice)).toBe(staged)
  expect(await verifiedRecords(alice)).toBe(2)
})

test('killed when the operation was on its way, and another one came first: undone', async () => {
  const old = await namedKey(alice)
  const staged = await stagedKey(alice)
  await killedWhileSubmitting(await publishing(alice, staged), { reaches: false })
  await publish(alice, await publishing(alice, old))
  await startAgain()
  expect((await write(alice, 'after')).status).toBe(200)
  expect(await namedKey(alice)).toBe(old)
  expect(await verifiedRecords(alice)).toBe(2)
  expect((await complete(alice, await publishing(alice, staged))).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(2)
})

test('killed when the key was replaced: that stands', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  expect((await complete(alice, operation)).status).toBe(200)
  await kill()
  await startAgain()
  expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
  expect((await write(alice, 'after')).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(2)
})
