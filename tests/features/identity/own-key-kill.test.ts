/** `kill -9` after an operation was sent to the directory: the holder and the network are told of it all the same. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { startFaultyLine, type Fate, type FaultyLine } from '../../support/faults/faulty-line.ts'
import { freePort } from '../../support/ports.ts'
import { loggedMails } from '../../support/servers/mail.ts'
import { startPlcServer, type PlcHost } from '../../support/servers/plc-server.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

let folder: string
let directory: PlcHost
let line: FaultyLine
let server: RunningServer
let start: () => Promise<void>
let alice: TestAccount
const own = signingKey('p256', crypto.getRandomValues(new Uint8Array(32)))
const added = signingKey('p256', crypto.getRandomValues(new Uint8Array(32)))
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-own-key-'))
  directory = await startPlcServer()
  line = await startFaultyLine(directory.url)
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(folder, 'data'),
    SERVICE_PLC_DIRECTORY_URL: line.url,
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_LOG_FORMAT: 'json',
  }
  start = async () => void (server = await startProgram(['dev'], env, folder))
  await start()
  alice = await createAccount(server, 'alice', { recoveryKey: formatDidKey(own.publicKey) })
})
afterEach(async () => {
  await server[Symbol.asyncDispose]()
  await line[Symbol.asyncDispose]()
  await directory[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Sends a request, kills the server once the directory has what it was sent, and starts it again. */
async function killedDuring(send: () => Promise<unknown>): Promise<void> {
  const submitted = Promise.withResolvers<void>()
  const lost = Promise.withResolvers<Fate>()
  line.fate = async ({ method, path, body }) => {
    if (method !== 'POST') return 'answered'
    const headers = { 'content-type': 'application/json' }
    const { status } = await fetch(directory.url + path, { method, headers, body })
    if (status !== 200) throw new Error(`the directory answered ${status}`)
    submitted.resolve()
    return lost.promise
  }
  const sent = send().catch(() => null)
  await submitted.promise
  await server[Symbol.asyncDispose]()
  lost.resolve('question lost')
  await sent
  line.fate = () => 'answered'
  await start()
  alice = await logIn(server, alice, alice.password)
}

async function toldOf(): Promise<string[]> {
  const { body } = await request(`${server.url}/v1/account/events`, { headers: bearer(alice.accessJwt) })
  return body.events
    .map(({ event }: { event: string }) => event)
    .filter((event: string) => /^(ownKey|identity)/.test(event))
}

async function identityEvents(): Promise<number> {
  const events = new Subscriber(server.url, '?cursor=0')
  const seen = await events.untilSeen((messages) => messages.filter(({ type }) => type === '#identity').length >= 2)
  events.close()
  return seen.filter(({ type }) => type === '#identity').length
}

test('a key that the directory got is told to its holder by mail and in the list, and to the network', async () => {
  await alice.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  const codes = () => loggedMails(server).flatMap(({ text }) => text.match(/^[A-Z2-7]{5}-[A-Z2-7]{5}$/m) ?? [])
  await until(() => codes().length > 0)
  const json = { publicKey: formatDidKey(added.publicKey), code: codes().at(-1) }
  await killedDuring(() => request(`${server.url}/v1/rotation-keys`, { json, headers: bearer(alice.accessJwt) }))
  await until(async () => (await toldOf()).includes('ownKeyAdded'))
  await until(() => loggedMails(server).some(({ subject }) => subject.includes('A key was added to your identity')))
  expect(await toldOf()).toEqual(['ownKeyAdded'])
  expect(await identityEvents()).toBe(2)
})

test('an operation of the holder that the directory got is listed, and told to the network', async () => {
  const entries = await (await fetch(`${directory.url}/${alice.did}/log/last`)).json()
  const operation = signOperation(
    nextOperation(entries as Operation, { alsoKnownAs: ['at://alice.test', 'https://alice.example'] })!,
    own,
  )
  await killedDuring(() =>
    alice.call('com.atproto.identity.submitPlcOperation', { json: { operation: { ...operation } } }),
  )
  await until(async () => (await toldOf()).includes('identityChanged'))
  expect(await toldOf()).toEqual(['identityChanged'])
  expect(await identityEvents()).toBe(2)
})
