/** Rehearsed restores: what they tell, and what they leave alone. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import type { Rehearsal } from '../../../src/features/operations/backup/backup.ts'
import { createAccount } from '../../support/clients/account.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { PROGRAM, runProgram, withoutPrivileges } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const { pds } = useWorldOnFile()
const home = mkdtempSync(join(tmpdir(), 'holdfast-rehearsals-'))
const archive = join(home, 'archive')
const scratch = join(home, 'scratch')
let lost: string

beforeAll(async () => {
  mkdirSync(scratch)
  const alice = await Uploader.join(pds, 'alice')
  const blobs = [await alice.upload(randomBytes(1000)), await alice.upload(randomBytes(500))]
  for (const [i, blob] of blobs.entries()) await alice.refer(`com.example.note/${i}`, blob)
  lost = blobs[0]!.ref.$link
  expect(await holdfast(['backup', archive])).toMatchObject({ code: 0 })
})
afterAll(() => rmSync(home, { recursive: true }))

const env = (dataDir = pds.dataDir) => ({
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: pds.url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
})
async function holdfast(words: string[], more: Record<string, string> = {}) {
  const lines: string[] = []
  const code = await runCommand(quietTerminal({ ...env(), ...more }, lines), [...words, '--dev'])
  return { code, text: lines.join('\n') }
}
const rehearsed = (from = archive, more: Record<string, string> = {}, ...words: string[]) =>
  holdfast(['restore', from, ...words, '--rehearse', '--scratch', scratch], more)
async function reported(from = archive, more: Record<string, string> = {}): Promise<Rehearsal & { code: number }> {
  const { code, text } = await rehearsed(from, more, '--json')
  return { ...(JSON.parse(text) as Rehearsal), code }
}
const noted = (from = archive) => JSON.parse(readFileSync(join(from, 'rehearsal.json'), 'utf8'))

/** What is in a folder, but for the files through which processes that read a database of SQLite share it. */
const contentOf = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/-(?:shm|wal)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path, Bun.hash(readFileSync(path))])
    .toSorted()

test('a running server is compared with its backup, and stays as it is', async () => {
  const before = contentOf(pds.dataDir)
  const report = await reported()
  expect(report).toMatchObject({
    code: 0,
    ok: true,
    blobBytes: 1500,
    restored: { accounts: 1, records: 2, blobs: 2 },
    faultCount: 0,
    missingBlobCount: 0,
  })
  expect(report.live).toEqual(report.restored)
  expect(report.restored.newestEvent).toBeGreaterThan(0)
  expect(contentOf(pds.dataDir)).toEqual(before)
  expect(readdirSync(scratch)).toEqual([])
  expect(noted()).toEqual({ snapshot: report.snapshot, at: expect.any(String), ok: true })

  await createAccount(pds, 'bob')
  const { code, text } = await rehearsed()
  expect(code).toBe(0)
  expect(text).toMatch(/^accounts +1 +2$/m)
  expect(text).toMatch(/^records +2 +2$/m)
  expect(text).toContain('The backup can be restored.')
})

test('what a restore needs besides the backup is named', async () => {
  expect((await reported()).needed).toEqual(['the configuration, with its admin token and all other secrets'])
  const sealed = join(home, 'sealed')
  const passphrase = { SERVICE_BACKUP_PASSPHRASE: 'a passphrase for backups', SERVICE_BACKUP_WORK_FACTOR: '10' }
  const masterKey = readFileSync(join(pds.dataDir, 'master.key'), 'utf8').trim()
  expect(await holdfast(['backup', sealed], passphrase)).toMatchObject({ code: 0 })
  expect(await reported(sealed, { ...passphrase, SERVICE_SIGNING_KEY_MASTER_KEY: masterKey })).toMatchObject({
    code: 0,
    needed: [expect.any(String), expect.stringContaining('passphrase'), expect.stringContaining('master key')],
  })
  expect(await rehearsed(sealed)).toMatchObject({ code: 1, text: expect.stringContaining('SERVICE_BACKUP_PASSPHRASE') })
  expect(await rehearsed(sealed, { SERVICE_BACKUP_PASSPHRASE: 'another' })).toMatchObject({
    code: 1,
    text: expect.stringContaining('does not decrypt'),
  })
  expect(noted(sealed)).toMatchObject({ ok: true })
  const otherKey = { ...passphrase, SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32) }
  expect(await rehearsed(sealed, otherKey)).toMatchObject({ code: 1, text: expect.stringContaining('master key') })
  expect(noted(sealed)).toMatchObject({ ok: false })
  expect(readdirSync(scratch)).toEqual([])
})

test('a machine without the server can rehearse too', async () => {
  const elsewhere = join(home, 'elsewhere')
  expect(await reported(archive, env(elsewhere))).toMatchObject({ code: 0, ok: true, live: null })
  expect(existsSync(elsewhere)).toBe(false)
})

test('with --json nothing but the report is on standard output, and a name that is wrong says nothing', async () => {
  // The live server cannot be compared, which the log says.
  const database = join(home, 'broken.db')
  writeFileSync(database, 'no database')
  const run = (...words: string[]) =>
    Bun.spawnSync([...PROGRAM, 'restore', archive, ...words, '--rehearse', '--json', '--scratch', scratch, '--dev'], {
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        ...env(),
        SERVICE_LOG_LEVEL: 'info',
        SERVICE_DATABASE_URL: database,
      },
    })
  const { exitCode, stdout, stderr } = run()
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout.toString())).toMatchObject({ ok: true, live: null })
  expect(stderr.toString()).toContain('could not compare the live database')
  const after = noted()

  expect(run('20200101T000000Z')).toMatchObject({ exitCode: 1 })
  expect(noted()).toEqual(after)
})

test('a scheduled backup that lacks a blob says so', async () => {
  const dataDir = join(home, 'lacking')
  expect((await holdfast(['restore', archive], env(dataDir))).code).toBe(0)
  rmSync(join(dataDir, 'blobs'), { recursive: true })
  const { exitCode, stdout, stderr } = Bun.spawnSync([...PROGRAM, 'sweep', 'backup', '--dev'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      ...env(dataDir),
      SERVICE_BACKUP_DESTINATION: join(home, 'lacking-archive'),
      SERVICE_BACKUP_INTERVAL_SECS: '86400',
    },
  })
  expect(exitCode).toBe(1)
  expect(stdout.toString() + stderr.toString()).toMatch(/the backup failed: the backup lacks 2 blobs/)
})

test('a backup that lacks a blob, or is damaged, fails, and the doctor says so', async () => {
  const damaged = join(home, 'damaged')
  await holdfast(['backup', damaged])
  const pathOf = (part: string) =>
    contentOf(damaged)
      .map(([path]) => String(path))
      .find((path) => path.includes(part))!
  writeFileSync(pathOf(lost), 'other bytes')
  expect(await reported(damaged)).toMatchObject({ code: 1, ok: false, missingBlobCount: 1, missingBlobs: [lost] })
  expect(noted(damaged).ok).toBe(false)
  const doctor = await holdfast(['doctor'], { SERVICE_BACKUP_DESTINATION: damaged })
  expect(doctor.text).toContain('failed when it was rehearsed')

  const database = readFileSync(pathOf('/database'))
  database[database.length - 100]! ^= 1
  writeFileSync(pathOf('/database'), database)
  expect(await rehearsed(damaged)).toMatchObject({
    code: 1,
    text: expect.stringContaining('does not match the manifest'),
  })
  expect(readdirSync(scratch)).toEqual([])
})

test('an encrypted backup of which a part was cut off fails, and that is noted', async () => {
  const cut = join(home, 'cut')
  const passphrase = { SERVICE_BACKUP_PASSPHRASE: 'a passphrase for backups', SERVICE_BACKUP_WORK_FACTOR: '10' }
  expect(await holdfast(['backup', cut], passphrase)).toMatchObject({ code: 0 })
  const pathOf = (part: string) => String(contentOf(cut).find(([path]) => String(path).includes(part))![0])
  expect((await rehearsed(cut, passphrase)).code).toBe(0)
  truncateSync(pathOf(lost), 100)
  expect(await reported(cut, passphrase)).toMatchObject({ code: 1, ok: false, missingBlobs: [lost] })
  for (const part of ['database.age', 'manifest.json']) {
    rmSync(join(cut, 'rehearsal.json'))
    truncateSync(pathOf(part), 20)
    expect(await rehearsed(cut, passphrase)).toMatchObject({
      code: 1,
      text: expect.stringContaining(`${part} was cut off or changed`),
    })
    expect(noted(cut).ok).toBe(false)
  }
})

test('a rehearsal whose result cannot be read counts neither as one that succeeded nor as none', async () => {
  const place = join(home, 'unread')
  await holdfast(['backup', place])
  const backups = { SERVICE_BACKUP_DESTINATION: place }
  const said = async () => /^.*? rehearsal .*$/m.exec((await holdfast(['doctor'], backups)).text)?.[0]
  expect(await said()).toMatch(/^ok +rehearsal +no restore was rehearsed yet/)
  expect((await rehearsed(place)).code).toBe(0)
  expect(await said()).toMatch(/^ok +rehearsal +a restore was last rehearsed on/)
  for (const content of ['null', '', '{"snapshot":"20261101T000000Z","at":"2026-11-01T00:00:00Z","ok":"no"}']) {
    writeFileSync(join(place, 'rehearsal.json'), content)
    expect(await said()).toMatch(/^warn +rehearsal +the last rehearsal cannot be read: .*rehearsal\.json/)
  }
  chmodSync(place, 0o000)
  try {
    const words = ['doctor', '--dev']
    const { out } = await runProgram(words, { ...env(), ...backups }, withoutPrivileges)
    expect(out).toMatch(/^warn +rehearsal +the last rehearsal cannot be read: .*unread/m)
  } finally {
    chmodSync(place, 0o700)
  }
})

test('a folder that a killed rehearsal has left is deleted, once it is a day old', async () => {
  for (const [name, days] of [
    ['holdfast-rehearsal-old', 2],
    ['holdfast-rehearsal-new', 0],
    ['of somebody else', 2],
  ] as const) {
    mkdirSync(join(scratch, name))
    const at = new Date(Date.now() - days * 86_400_000)
    utimesSync(join(scratch, name), at, at)
  }
  symlinkSync('nowhere', join(scratch, 'holdfast-rehearsal-link'))
  expect((await rehearsed()).code).toBe(0)
  expect(readdirSync(scratch).toSorted()).toEqual([
    'holdfast-rehearsal-link',
    'holdfast-rehearsal-new',
    'of somebody else',
  ])
  for (const name of readdirSync(scratch)) rmSync(join(scratch, name), { recursive: true })
})

test.each(['SIGINT', 'SIGHUP'] as const)('a rehearsal that %s interrupts leaves nothing', async (signal) => {
  const place = join(home, `slow-${signal}`)
  await holdfast(['backup', place])
  const database = contentOf(place)
    .map(([path]) => String(path))
    .find((path) => path.endsWith('/database'))!
  rmSync(database)
  // Nothing is ever written into it.
  expect(Bun.spawnSync(['mkfifo', database]).exitCode).toBe(0)
  const program = Bun.spawn([...PROGRAM, 'restore', place, '--rehearse', '--scratch', scratch, '--dev'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env() },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await until(() => readdirSync(scratch).length > 0)
  program.kill(signal)
  expect(await program.exited).toBe(130)
  expect(readdirSync(scratch)).toEqual([])
})

test('too little space is said before the disk is full, and says nothing about the backup', async () => {
  const disk = join(home, 'disk')
  expect((await rehearsed()).code).toBe(0)
  const before = noted()
  const words = ['restore', archive, '--rehearse', '--scratch', disk, '--dev']
  const program = Bun.spawn([...withSmallDisk(disk, 20 * 1024 ** 2), ...PROGRAM, ...words], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env() },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect([await new Response(program.stderr).text(), await program.exited]).toEqual([
    expect.stringContaining('too little space'),
    1,
  ])
  expect(noted()).toEqual(before)
})

test('blobs in a bucket are looked up there, and the bucket stays as it is', async () => {
  await using bucket = await startBucket()
  await using other = await startPdsOnFile({ blobs: bucket.primary })
  const carol = await Uploader.join(other, 'carol')
  const [kept, gone] = [await carol.upload(randomBytes(1000)), await carol.upload(randomBytes(1001))]
  await carol.refer('com.example.note/1', kept)
  await carol.refer('com.example.note/2', gone)
  const more = {
    ...env(other.dataDir),
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: bucket.primary.s3Bucket,
    SERVICE_BLOBS_S3_ENDPOINT: bucket.primary.s3Endpoint,
    SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: bucket.primary.s3AccessKeyId,
    AWS_SECRET_ACCESS_KEY: bucket.primary.s3SecretAccessKey.reveal(),
  }
  const place = join(home, 'of the bucket')
  expect(await holdfast(['backup', place], more)).toMatchObject({ code: 0 })
  expect(await reported(place, more)).toMatchObject({
    code: 0,
    restored: { blobs: 2 },
    needed: [expect.any(String), expect.stringContaining(`the bucket ${bucket.primary.s3Bucket}`)],
  })
  const cid = gone.ref.$link
  bucket.delete(`blobs/${cid.slice(7, 9)}/${cid}`)
  expect(await reported(place, more)).toMatchObject({ code: 1, missingBlobs: [cid] })
})

test('the options of a rehearsal need --rehearse', async () => {
  for (const words of [['--scratch', scratch], ['--quick']])
    expect(await holdfast(['restore', archive, ...words])).toMatchObject({ code: 2 })
})
