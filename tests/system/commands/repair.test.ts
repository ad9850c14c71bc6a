/** `holdfast repair` on the folder of a stopped server: what it shows, what it does, and what a kill leaves. */
import { Database } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { beforeLargeRecords } from '../../support/earlier-tables.ts'
import { testConfig } from '../../support/servers/config.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-repair-'))
const COLLECTION = 'org.example.note'
const RECORDS = 400
const KILLS = 12

const backups = join(scratch, 'backups')
/** A folder of a server that was stopped, without damage. */
const sound = join(scratch, 'sound')
let alice: TestAccount
let blob: string
let car: Uint8Array
let url: string

beforeAll(async () => {
  await using pds = await startPdsOnFile({ spaces: { enabled: true } })
  url = pds.url
  alice = await createAccount(pds, 'alice')
  const { did, call } = alice
  for (let start = 0; start < RECORDS; start += 200) {
    const writes = Array.from({ length: 200 }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: COLLECTION,
      rkey: `note${start + i}`,
      value: { text: `note ${start + i}` },
    }))
    expect((await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })).status).toBe(200)
  }
  const headers = { 'content-type': 'text/plain' }
  const uploaded = await call('com.atproto.repo.uploadBlob', { method: 'POST', body: 'the bytes of a blob', headers })
  blob = uploaded.body.blob.ref.$link
  const json = { repo: did, collection: COLLECTION, rkey: 'image', record: { image: uploaded.body.blob } }
  expect((await call('com.atproto.repo.createRecord', { json })).status).toBe(200)
  const novel = { repo: did, collection: COLLECTION, rkey: 'novel', record: { text: 'x'.repeat(100_000) } }
  expect((await call('com.atproto.repo.createRecord', { json: novel })).status).toBe(200)
  // In development, a session may write in spaces.
  const place = { space: `at://${did}/space/test.forum.space/hidden`, repo: did, collection: COLLECTION }
  for (const rkey of ['one', 'two']) {
    const written = await call('com.atproto.space.createRecord', { json: { ...place, rkey, record: { rkey } } })
    expect(written.status).toBe(200)
  }
  car = await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)).bytes()
  expect(run(pds.dataDir, ['backup', backups]).code).toBe(0)
  await pds.stop()
  cpSync(pds.dataDir, sound, { recursive: true })
})

const environment = (dataDir: string, backupsAt = backups) => ({
  ...process.env,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  SERVICE_BACKUP_DESTINATION: backupsAt,
})

function run(dataDir: string, words: string[], backupsAt = backups): { code: number; text: string } {
  const env = environment(dataDir, backupsAt)
  const { exitCode, stdout, stderr } = Bun.spawnSync([...PROGRAM, ...words, '--dev'], { env })
  return { code: exitCode, text: `${stdout}${stderr}` }
}

let copies = 0
/** Another copy of the folder, damaged by SQL. */
function damaged(...statements: string[]): string {
  const folder = join(scratch, `damaged${copies++}`)
  cpSync(sound, folder, { recursive: true })
  const database = new Database(join(folder, 'holdfast.db'))
  for (const statement of statements) database.run(statement)
  database.close()
  return folder
}

const LOST_RECORD = `DELETE FROM record WHERE path = '${COLLECTION}/note7'`
const LOST_NODES = 'DELETE FROM repo_node'
const LOST_LOG = 'DELETE FROM repo_seq'

const repairsIn = (folder: string) => readdirSync(join(folder, 'repairs')).map((name) => join(folder, 'repairs', name))

test('without --apply nothing changes, and with it the repository is whole; --undo brings the damage back', () => {
  const folder = damaged(LOST_RECORD, LOST_NODES)
  const shown = run(folder, ['repair', alice.did])
  expect(shown.code).toBe(1)
  expect(shown.text).toContain('cannot be read')
  expect(shown.text).toContain('nodes of the tree come from the event log')
  expect(shown.text).toContain('nothing was changed')
  expect(run(folder, ['verify', '--quick']).code).toBe(1)
  expect(run(folder, ['repair', alice.did, '--apply']).code).toBe(0)
  expect(run(folder, ['verify'])).toMatchObject({ code: 0, text: expect.stringContaining('0 faults') })
  expect(run(folder, ['repair', alice.did])).toMatchObject({
    code: 0,
    text: expect.stringContaining('Nothing is wrong'),
  })
  const [evidence] = repairsIn(folder)
  expect(run(folder, ['repair', '--undo', evidence!])).toMatchObject({
    code: 0,
    text: expect.stringContaining('Wrong:'),
  })
  expect(run(folder, ['verify', '--quick']).code).toBe(1)
})

test.each([
  ['what is nowhere', LOST_RECORD],
  ['a large value that is nowhere', 'DELETE FROM large_record'],
])('%s is refused, and comes from a backup or an archive', (_, lost) => {
  const statements = [lost, LOST_LOG]
  const refused = run(damaged(...statements), ['repair', alice.did, '--apply'])
  expect(refused.code).toBe(1)
  expect(refused.text).toContain('--accept-loss')
  const path = join(scratch, 'alice.car')
  writeFileSync(path, car)
  for (const source of [
    ['--backup', 'newest'],
    ['--car', path],
  ]) {
    const folder = damaged(...statements)
    expect(run(folder, ['repair', alice.did, '--apply', ...source])).toMatchObject({ code: 0 })
    expect(run(folder, ['verify']).text).toContain('0 faults')
    expect(readdirSync(folder).filter((name) => name.startsWith('.repair-'))).toEqual([])
  }
})

test('the database of a backup, which a killed repair has fetched, is deleted by the next one', async () => {
  const folder = damaged(LOST_RECORD, LOST_LOG)
  const fetched = () => readdirSync(folder).filter((name) => name.startsWith('.repair-'))
  const child = Bun.spawn([...PROGRAM, 'repair', alice.did, '--apply', '--backup', 'newest', '--dev'], {
    env: environment(folder),
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await until(() => fetched().length > 0)
  child.kill('SIGKILL')
  await child.exited
  expect(fetched()).toHaveLength(1)
  mkdirSync(join(folder, 'repairs'), { recursive: true })
  writeFileSync(join(folder, 'repairs', 'incomplete.db.part'), 'rows of an account')
  expect(run(folder, ['repair', alice.did])).toMatchObject({ code: 1 })
  expect({ fetched: fetched(), repairs: repairsIn(folder) }).toEqual({ fetched: [], repairs: [] })
})

test('if one part has lost what is nowhere, the other is not repaired without a word about it either', () => {
  const folder = damaged(LOST_NODES, `DELETE FROM space_record WHERE path = '${COLLECTION}/one'`)
  expect(run(folder, ['repair', alice.did, '--apply'])).toMatchObject({
    code: 1,
    text: expect.stringContaining('--accept-loss'),
  })
  expect(existsSync(join(folder, 'repairs'))).toBe(false)
  expect(run(folder, ['repair', alice.did, '--apply', '--accept-loss'])).toMatchObject({ code: 0 })
  expect(run(folder, ['verify', '--quick']).code).toBe(0)
})

test('a backup of an earlier version serves too', () => {
  const earlier = join(scratch, 'earlier')
  expect(run(damaged(...beforeLargeRecords), ['backup', earlier]).code).toBe(0)
  const folder = damaged(LOST_RECORD, 'DELETE FROM large_record', LOST_LOG)
  expect(run(folder, ['repair', alice.did, '--apply', '--backup', 'newest'], earlier)).toMatchObject({ code: 0 })
  expect(run(folder, ['verify']).text).toContain('0 faults')
})

test('what is lost in a space comes from the backup, in a file of its own, and the public repository stays as it is', () => {
  const folder = damaged(`DELETE FROM space_record WHERE path = '${COLLECTION}/one'`)
  const head = () => {
    using database = new Database(join(folder, 'holdfast.db'), { readonly: true })
    return database.query('SELECT hex(head) AS head FROM repo').all()
  }
  const before = head()
  expect(run(folder, ['verify', '--quick'])).toMatchObject({
    code: 1,
    text: expect.stringContaining('1 records, and its row says 2'),
  })
  const { code, text } = run(folder, ['repair', alice.did])
  expect(code).toBe(1)
  for (const words of ['The public repository is whole.', `record ${COLLECTION}/one`]) expect(text).toContain(words)
  expect(text).not.toContain('hidden')
  expect(run(folder, ['repair', alice.did, '--apply'])).toMatchObject({
    code: 1,
    text: expect.stringContaining('--accept-loss'),
  })
  expect(run(folder, ['repair', alice.did, '--apply', '--backup', 'newest'])).toMatchObject({ code: 0 })
  expect(head()).toEqual(before)
  expect(run(folder, ['repair', alice.did])).toMatchObject({ code: 0 })
  expect(run(folder, ['verify', '--quick']).code).toBe(0)
  const [evidence, ...others] = repairsIn(folder)
  expect([evidence!.endsWith('-spaces.db'), others]).toEqual([true, []])
  expect(run(folder, ['repair', '--undo', evidence!])).toMatchObject({
    code: 0,
    text: expect.stringContaining('1 records, and its row says 2'),
  })
})

test('the bytes of a blob come from the backup', () => {
  const folder = damaged(LOST_RECORD)
  const path = join(folder, 'blobs', blob.slice(-2), blob)
  rmSync(path)
  expect(run(folder, ['repair', alice.did, '--apply', '--backup', 'newest']).code).toBe(0)
  expect(run(folder, ['verify']).text).toContain('0 faults')
})

test('misuse is told, and an account that is not here', () => {
  const folder = damaged()
  expect(run(folder, ['repair', 'alice.test']).code).toBe(2)
  expect(run(folder, ['repair', alice.did, '--keep-uncertain', '--drop-uncertain']).code).toBe(2)
  expect(run(folder, ['repair', 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'])).toMatchObject({
    code: 1,
    text: expect.stringContaining('has no account here'),
  })
  expect(run(folder, ['repair', alice.did, '--car', '/nowhere'])).toMatchObject({ code: 1 })
})

test('a repair beside a running server is refused, and changes nothing', async () => {
  const folder = damaged(LOST_RECORD)
  const app = await startApp(
    testConfig({ dataDir: folder, port: await freePort(), publicUrl: url }, { development: true }),
  )
  try {
    expect(run(folder, ['repair', alice.did, '--apply'])).toMatchObject({ code: 1 })
    expect(
      (await request(`${app.url}/xrpc/com.atproto.repo.listRecords?repo=${alice.did}&collection=${COLLECTION}`)).status,
    ).toBe(200)
  } finally {
    await app.stop()
  }
  expect(run(folder, ['repair', alice.did]).text).toContain('note7 is missing')
})

test('a repair that is killed at any point leaves either repository whole, and the same command ends it', async () => {
  const begun = performance.now()
  expect(run(damaged(LOST_RECORD, LOST_NODES), ['repair', alice.did, '--apply']).code).toBe(0)
  const whole = performance.now() - begun
  const folder = damaged(LOST_RECORD, LOST_NODES)
  let ended = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    const child = Bun.spawn([...PROGRAM, 'repair', alice.did, '--apply', '--dev'], {
      env: environment(folder),
      stdout: 'ignore',
      stderr: 'ignore',
    })
    await Promise.race([child.exited, Bun.sleep((whole * kill) / KILLS)])
    child.kill('SIGKILL')
    await child.exited
    const { code, text } = run(folder, ['verify', '--quick'])
    if (code === 0) ended++
    // What was there before is still to be rebuilt, from the same.
    else expect(run(folder, ['repair', alice.did]).text).toContain('nodes of the tree come from the event log')
    expect(text).toMatch(/1 repositories|cannot be read/)
  }
  expect(run(folder, ['repair', alice.did, '--apply']).code).toBe(0)
  expect(run(folder, ['verify'])).toMatchObject({ code: 0, text: expect.stringContaining('0 faults') })
  expect(ended).toBeLessThanOrEqual(KILLS)
})
