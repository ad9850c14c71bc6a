/** Reads of the destination that end early, and look complete: they are repeated, and decide nothing. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { isKept, post } from './kept-notes.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-partial-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = (): string => {
  const path = join(scratch, String(++folders))
  mkdirSync(path)
  return path
}

/** A program whose continuous backup is in a bucket, as often as it is started. */
async function kept(bucket: BucketHost, more: Record<string, string> = {}) {
  const folder = newFolder()
  const { mirror } = bucket
  const env = {
    PORT: String(await freePort()),
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_BACKUP_CONTINUOUS: `s3://${mirror.bucket}/backup`,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
    SERVICE_BLOB_MIRROR_ENDPOINT: mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
    ...more,
  }
  return { data: join(folder, 'data'), start: () => startProgram(['dev'], env, folder) }
}

/** Answer the first `times` reads of each such object with its first half, as if that were all. Returns how many. */
function halve(bucket: BucketHost, part: string, times: number, also?: typeof bucket.intercept): () => number {
  const seen = new Map<string, number>()
  let halved = 0
  bucket.intercept = (incoming: IncomingMessage, response: ServerResponse, key: string) => {
    if (also?.(incoming, response, key) === true) return true
    if (incoming.method !== 'GET' || !key.includes(part) || !bucket.keys().includes(key)) return false
    const count = seen.get(key) ?? 0
    if (count >= times) return false
    seen.set(key, count + 1)
    const whole = bucket.read(key)
    const tag = new Bun.CryptoHasher('md5').update(whole).digest('hex')
    response.writeHead(200, { etag: `"${tag}"` }).end(whole.subarray(0, whole.length / 2))
    halved++
    return true
  }
  return () => halved
}

const chains = (bucket: BucketHost) => bucket.keys().filter((key) => key.endsWith('/key'))
const isUp = async ({ url }: { url: string }, { did }: TestAccount) =>
  (await request(`${url}/xrpc/com.atproto.repo.describeRepo?repo=${did}`)).status

test('with sync, a segment that is read back in part is read again, and the server goes on', async () => {
  await using bucket = await startBucket()
  const { start } = await kept(bucket)
  await using server = await start()
  const alice = await createAccount(server, 'alice')
  await isKept(server)
  // A store whose tags say nothing is asked what it has.
  const halved = halve(bucket, '/segment-', 2, (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    const end = response.end.bind(response)
    const untold = () => end()
    response.writeHead = () => response
    response.setHeader = () => response
    response.end = untold as typeof response.end
    bucket.pass(incoming, response)
    return true
  })
  await post(alice, 'first')
  expect(halved()).toBeGreaterThanOrEqual(2)
  await post(alice, 'second')
  bucket.intercept = null
  expect(await isUp(server, alice)).toBe(200)
  expect(chains(bucket)).toHaveLength(1)
})

test('with sync, a server that finds more than it has noted reads it again if it looks damaged', async () => {
  await using bucket = await startBucket()
  const { data, start } = await kept(bucket)
  const noted = newFolder()
  let alice: TestAccount
  {
    await using server = await start()
    alice = await createAccount(server, 'alice')
    await isKept(server)
    await post(alice, 'first')
    cpSync(join(data, 'continuous'), noted, { recursive: true })
    await post(alice, 'second')
    server.signal('SIGKILL')
    await server.exited
  }
  // A loss of power took what was noted last.
  rmSync(join(data, 'continuous'), { recursive: true })
  cpSync(noted, join(data, 'continuous'), { recursive: true })
  const halved = halve(bucket, '/segment-', 1)
  await using server = await start()
  expect(halved()).toBeGreaterThan(0)
  await isKept(server)
  await post(alice, 'third')
  expect(chains(bucket)).toHaveLength(1)
})

test('a lease that is read in part, however often, is not replaced', async () => {
  await using bucket = await startBucket()
  const { start } = await kept(bucket, { SERVICE_BACKUP_TAKEOVER_SECS: '3' })
  await using server = await start()
  const alice = await createAccount(server, 'alice')
  await isKept(server)
  await post(alice, 'first')
  const key = 'backup/continuous/lease'
  const own = JSON.parse(Buffer.from(bucket.read(key)).toString()) as Record<string, unknown>
  const others = Buffer.from(JSON.stringify({ ...own, holder: crypto.randomUUID(), epoch: 100 }))
  await bucket.write(key, others)
  const halved = halve(bucket, '/lease', 8)
  await server.exited
  expect(halved()).toBe(8)
  expect(Buffer.from(bucket.read(key)).equals(others)).toBe(true)
  expect(server.output()).toContain('continues this server')
})

test('with async, a segment that the destination has only a part of ends the chain, and another one begins', async () => {
  await using bucket = await startBucket()
  const { start } = await kept(bucket, {
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'async',
    SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
  })
  await using server = await start()
  const alice = await createAccount(server, 'alice')
  const isSent = () => until(async () => (await request(`${server.url}/readyz`)).body.continuousBackup?.lagMillis === 0)
  await isSent()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    bucket.intercept = null
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const whole = Buffer.concat(chunks)
      void bucket.write(key, whole.subarray(0, whole.length / 2)).then(() => response.writeHead(200).end())
    })
    return true
  }
  await post(alice, 'first')
  await isSent()
  expect(chains(bucket)).toHaveLength(2)
})
