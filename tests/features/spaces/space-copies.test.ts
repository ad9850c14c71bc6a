/**
 * What is in spaces after a backup, a continuous backup, a takeover by a second machine, an export, and a copy to
 * PostgreSQL and back: the same, to the byte.
 */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readCar } from '@atproto/repo'
import { startApp, withContext } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { Following } from '../../../src/features/operations/backup/backup.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { decode } from '../../../src/protocol/cbor.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { ADMIN_TOKEN, testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { testLog } from '../../support/log.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/servers/program.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

// Whole servers are copied and verified.
setDefaultTimeout(60_000)

const NOTE = 'test.forum.note'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-spaces-'))
afterAll(() => rmSync(scratch, { recursive: true }))
const PASSPHRASE = 'a passphrase for backups'
const { pds } = useWorldOnFile({
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

async function fill(member: TestAccount): Promise<void> {
  const { body } = await member.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from('a file'),
  })
  for (const key of ['a', 'b'])
    for (const n of [1, 2, 3])
      expect(
        (
          await write(member, 'putRecord', {
            ...placeOf(member, key),
            collection: NOTE,
            rkey: `n${n}`,
            record: { n, ...(n === 1 && { file: body.blob }) },
          })
        ).status,
      ).toBe(200)
  await write(member, 'deleteRecord', { ...placeOf(member), collection: NOTE, rkey: 'n3' })
}
const filled = setUp(async () => {
  await fill(alice)
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
async function lifeOn(dataDir: string, overrides: ConfigOverrides = {}, hasFiles = true, member = alice) {
  const port = await freePort()
  const config = testConfig(
    { dataDir, port, publicUrl: pds.url },
    { development: true, spaces: { enabled: true }, ...overrides },
  )
  const app = await startApp(config)
  try {
    const account = await logIn({ url: `http://localhost:${port}` }, member, member.password)
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

test('a machine that follows has it when it takes over, with all that was acknowledged', async () => {
  const backup = {
    continuous: join(scratch, 'chain'),
    continuousPromise: 'sync',
    continuousLagMs: 100,
  } as const
  await using first = await startPdsOnFile({
    spaces: { enabled: true },
    rateLimit: { enabled: false },
    blobs: { store: 'folder' },
    backup,
  })
  const bob = await createAccount(first, 'bob')
  await until(async () => (await request(`${first.url}/readyz`)).body.continuousBackup?.promise === 'sync')
  await fill(bob)
  const dataDir = join(scratch, 'second')
  const overrides = { backup, spaces: { enabled: true } }
  const config = testConfig(
    { dataDir, port: await freePort(), publicUrl: first.url },
    { development: true, ...overrides },
  )
  const { log } = testLog(() => systemClock.now())
  const following = () => new Following({ config, clock: systemClock, log })
  {
    const copy = following()
    const stopping = new AbortController()
    const done = copy.run(stopping.signal)
    await until(() => copy.state.behindMillis !== null)
    stopping.abort()
    expect(await done).toBeNull()
  }
  const late = { ...placeOf(bob), collection: NOTE, rkey: 'late', record: { text: 'after the copy' } }
  expect((await write(bob, 'createRecord', late)).status).toBe(200)
  const before = { a: await contentOf(bob, 'a', false), b: await contentOf(bob, 'b', false) }
  expect(before.a.records).toHaveLength(3)
  await following().promote()
  expect(await lifeOn(dataDir, overrides, false, bob)).toEqual(before)
  expect(await withContext(config, (ctx) => faultsOfRepo(ctx, bob.did as Did))).toEqual([])
  // The first machine can acknowledge nothing more.
  expect((await write(bob, 'createRecord', { ...late, rkey: 'lost' })).status).toBe(503)
})

test('an operator exports what an account has in spaces with it, by the command', async () => {
  const path = join(scratch, 'alice.zip')
  const { code, err } = await runProgram(['account', 'export', 'alice', path, '--url', pds.url], {
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const files = await archiveIn(readFileSync(path)).contents()
  const { spaces } = JSON.parse(files.get('spaces.json')!.toString())
  expect(spaces.map(({ space, records }: { space: string; records: number }) => [space, records])).toEqual([
    [placeOf(alice, 'a').space, 2],
    [placeOf(alice, 'b').space, 3],
  ])
  for (const [i, key] of (['a', 'b'] as const).entries()) {
    const { roots, blocks } = await readCar(new Uint8Array(files.get(`spaces/${i + 1}.car`)!))
    const [commit, index] = roots.map((root) => decode(blocks.get(root)!) as Record<string, unknown>)
    expect(Buffer.from(commit!['hash'] as Uint8Array).toString('hex')).toBe(filled[key].hash)
    const listed = filled[key].records.map((one: Record<string, string>) => [
      `${one['collection']}/${one['rkey']}`,
      one['cid'],
    ])
    expect(
      Object.entries(index!)
        .map(([name, cid]) => [name, String(cid)])
        .toSorted(),
    ).toEqual(listed.toSorted())
  }
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
