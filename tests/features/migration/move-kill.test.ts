/** `kill -9` at every request of a move to the old server, and a full disk: the move continues where it was. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { belongingsOf, settleIn } from '../../support/clients/migration.ts'
import { answer, begin, moveOf } from '../../support/clients/mover.ts'
import { lastOperation } from '../../support/clients/rotating.ts'
import { holdPosts, startFaultyLine } from '../../support/faults/faulty-line.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { freePort } from '../../support/ports.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

/** What the new server asks of the old one, by itself. */
const calls = [
  'com.atproto.sync.getRepo',
  'com.atproto.sync.getBlob',
  'app.bsky.actor.getPreferences',
  'com.atproto.identity.getRecommendedDidCredentials',
  'com.atproto.identity.requestPlcOperationSignature',
]

test('a move goes on after every kill, and nothing is lost or moved twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-move-'))
  await using plc = await startPlcServer()
  await using line = await startFaultyLine(plc.url)
  await using host = startLyingHost()
  await using old = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }, { publicUrl: host.url })
  host.to = old.url
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(folder, 'data'),
    SERVICE_PLC_DIRECTORY_URL: line.url,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  const start = () => startProgram(['dev'], env, folder)
  let server: RunningServer = await start()
  try {
    const from = await createAccount(old, 'anna')
    const there = new AtpAgent({ service: old.url })
    await there.login({ identifier: from.did, password: from.password })
    await settleIn(there)
    const before = await belongingsOf(there, plc.url)

    /** Kills the server once it makes the call. */
    const killedAt = async (method: string, act: () => Promise<unknown>) => {
      const reached = Promise.withResolvers<void>()
      host.lie = async (nsid) => {
        if (nsid !== method) return null
        reached.resolve()
        return new Promise(() => {})
      }
      const acting = act().catch(() => null)
      await reached.promise
      await server[Symbol.asyncDispose]()
      await acting
    }
    const [first, ...others] = calls
    const moving = await (async () => {
      let begun: Awaited<ReturnType<typeof begin>> | null = null
      await killedAt(first!, async () => {
        begun = await begin(server, from, 'anna')
      })
      return begun!
    })()
    for (const method of others) await killedAt(method, async () => void (server = await start()))
    host.lie = () => null
    server = await start()
    await until(async () => (await moveOf(server, moving)).needs === 'signature')

    // What was shown before a kill is what is signed after it.
    const { keys, agreement } = await moveOf(server, moving)
    await server[Symbol.asyncDispose]()
    server = await start()
    expect(await moveOf(server, moving)).toMatchObject({ keys, agreement })

    // The directory gets the operation, and the server is killed before it hears so.
    const { reached, open } = holdPosts(line)
    const code = await lastCode(old, from.email)
    expect((await answer(server, moving, { code, agreement })).status).toBe(200)
    await reached
    await server[Symbol.asyncDispose]()
    open()
    await until(async () => (await lastOperation({ directory: plc, account: from })).prev !== null)
    line.fate = () => 'answered'
    await killedAt('com.atproto.server.deactivateAccount', async () => void (server = await start()))
    host.lie = () => null
    server = await start()
    await until(async () => (await moveOf(server, moving)).stage === 'done')

    const here = new AtpAgent({ service: server.url })
    await here.login({ identifier: from.did, password: moving.password })
    expect(await belongingsOf(here, plc.url)).toEqual(before)
    const log = await request(`${plc.url}/${from.did}/log`)
    expect(log.body).toHaveLength(2)
    expect((await there.com.atproto.sync.getRepoStatus({ did: from.did })).data.active).toBe(false)
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
})

/** More than the database and its log take. */
const MAX_FILE_BYTES = 8 * 1024 * 1024

test('a move waits while there is no room, and continues once there is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-move-'))
  await using plc = await startPlcServer()
  await using old = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } })
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(folder, 'data'),
    SERVICE_PLC_DIRECTORY_URL: plc.url,
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  const server = await startProgram(['dev'], env, folder, { maxFileBytes: MAX_FILE_BYTES })
  try {
    const from = await createAccount(old, 'anna')
    const uploaded = await from.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: new Uint8Array(MAX_FILE_BYTES + 1),
      headers: { 'content-type': 'video/mp4' },
    })
    const record = { $type: 'com.example.film', film: uploaded.body.blob }
    await from.call('com.atproto.repo.createRecord', {
      json: { repo: from.did, collection: 'com.example.film', record },
    })
    const moving = await begin(server, from, 'anna')
    await until(async () => (await moveOf(server, moving)).fault?.includes('no room') === true)
    expect(await moveOf(server, moving)).toMatchObject({ stage: 'blobs', needs: null, blobs: { stored: 0, lost: 0 } })
    server.liftFileLimit()
    await until(async () => (await moveOf(server, moving)).needs === 'signature')
    expect(await moveOf(server, moving)).toMatchObject({ blobs: { expected: 1, stored: 1, lost: 0 } })
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
})
