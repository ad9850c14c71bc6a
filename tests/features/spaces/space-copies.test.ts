/** What is in spaces after a backup, a continuous backup, and a copy to PostgreSQL and back: the same, to the byte. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { freePort } from '../../support/servers/pds.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

// Whole servers are copied and verified.
setDefaultTimeout(60_000)

const NOTE = 'test.forum.note'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-spaces-'))
afterAll(() => rmSync(scratch, { recursive: true }))
const PASSPHRASE = 'a passphrase for backups'
const { pds } = useWorld({
  options: { onFile: true },
  config: {
    spaces: { enabled: true },
    rateLimit: { enabled: false },
    blobs: { store: 'folder' },
    backup: {
      continuous: join(scratch, 'continuous'),
      continuousLagMs: 100,
      passphrase: new Secret(PASSPHRASE),
      workFactor: 10,
    },
  },
})
const alice = setUp(() => createAccount(pds, 'alice'))

const placeOf = ({ did }: TestAccount, key = 'a') => ({ space: `at://${did}/space/test.forum.space/${key}`, repo: did })
const get = async (account: TestAccount, method: string, params: Record<string, string>) => {
  const { status, body } = await account.call(`com.atproto.space.${method}?${new URLSearchParams(params)}`)
  expect([method, status]).toEqual([method, 200])
  return body
}
const write = (account: TestAccount, method: string, json: object) =>
  account.call(`com.atproto.space.${method}`, { json })

/** All that the account can read of a space. In development, a session may. */
async function contentOf(account: TestAccount, key = 'a', hasFiles = true) {
  const place = placeOf(account, key)
  const { ops, commit } = await get(account, 'listRepoOps', place)
  const { cids } = await get(account, 'listBlobs', place)
  const { hash, rev } = parseSpaceCommit(jsonToData(commit))
  const blobs: string[] = []
  for (const cid of hasFiles ? cids : []) blobs.push(String(await get(account, 'getBlob', { ...place, cid })))
  const { records } = await get(account, 'listRecords', place)
  return { ops, hash: Buffer.from(hash).toString('hex'), rev, records, blobs }
}

async function fill(): Promise<void> {
  const { body } = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from('a file'),
  })
  for (const key of ['a', 'b'])
    for (const n of [1, 2, 3])
      expect(
        (
          await write(alice, 'putRecord', {
            ...placeOf(alice, key),
            collection: NOTE,
            rkey: `n${n}`,
            record: { n, ...(n === 1 && { file: body.blob }) },
          })
        ).status,
      ).toBe(200)
  await write(alice, 'deleteRecord', { ...placeOf(alice), collection: NOTE, rkey: 'n3' })
}
const filled = setUp(async () => {
  await fill()
  return { a: await contentOf(alice, 'a'), b: await contentOf(alice, 'b') }
})

const env = (dataDir: string, more: Record<string, string> = {}) => ({
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: pds.url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  SERVICE_BACKUP_PASSPHRASE: PASSPHRASE,
  SERVICE_BACKUP_WORK_FACTOR: '10',
  ...more,
})
async function holdfast(dataDir: string, words: string[], more: Record<string, string> = {}): Promise<string> {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(env(dataDir, more), lines), [...words, '--dev'])
  expect([words, lines.join('\n'), code]).toEqual([words, expect.any(String), 0])
  return lines.join('\n')
}

/** What the account reads on a server, where it then writes in an old space and a new one. */
async function lifeOn(dataDir: string, overrides: ConfigOverrides = {}, hasFiles = true) {
  const port = await freePort()
  const config = testConfig(
    { dataDir, port, publicUrl: pds.url },
    { development: true, spaces: { enabled: true }, ...overrides },
  )
  const app = await startApp(config)
  try {
    const account = await logIn({ url: `http://localhost:${port}` }, alice, alice.password)
    const found = { a: await contentOf(account, 'a', hasFiles), b: await contentOf(account, 'b', hasFiles) }
    for (const key of ['b', 'new'])
      expect(
        (await write(account, 'createRecord', { ...placeOf(account, key), collection: NOTE, record: { late: key } }))
          .status,
      ).toBe(200)
    const { rev, records } = await contentOf(account, 'b', hasFiles)
    expect([rev > found.b.rev, records.length]).toEqual([true, 4])
    return found
  } finally {
    await app.stop()
  }
}

test('a backup brings back what was there, and so does a continuous one', async () => {
  const before = { a: filled.a, b: filled.b }
  await until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup.lagMillis === 0)
  const archive = join(scratch, 'archive')
  await holdfast(pds.dataDir, ['backup', archive])
  const [restored, rewound] = [join(scratch, 'restored'), join(scratch, 'rewound')]
  await holdfast(restored, ['restore', archive])
  const at = new Date(pds.clock.now()).toISOString()
  await holdfast(rewound, ['restore', join(scratch, 'continuous'), '--at', at])
  expect(await lifeOn(restored)).toEqual(before)
  // Blobs are no part of a continuous backup.
  const { a, b } = before
  expect(await lifeOn(rewound, {}, false)).toEqual({ a: { ...a, blobs: [] }, b: { ...b, blobs: [] } })
  await holdfast(restored, ['verify'])
})

test('a copy to PostgreSQL has the same, and a copy back to a folder too', async () => {
  const before = { a: filled.a, b: filled.b }
  await pds.stop()
  const database = await emptyDatabase()
  try {
    await holdfast(pds.dataDir, ['copy', '--to', database.databaseUrl])
    const folder = join(scratch, 'back')
    await holdfast(pds.dataDir, ['copy', '--to', folder], { SERVICE_DATABASE_URL: database.databaseUrl })
    expect(await lifeOn(folder)).toEqual(before)
    expect(await lifeOn(pds.dataDir, { databaseUrl: database.databaseUrl })).toEqual(before)
  } finally {
    await database.drop()
  }
})
