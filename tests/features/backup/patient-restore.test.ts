/** A restore whose destination fails in the middle of it. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import type { Archive } from '../../../src/features/operations/backup/archive.ts'
import { patiently } from '../../../src/features/operations/backup/patient-archive.ts'
import { randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { setUp } from '../../support/set-up.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { thrownBy } from '../../support/thrown.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-patient-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const bucket = setUp(() => startBucket())
const pds = setUp(() => startPdsOnFile())
const BLOBS = 3

async function holdfast(dataDir: string, words: string[]) {
  const lines: string[] = []
  const { mirror } = bucket
  const env = {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PUBLIC_URL: pds.url,
    SERVICE_PORT: '1',
    SERVICE_LOG_LEVEL: 'error',
    SERVICE_BACKUP_DESTINATION: `s3://${mirror.bucket}/backups`,
    SERVICE_BLOB_MIRROR_ENDPOINT: mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  }
  const code = await runCommand(quietTerminal(env, lines), [...words, '--dev'])
  return { code, text: lines.join('\n') }
}

const made = setUp(async () => {
  const alice = await Uploader.join(pds, 'alice')
  for (let i = 0; i < BLOBS; i++) await alice.refer(`a.b.c/${i}`, await alice.upload(randomBytes(200_000 + i)))
  return holdfast(pds.dataDir, ['backup'])
})

/** The objects whose reads take long: the database, the list of blobs, and blobs. */
const isContent = (key: string) => /\/(database|blobs)$|\/blobs\//.test(key)

/** Counts requests by object. `spoil` answers one with a failure, and returns true. */
function watch(
  spoil: (key: string, count: number, response: Parameters<NonNullable<BucketHost['intercept']>>[1]) => boolean,
) {
  const reads = new Map<string, number>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'GET' || !isContent(key)) return false
    const count = (reads.get(key) ?? 0) + 1
    reads.set(key, count)
    return spoil(key, count, response)
  }
  return reads
}

test('a restore goes on once the destination works again', async () => {
  expect(made.code).toBe(0)
  const reads = watch((key, count, response) => {
    if (count > 4) return false
    if (count > 1) response.writeHead(503).end()
    else {
      const whole = bucket.read(key)
      response.writeHead(200, { 'content-length': whole.length })
      response.write(whole.subarray(0, whole.length >> 1), () => response.socket?.destroy())
    }
    return true
  })
  const { code, text } = await holdfast(join(scratch, 'patient'), ['restore'])
  expect(text).toContain(`1 repositories and ${BLOBS} blobs verified`)
  expect(code).toBe(0)
  expect(reads.size).toBe(BLOBS + 2)
  for (const key of reads.keys())
    expect(text.split(`${key.slice('backups/'.length)} cannot be read for now`)).toHaveLength(2)
})

test('an object is read on from where the connection broke', async () => {
  const whole = randomBytes(1000)
  const places: number[] = []
  const archive = {
    async read(_: string, from = 0) {
      places.push(from)
      return (async function* () {
        yield whole.subarray(from, from + 400)
        if (from + 400 < 1000) throw new Error('the socket was closed')
      })()
    },
  } as unknown as Archive
  const { read } = patiently(archive, { tell: () => {} })
  const readFrom = async (from?: number) => Buffer.concat(await Array.fromAsync((await read('some/database', from))!))
  expect((await readFrom()).equals(whole)).toBe(true)
  expect(places.splice(0)).toEqual([0, 400, 800])
  expect((await readFrom(300)).equals(whole.subarray(300))).toBe(true)
  expect(places).toEqual([300, 700])
})

test('a restore that is run again keeps what was fetched', async () => {
  expect(made.code).toBe(0)
  const dataDir = join(scratch, 'again')
  const last = bucket
    .keys()
    .filter((key) => key.includes('/blobs/'))
    .toSorted()
    .at(-1)!
  watch((key, _, response) => {
    if (key !== last) return false
    response.writeHead(403).end()
    return true
  })
  expect(await holdfast(dataDir, ['restore'])).toMatchObject({ code: 1 })
  const reads = watch(() => false)
  expect(await holdfast(dataDir, ['restore'])).toMatchObject({
    code: 0,
    text: expect.stringContaining(`1 repositories and ${BLOBS} blobs verified`),
  })
  const read = Array.from(reads.keys())
  expect(read.filter((key) => key.endsWith('/database'))).toEqual([])
  expect(read).toContain(last)
})

test('an outage that does not end is told with what to do, and what no later try would mend at once', async () => {
  const failing = (error: Error) => {
    const told: string[] = []
    const archive = { read: (name: string) => (name === 'there' ? null : Promise.reject(error)) } as unknown as Archive
    const { read } = patiently(archive, { tell: (message) => told.push(message), maxOutageMillis: 0 })
    const afterAnother = async () => {
      await read('there')
      return read('some/database')
    }
    return { told, atOnce: () => read('some/database'), afterAnother }
  }
  const outage = failing(new Error('the socket was closed'))
  expect(await thrownBy(outage.atOnce())).toThrow('the socket was closed')
  expect(outage.told).toEqual([])
  expect(await thrownBy(outage.afterAnother())).toThrow(
    'run the same command again, which fetches what is still missing',
  )
  expect(outage.told).toEqual(['some/database cannot be read for now (the socket was closed): trying again'])
  const forbidden = Object.assign(new Error('EACCES'), { code: 'EACCES', syscall: 'open' })
  const denied = failing(forbidden)
  expect(await thrownBy(denied.afterAnother())).toThrow('EACCES')
  expect(denied.told).toEqual([])
})
