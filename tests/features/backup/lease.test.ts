/** Which data directory may continue a continuous backup. */
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { runCommand } from '../../../src/cli.ts'
import { archiveAt, type Archive } from '../../../src/features/operations/backup/archive.ts'
import { LeaseWatch, type FoundLease } from '../../../src/features/operations/backup/continuous-lease.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { testConfig } from '../../support/servers/config.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, runProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-lease-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

async function inFolderAndBucket(work: (archive: Archive, bucket: BucketHost | null) => Promise<void>): Promise<void> {
  const place = { dataDir: newFolder(), port: 1, publicUrl: 'http://localhost:1' }
  await work(archiveAt(newFolder(), testConfig(place)), null)
  await using bucket = await startBucket()
  const { mirror } = bucket
  await work(archiveAt(`s3://${mirror.bucket}/lease`, testConfig(place, { blobMirror: mirror })), bucket)
}

const text = (content: string) => Buffer.from(content)
const isKept = ({ url }: { url: string }) =>
  until(async () => (await request(`${url}/readyz`)).body.continuousBackup?.promise === 'sync')

test('one of all who replace an object at once does so, and the others learn it', async () => {
  await inFolderAndBucket(async (archive) => {
    let tag: string | null = null
    for (let round = 0; round < 4; round++) {
      const former: string | null = tag
      const tags = await Promise.all(
        Array.from({ length: 6 }, (_, i) => archive.swap('continuous/lease', text(`${round} ${i}`), former)),
      )
      expect(tags.filter((each) => each !== null)).toHaveLength(1)
      const winner = tags.findIndex((each) => each !== null)
      const found = (await archive.tagged('continuous/lease'))!
      expect({ content: Buffer.from(found.content).toString(), tag: found.tag }).toEqual({
        content: `${round} ${winner}`,
        tag: tags[winner]!,
      })
      // Who still has the one before cannot replace anything.
      expect(await archive.swap('continuous/lease', text('late'), former)).toBeNull()
      ;({ tag } = found)
    }
  })
})

test('an answer that is lost does not make a replacement of one own that of another', async () => {
  await inFolderAndBucket(async (archive, bucket) => {
    const first = await archive.swap('continuous/lease', text('first'), null)
    if (bucket !== null)
      bucket.intercept = (incoming, response) => {
        if (incoming.method !== 'PUT') return false
        bucket.intercept = null
        response.end = () => {
          incoming.socket.destroy()
          return response
        }
        bucket.pass(incoming, response)
        return true
      }
    const second = await archive.swap('continuous/lease', text('second'), first)
    expect(second).not.toBeNull()
    expect((await archive.tagged('continuous/lease'))!.tag).toBe(second!)
  })
})

test('a lease has run out if it is read unchanged after its time, and not because the reader was away', () => {
  let now = 0
  const watch = new LeaseWatch({ monotonic: () => now })
  const lease = (tag: string) => ({ tag, record: { ttlMillis: 1000 } }) as FoundLease
  expect(watch.note(lease('a'), 0)).toBe(false)
  // A read that began early shows what was there early.
  now = 5000
  expect(watch.note(lease('a'), 900)).toBe(false)
  expect(watch.note(lease('b'), 5000)).toBe(false)
  now = 6200
  expect(watch.note(lease('b'), 6200)).toBe(false)
  now = 6300
  expect(watch.note(lease('b'), 6300)).toBe(true)
})

test('a server that was replaced by one that was restored refuses to start, and the doctor says so', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  await createAccount(pds, 'alice')
  await isKept(pds)
  await pds.stop()
  const env = {
    SERVICE_DATA_DIR: newFolder(),
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_LOG_LEVEL: 'error',
    SERVICE_BACKUP_CONTINUOUS: place,
  }
  // In a process of its own: SQLite remembers where a file was that this process has opened.
  expect(await runProgram(['restore', '--at', '2100-01-01T00:00:00Z', '--dev'], env)).toMatchObject({ code: 0 })
  const own = { dataDir: env.SERVICE_DATA_DIR, port: await freePort(), publicUrl: 'http://localhost:1' }
  const successor = await startApp(testConfig(own, { development: true, backup }))
  await isKept(successor)
  await successor.stop()
  expect(await thrownBy(pds.restart())).toThrow(/another machine, .*, continues this server/)

  const lines: string[] = []
  await runCommand(quietTerminal(env, lines), ['doctor', '--dev'])
  expect(lines.join('\n')).toMatch(/this machine, .*, serves; takeovers so far: 1/)
})

test('a store that knows no conditions has a continuous backup, and no server that another one may replace', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  bucket.intercept = (incoming, response) => {
    const { 'if-match': match, 'if-none-match': none } = incoming.headers
    if (match === undefined && none === undefined) return false
    incoming.resume()
    response.writeHead(501).end()
    return true
  }
  const backup = { continuous: `s3://${mirror.bucket}/backup`, continuousPromise: 'sync' } as const
  const blobMirror = { ...mirror, bucket: null }
  await using pds = await startPdsOnFile({ backup, blobMirror })
  await isKept(pds)
  await createAccount(pds, 'alice')
  expect(await thrownBy(pds.restart({ backup: { ...backup, takeoverSecs: 15 } }))).toThrow('this store ignores If-')
})

test('a lease that is deleted or overwritten by what is none is written anew by the machine that has it', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  const backup = { continuous: `s3://${mirror.bucket}/backup`, continuousPromise: 'sync', takeoverSecs: 3 } as const
  await using pds = await startPdsOnFile({ backup, blobMirror: { ...mirror, bucket: null } })
  await isKept(pds)
  const alice = await createAccount(pds, 'alice')
  const key = 'backup/continuous/lease'
  const holder = () => {
    const text = bucket.keys().includes(key) ? Buffer.from(bucket.read(key)).toString() : ''
    return text.startsWith('{') ? (JSON.parse(text) as { holder: string }).holder : null
  }
  const own = holder()
  for (const damage of [() => bucket.delete(key), () => bucket.write(key, Buffer.from('of somebody else'))]) {
    await damage()
    await until(() => holder() === own)
    const json = { repo: alice.did, collection: 'org.example.note', record: { $type: 'org.example.note' } }
    expect((await alice.call('com.atproto.repo.createRecord', { json })).status).toBe(200)
  }
})

test('without a lease that runs out, a takeover from a store that knows no conditions is refused too', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  bucket.ignoresConditions = true
  const backup = { continuous: `s3://${mirror.bucket}/backup`, continuousPromise: 'sync' } as const
  const blobMirror = { ...mirror, bucket: null }
  await using pds = await startPdsOnFile({ backup, blobMirror })
  await isKept(pds)
  const alice = await createAccount(pds, 'alice')
  const before = Buffer.from(bucket.read('backup/continuous/lease')).toString()
  const env = {
    SERVICE_DATA_DIR: newFolder(),
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_BACKUP_CONTINUOUS: backup.continuous,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
    SERVICE_BLOB_MIRROR_ENDPOINT: mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  }
  const promoted = await runProgram(['promote', '--dev'], env)
  expect(promoted.code).toBe(1)
  expect(promoted.err).toContain('this store ignores If-')
  expect(Buffer.from(bucket.read('backup/continuous/lease')).toString()).toBe(before)
  const json = { repo: alice.did, collection: 'org.example.note', record: { $type: 'org.example.note' } }
  expect((await alice.call('com.atproto.repo.createRecord', { json })).status).toBe(200)
})

test('a folder without hard links has a continuous backup, and no server that another one may replace', async () => {
  const place = newFolder()
  const folder = newFolder()
  mkdirSync(folder)
  const program = [process.execPath, join(import.meta.dir, '../../support/faults/without-links.ts'), ...PROGRAM]
  const env = {
    PORT: String(await freePort()),
    SERVICE_BACKUP_CONTINUOUS: place,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
  }
  {
    await using server = await startProgram(['dev'], env, folder, { program })
    await isKept(server)
    await createAccount(server, 'alice')
    const promoted = await runProgram(
      ['promote', '--dev'],
      { ...env, SERVICE_DATA_DIR: newFolder(), SERVICE_PUBLIC_URL: 'http://localhost:1' },
      program,
    )
    expect(promoted).toMatchObject({ code: 1, err: expect.stringContaining('has no hard links') })
    await createAccount(server, 'bob')
  }
  expect(
    await thrownBy(startProgram(['dev'], { ...env, SERVICE_BACKUP_TAKEOVER_SECS: '15' }, folder, { program })),
  ).toThrow('has no hard links')
})

test('a loss of power that has emptied the file with its name stops no server', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  await isKept(pds)
  writeFileSync(join(pds.dataDir, 'holdfast.holder'), '')
  await pds.restart()
  await isKept(pds)
  expect(readFileSync(join(pds.dataDir, 'holdfast.holder'), 'utf8')).toHaveLength(36)
})

test('a file that says it is another directory cannot continue the backup', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  await isKept(pds)
  const path = join(pds.dataDir, 'holdfast.holder')
  expect(readFileSync(path, 'utf8')).toHaveLength(36)
  writeFileSync(path, crypto.randomUUID())
  expect(await thrownBy(pds.restart())).toThrow('another machine')
})

test('a server that was killed as it took its lease for the first time serves again', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  const folder = newFolder()
  mkdirSync(folder)
  const env = { PORT: String(await freePort()) }
  const backup = {
    ...env,
    SERVICE_BACKUP_CONTINUOUS: `s3://${mirror.bucket}/backup`,
    SERVICE_BLOB_MIRROR_ENDPOINT: mirror.endpoint,
    SERVICE_BLOB_MIRROR_BUCKET: mirror.bucket,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  }
  {
    await using server = await startProgram(['dev'], env, folder)
    await createAccount(server, 'alice')
  }
  const { promise: isStored, resolve } = Promise.withResolvers<void>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.endsWith('/lease')) return false
    response.end = () => {
      resolve()
      return response
    }
    bucket.pass(incoming, response)
    return true
  }
  {
    await using server = await startProgram(['follow', '--dev'], backup, folder)
    await isStored
    server.signal('SIGKILL')
    await server.exited
  }
  bucket.intercept = null
  await using server = await startProgram(['follow', '--dev'], backup, folder)
  expect((await request(`${server.url}/readyz`)).body.role).toBe('serving')
  await createAccount(server, 'bob')
})

test('a server that could not take its lease, however often it was started, takes it once it can', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  const backup = { continuous: `s3://${mirror.bucket}/backup`, continuousLagMs: 100 }
  await using pds = await startPdsOnFile({ backup, blobMirror: mirror })
  const isSent = () => until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup?.lagMillis === 0)
  await isSent()
  let refused = 0
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.endsWith('/lease')) return false
    refused++
    response.writeHead(403).end()
    return true
  }
  for (let starts = 0; starts < 40; starts++) await pds.restart()
  expect(refused).toBeGreaterThanOrEqual(40)
  bucket.intercept = null
  await pds.restart()
  await createAccount(pds, 'alice')
  await isSent()
}, 60_000)
