/** The process is killed, and the disk is full, while blobs come in. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { exhaustDescriptors } from '../../support/faults/process-limits.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { randomBytes } from '../../support/clients/uploader.ts'
import { until } from '../../support/until.ts'

// Several processes are started in a row.
setDefaultTimeout(60_000)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-breaking-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const start = (dataDir: string, limits = {}, env: Record<string, string> = {}) =>
  startProgram(
    ['dev'],
    {
      SERVICE_PORT: '0',
      SERVICE_PUBLIC_URL: 'http://localhost:2583',
      SERVICE_DATA_DIR: dataDir,
      SERVICE_LOG_LEVEL: 'info',
      ...env,
    },
    folder,
    limits,
  )
const inBucket = ({ primary }: BucketHost) => ({
  SERVICE_BLOBS_STORE: primary.store,
  SERVICE_BLOBS_S3_BUCKET: primary.s3Bucket,
  SERVICE_BLOBS_S3_ENDPOINT: primary.s3Endpoint,
  SERVICE_BLOBS_S3_ACCESS_KEY_ID: primary.s3AccessKeyId,
  SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: primary.s3SecretAccessKey.reveal(),
  SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
})
const upload = ({ url }: RunningServer, { accessJwt }: TestAccount, bytes: RequestInit['body']) =>
  request(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
    method: 'POST',
    body: bytes,
    headers: { ...bearer(accessJwt), 'content-type': 'video/mp4' },
  })
/** The beginning of an upload, after which nothing comes. */
const endless = () =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(randomBytes(1000))
    },
  })
const read = async ({ url }: RunningServer, { did, accessJwt }: TestAccount, cid: string) => {
  const response = await fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`, {
    headers: bearer(accessJwt),
  })
  return response.ok ? cidOfBlob(new Uint8Array(await response.arrayBuffer())).toString() : response.status
}
const storedCids = (dataDir: string) => {
  const db = new Database(join(dataDir, 'holdfast.db'), { readonly: true })
  const cids = db
    .query<{ cid: string }, []>('SELECT cid FROM blob')
    .all()
    .map((row) => row.cid)
  db.close()
  return cids
}
const incoming = (dataDir: string) => readdirSync(join(dataDir, 'blobs', '.incoming'))

test('killed at any instant: what was answered is there, and no row is without its bytes', async () => {
  const dataDir = join(folder, 'killed')
  const answered: string[] = []
  let account: TestAccount | null = null
  for (let round = 0; round < 3; round++) {
    await using server = await start(dataDir)
    account ??= await createAccount(server, 'alice')
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    const uploads = Array.from({ length: 16 }, async (_, i) => {
      const bytes = randomBytes(20_000 + i * 20_000)
      const outcome = await upload(server, account!, bytes).catch(() => null)
      if (outcome?.status === 200) answered.push(cidOfBlob(bytes).toString())
      if (outcome === null || answered.length >= (round + 1) * 4) resolve()
    })
    await enough
    server.signal('SIGKILL')
    await Promise.all(uploads)
  }
  await using server = await start(dataDir)
  expect(answered.length).toBeGreaterThanOrEqual(12)
  for (const cid of answered) expect(await read(server, account!, cid)).toBe(cid)
  for (const cid of storedCids(dataDir)) {
    const path = join(dataDir, 'blobs', cid.slice(-2), cid)
    expect(existsSync(path) && cidOfBlob(new Uint8Array(readFileSync(path))).toString()).toBe(cid)
  }
})

test('the next start deletes what a killed server had received of uploads', async () => {
  const dataDir = join(folder, 'half-received')
  {
    await using server = await start(dataDir)
    const account = await createAccount(server, 'frank')
    const sent = upload(server, account, endless()).catch(() => null)
    await until(() => incoming(dataDir).length === 1)
    server.signal('SIGKILL')
    expect(await sent).toBeNull()
  }
  expect(incoming(dataDir)).toHaveLength(1)
  await using _ = await start(dataDir)
  expect(incoming(dataDir)).toEqual([])
})

test('a full disk refuses an upload, keeps nothing of it, and goes on', async () => {
  const dataDir = join(folder, 'full')
  // The log of the database has to fit.
  await using server = await start(dataDir, { maxFileBytes: 4_500_000 })
  const account = await createAccount(server, 'bob')
  const small = randomBytes(1_000_000)
  const refused = await upload(server, account, randomBytes(5_000_000))
  expect(refused).toMatchObject({
    status: 503,
    body: { error: 'ServiceUnavailable', message: 'Try again later: the disk is full' },
  })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await until(() => server.output().includes('EFBIG'))
  expect(incoming(dataDir)).toEqual([])
  expect(storedCids(dataDir)).toEqual([])
  expect((await upload(server, account, small)).status).toBe(200)
  const cid = cidOfBlob(small).toString()
  expect(await read(server, account, cid)).toBe(cid)
})

test.each(['folder', 'bucket'] as const)(
  'a server that can open no more files refuses uploads to its %s, keeps nothing, and goes on',
  async (place) => {
    await using bucket = await startBucket()
    const dataDir = join(folder, `descriptors-${place}`)
    await using server = await start(dataDir, {}, place === 'bucket' ? inBucket(bucket) : {})
    const account = await createAccount(server, 'erin')
    const [known, large, bytes] = [randomBytes(1000), randomBytes(300_000), randomBytes(1001)]
    const [cid, largeCid] = [cidOfBlob(known).toString(), cidOfBlob(large).toString()]
    for (const content of [known, large]) expect((await upload(server, account, content)).status).toBe(200)
    for (const each of [cid, largeCid]) expect(await read(server, account, each)).toBe(each)

    const allow = exhaustDescriptors(server.pid)
    const refused = await upload(server, account, bytes)
    expect(refused).toMatchObject({
      status: 503,
      body: { error: 'ServiceUnavailable', message: 'Try again later: too many files are open' },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    // Over a connection to the bucket that is open already, both still come.
    expect(await read(server, account, largeCid)).toBe(place === 'folder' ? 503 : largeCid)
    // From memory.
    expect(await read(server, account, cid)).toBe(cid)
    allow()
    expect((await upload(server, account, bytes)).status).toBe(200)
    expect(await read(server, account, largeCid)).toBe(largeCid)
    expect(storedCids(dataDir).toSorted()).toEqual([cid, largeCid, cidOfBlob(bytes).toString()].toSorted())
  },
)

test('killed at any instant with a bucket: what was answered is there, and no row is without its object', async () => {
  await using bucket = await startBucket()
  const dataDir = join(folder, 'killed-with-bucket')
  const answered: string[] = []
  let account: TestAccount | null = null
  for (let round = 0; round < 3; round++) {
    await using server = await start(dataDir, {}, inBucket(bucket))
    account ??= await createAccount(server, 'carol')
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    const uploads = Array.from({ length: 8 }, async (_, i) => {
      const bytes = randomBytes(i === 7 ? 9_000_000 : 20_000 + i * 20_000)
      const outcome = await upload(server, account!, bytes).catch(() => null)
      if (outcome?.status === 200) answered.push(cidOfBlob(bytes).toString())
      if (outcome === null || answered.length >= (round + 1) * 3) resolve()
    })
    await enough
    server.signal('SIGKILL')
    await Promise.all(uploads)
  }
  await using server = await start(dataDir, {}, inBucket(bucket))
  expect(answered.length).toBeGreaterThanOrEqual(9)
  for (const cid of answered) expect(await read(server, account!, cid)).toBe(cid)
  for (const cid of storedCids(dataDir))
    expect(cidOfBlob(bucket.read(`blobs/${cid.slice(7, 9)}/${cid}`)).toString()).toBe(cid)
})

test('killed between the object and its row: nobody has the blob, and its upload succeeds the next time', async () => {
  await using bucket = await startBucket()
  const dataDir = join(folder, 'killed-between')
  const bytes = randomBytes(1000)
  const cid = cidOfBlob(bytes).toString()
  let account: TestAccount
  {
    await using server = await start(dataDir, {}, inBucket(bucket))
    account = await createAccount(server, 'dave')
    bucket.intercept = ({ method }, response, key) => {
      if (method !== 'PUT' || !key.endsWith(cid)) return false
      // The object is stored, and the server never hears of it.
      response.end = (() => {
        server.signal('SIGKILL')
        return response
      }) as typeof response.end
      return false
    }
    expect(await upload(server, account, bytes).catch(() => null)).toBeNull()
    expect(bucket.keys()).toHaveLength(1)
  }
  bucket.intercept = null
  await using server = await start(dataDir, {}, inBucket(bucket))
  expect(storedCids(dataDir)).toEqual([])
  expect(await read(server, account, cid)).toBe(400)
  expect((await upload(server, account, bytes)).status).toBe(200)
  expect(await read(server, account, cid)).toBe(cid)
})
