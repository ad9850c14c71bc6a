/**
 * The disk reports an error when the log of the database is flushed: the change may be on it or not, so the answer says
 * so, nobody sees the change, and no other change is made.
 */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { testConfig } from '../../support/servers/config.ts'
import { runProgram, SOURCE, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-failed-flush-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => {
  const path = join(scratch, String(++folders))
  mkdirSync(path)
  return path
}
const [runtime, ...source] = SOURCE as [string, string]
const program = [runtime, '--preload', join(import.meta.dir, '../../support/faults/failing-flushes.ts'), ...source]

const write = ({ did, call }: TestAccount, rkey: string) =>
  call('com.atproto.repo.createRecord', {
    json: { repo: did, collection: 'org.example.note', rkey, record: { $type: 'org.example.note', text: rkey } },
  })
async function notesOf({ url }: { url: string }, { did }: TestAccount): Promise<string[]> {
  const query = new URLSearchParams({ repo: did, collection: 'org.example.note' })
  const { status, body } = await request(`${url}/xrpc/com.atproto.repo.listRecords?${query}`)
  expect(status).toBe(200)
  return body.records.map(({ uri }: { uri: string }) => uri.split('/').at(-1)!).toSorted()
}
const backupOf = async ({ url }: { url: string }) => (await request(`${url}/readyz`)).body.continuousBackup

/** What a restore from the destination has. */
async function restored(place: string, account: TestAccount): Promise<string[]> {
  const dataDir = join(newFolder(), 'data')
  const port = await freePort()
  const { code, err } = await runProgram(['restore', place, '--at', '2100-01-01T00:00:00Z', '--dev'], {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_LOG_LEVEL: 'error',
  })
  expect(code, err).toBe(0)
  const url = `http://localhost:${port}`
  const app = await startApp(testConfig({ dataDir, port, publicUrl: 'http://localhost:1' }, { development: true }))
  try {
    return await notesOf({ url }, account)
  } finally {
    await app.stop()
  }
}

for (const promise of ['no backup', 'async', 'sync'] as const)
  test(`${promise}: a change that cannot be flushed is refused as unknown, and seen by nobody`, async () => {
    const folder = newFolder()
    const place = join(folder, 'place')
    const env = {
      PORT: String(await freePort()),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_SERVER_READERS: '1',
      ...(promise !== 'no backup' && {
        SERVICE_BACKUP_CONTINUOUS: place,
        SERVICE_BACKUP_CONTINUOUS_PROMISE: promise,
        SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      }),
    }
    const isSent = (server: { url: string }) =>
      until(async () => {
        const state = await backupOf(server)
        return promise === 'no backup' || (state.promise === promise && state.lagMillis === 0)
      })
    let alice: TestAccount
    {
      await using server = await startProgram(['dev'], env, folder, { program })
      alice = await createAccount(server, 'alice')
      expect((await write(alice, 'kept')).status).toBe(200)
      await isSent(server)
      server.signal('SIGUSR2')
      await until(() => server.output().includes('flushes fail'))
      const failed = await write(alice, 'unknown')
      expect(failed).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
      expect(failed.body.message).toContain('the disk reports errors; the change may still take effect')
      // With `sync`, the server ends.
      if (promise === 'sync') expect(await server.exited).toBe(1)
      else {
        const refused = await write(alice, 'refused')
        expect(refused.status).toBe(503)
        expect(refused.body.message).toBe('Try again later: the disk reports errors: the server needs a restart')
        expect(await notesOf(server, alice)).toEqual(['kept'])
        expect((await request(`${server.url}/readyz`)).status).toBe(503)
        await isSent(server)
        if (promise === 'async') expect(await restored(place, alice)).toEqual(['kept'])
        server.signal('SIGTERM')
        expect(await server.exited, server.output()).toBe(0)
      }
    }
    if (promise === 'async') expect(await restored(place, alice)).toEqual(['kept'])
    // What the next start finds on the disk counts, there and at the destination.
    await using server = await startProgram(['dev'], env, folder)
    const found = await notesOf(server, alice)
    expect([['kept'], ['kept', 'unknown']]).toContainEqual(found)
    await until(async () => (await write(alice, 'later')).status === 200)
    await isSent(server)
    if (promise !== 'no backup') expect(await restored(place, alice)).toEqual([...found, 'later'].toSorted())
  })
