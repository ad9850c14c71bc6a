/**
 * What the blob sweeps cost the others: memory, and the latency of reads beside them.
 *
 *     bun tests/bench/blob-sweeps.ts [rows]
 *
 * Fills a folder with so many blobs (100,000 if nothing is said), runs the real server on it with a bucket in a process
 * of its own, and reads at a fixed rate: with nothing else going on, beside one pass of each sweep, and afterwards.
 *
 * A p99 is the median of those of windows of a few seconds, so that what else the machine does weighs less. Beside it
 * stands what does not depend on the machine's other work: how often the event loop was held, in time of its processor.
 */
import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encode } from '../../src/protocol/cbor.ts'
import { cidOfBlob, cidOfCbor } from '../../src/protocol/cid.ts'
import { createAccount } from '../support/clients/account.ts'
import { bearer } from '../support/clients/http.ts'
import type { LoopStalls } from './loop-stalls.ts'
import { memoryMiB } from '../support/process-memory.ts'
import { readOutput } from '../support/servers/program.ts'

const ROWS = Number(process.argv[2] ?? 100_000) || 0
const BLOB_BYTES = 2048
/** One in so many blobs is past its grace. */
const EXPIRED_EVERY = 3
const OWNERS = 200
const REV = '3k22222222222'
const READS_PER_SEC = 200
const WARM_SECS = 3
const WINDOW_SECS = 3
/** Before a pass, and again after it. */
const IDLE_WINDOWS = 3
const ADMIN_TOKEN = 'bench-admin-token-of-more-than-32-characters'

const folder = process.argv[2] === 'bucket' ? '' : mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const dataDir = join(folder, 'data')
const never = '2000000'
const baseEnv = {
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: 'http://localhost:2583',
  SERVICE_PORT: '0',
  SERVICE_RATE_LIMIT_ENABLED: 'false',
  SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  SERVICE_BLOBS_GC_INTERVAL_SECS: never,
  SERVICE_BLOB_MIRROR_SYNC_INTERVAL_SECS: never,
  SERVICE_BLOB_SCRUB_INTERVAL_SECS: never,
  SERVICE_BLOB_MIRROR_BUCKET: 'bench',
  SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: 'bench',
  SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: 'bench',
  SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
}

interface Server {
  url: string
  pid: number
  /** What held its event loop since the last call. */
  stalls(): Promise<LoopStalls>
  stop(): Promise<void>
}

async function start(env: Record<string, string>): Promise<Server> {
  let answer = Promise.withResolvers<LoopStalls>()
  const child = Bun.spawn(
    [
      process.execPath,
      '--preload',
      join(import.meta.dir, 'loop-stalls.ts'),
      join(import.meta.dir, '../../src/main.ts'),
      'dev',
    ],
    {
      cwd: folder,
      env: { ...baseEnv, ...env },
      stdout: 'pipe',
      stderr: 'inherit',
      ipc: (stalls: LoopStalls) => answer.resolve(stalls),
    },
  )
  return {
    url: await readOutput(child.stdout, null).listening,
    pid: child.pid,
    stalls() {
      answer = Promise.withResolvers()
      child.send('stalls')
      return answer.promise
    },
    async stop() {
      child.disconnect()
      child.kill()
      await child.exited
    },
  }
}

/** As much of S3 as the mirror speaks; contents are counted and dropped. */
function serveBucket(): void {
  const sizes = new Map<string, number>()
  let sorted: string[] | null = null
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      const key = decodeURIComponent(url.pathname.slice('/bench/'.length))
      if (request.method !== 'GET') sorted = null
      if (request.method === 'PUT') sizes.set(key, (await request.arrayBuffer()).byteLength)
      if (request.method === 'DELETE') sizes.delete(key)
      if (!url.searchParams.has('list-type'))
        return new Response(null, { status: request.method === 'GET' ? 404 : 200 })
      sorted ??= [...sizes.keys()].toSorted()
      const from = Number(url.searchParams.get('continuation-token') ?? 0)
      const page = sorted.slice(from, from + Number(url.searchParams.get('max-keys')))
      const next = from + page.length
      const contents = page
        .map((one) => `<Contents><Key>${one}</Key><Size>${sizes.get(one)}</Size></Contents>`)
        .join('')
      return new Response(
        `<ListBucketResult><IsTruncated>${next < sorted.length}</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>${contents}</ListBucketResult>`,
      )
    },
  })
  console.log(`http://127.0.0.1:${server.port}`)
}

async function startBucket(): Promise<{ url: string; stop(): void }> {
  const child = Bun.spawn([process.execPath, import.meta.path, 'bucket'], { stdout: 'pipe', stderr: 'inherit' })
  for await (const chunk of child.stdout) return { url: Buffer.from(chunk).toString().trim(), stop: () => child.kill() }
  throw new Error('the bucket did not start')
}

/** Blobs of many accounts with the records that point at them; what is past its grace has none. */
function fill(did: string): string[] {
  const db = new Database(join(dataDir, 'holdfast.db'))
  const blob = db.query(
    'INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at) VALUES (?, ?, ?, ?, 0, ?)',
  )
  const reference = db.query('INSERT INTO blob_reference (did, cid, record, rev) VALUES (?, ?, ?, ?)')
  /** Like the first one's: what a repository has beside its DID does not matter here. */
  const columns = db
    .query<{ name: string }, []>('PRAGMA table_info(repo)')
    .all()
    .map(({ name }) => name)
    .filter((name) => name !== 'id' && name !== 'did')
  const repo = db.query<{ id: number }, [string, string]>(
    `INSERT INTO repo (did, ${columns}) SELECT ?, ${columns} FROM repo WHERE did = ? RETURNING id`,
  )
  const record = db.query('INSERT INTO record (repo_id, path, cid, rev, indexed_at, value) VALUES (?, ?, ?, ?, 0, ?)')
  const owners = Array.from({ length: OWNERS }, (_, i) => (i === 0 ? did : `did:plc:${String(i).padStart(24, 'a')}`))
  const own: string[] = []
  db.transaction(() => {
    const repos = owners.map(
      (owner, i) =>
        (i === 0
          ? db.query<{ id: number }, [string]>('SELECT id FROM repo WHERE did = ?').get(owner)
          : repo.get(owner, did))!.id,
    )
    const bytes = new Uint8Array(BLOB_BYTES)
    for (let i = 0; i < ROWS; i++) {
      new DataView(bytes.buffer).setUint32(0, i + 1)
      const ref = cidOfBlob(bytes)
      const cid = ref.toString()
      const owner = owners[i % OWNERS]!
      const isExpired = i % EXPIRED_EVERY === 1
      const shard = join(dataDir, 'blobs', cid.slice(-2))
      mkdirSync(shard, { recursive: true })
      writeFileSync(join(shard, cid), bytes)
      // Uploads of many accounts become due in the order they came.
      blob.run(owner, cid, 'image/png', BLOB_BYTES, isExpired ? i : null)
      if (isExpired) continue
      const path = `com.example.picture/${i}`
      const value = encode({
        $type: 'com.example.picture',
        text: 'x'.repeat(200),
        image: { $type: 'blob', ref, mimeType: 'image/png', size: BLOB_BYTES },
      })
      record.run(repos[i % OWNERS]!, path, cidOfCbor(value).bytes, REV, value)
      reference.run(owner, cid, path, REV)
      if (owner === did) own.push(cid)
    }
  })()
  db.close()
  return own
}

interface Read {
  dueAt: number
  millis: number
}

/** Reads at a fixed rate until told to stop; latency counts from when a read was due. */
function reader(url: string, did: string, cids: string[]): () => Promise<Read[]> {
  const reads: Read[] = []
  let running = true
  const done = (async () => {
    const started = performance.now()
    const pending = new Set<Promise<void>>()
    for (let i = 0; running; i++) {
      const dueAt = started + (i * 1000) / READS_PER_SEC
      const wait = dueAt - performance.now()
      if (wait > 0) await Bun.sleep(wait)
      const one = fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cids[i % cids.length]}`).then(
        async (response) => {
          await response.arrayBuffer()
          if (!response.ok) throw new Error(`a read answered ${response.status}`)
          reads.push({ dueAt, millis: performance.now() - dueAt })
          pending.delete(one)
        },
      )
      pending.add(one)
    }
    await Promise.all(pending)
  })()
  return async () => {
    running = false
    await done
    return reads
  }
}

const at = (share: number, values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!
const rounded = (value: number) => Number(value.toFixed(2))

/** p99 is the median of windows. */
function latencies(reads: Read[]) {
  const millis = reads.map((read) => read.millis)
  const windows = [...Map.groupBy(reads, ({ dueAt }) => Math.floor(dueAt / (WINDOW_SECS * 1000))).values()]
  // What is left at either end is no window.
  const whole = windows.filter((window) => window.length >= (WINDOW_SECS * READS_PER_SEC) / 2)
  const p99 = at(
    0.5,
    (whole.length > 0 ? whole : [reads]).map((window) =>
      at(
        0.99,
        window.map((read) => read.millis),
      ),
    ),
  )
  return {
    p50: rounded(at(0.5, millis)),
    p99: rounded(p99),
    p99OfAll: rounded(at(0.99, millis)),
    max: rounded(at(1, millis)),
  }
}

const passes = [
  { sweep: 'blob-scrub' },
  { sweep: 'blob-mirror', of: 'first copy' },
  { sweep: 'blob-mirror', of: 'nothing to copy' },
  { sweep: 'blob-gc' },
]

async function run(): Promise<void> {
  const bucket = await startBucket()
  const env = { SERVICE_BLOB_MIRROR_ENDPOINT: bucket.url }
  try {
    const first = await start(env)
    const account = await createAccount(first, 'alice')
    await first.stop()
    const own = fill(account.did)
    console.log(`${ROWS} rows of ${BLOB_BYTES} bytes, ${READS_PER_SEC} reads/s, milliseconds`)
    for (const { sweep, of = '' } of passes) {
      const server = await start(env)
      const during = async (work: () => Promise<unknown>) => {
        const stop = reader(server.url, account.did, own)
        await server.stalls()
        const started = performance.now()
        const result = await work()
        const secs = (performance.now() - started) / 1000
        const stalls = await server.stalls()
        return { reads: await stop(), stalls, secs, result }
      }
      await during(() => Bun.sleep(WARM_SECS * 1000))
      const idle = () => during(() => Bun.sleep(IDLE_WINDOWS * WINDOW_SECS * 1000))
      const before = await idle()
      const rssBeforeMiB = Math.round(memoryMiB(server.pid, 'VmRSS'))
      const beside = await during(() => onePass(server, sweep))
      const rssPeakMiB = Math.round(memoryMiB(server.pid, 'VmHWM'))
      const after = await idle()
      const idleFigures = latencies([...before.reads, ...after.reads])
      const besideFigures = latencies(beside.reads)
      const ratio = rounded(besideFigures.p99 / idleFigures.p99)
      console.log(
        `${sweep} ${of}: p99 ${idleFigures.p99} → ${besideFigures.p99} (${ratio}x), ${beside.secs.toFixed(1)} s, ${rssBeforeMiB} → ${rssPeakMiB} MiB, ${JSON.stringify(beside.result)}`,
      )
      console.log(`  idle    ${JSON.stringify({ ...idleFigures, ...before.stalls })}`)
      console.log(`  beside  ${JSON.stringify({ ...besideFigures, ...beside.stalls })}`)
      await server.stop()
    }
  } finally {
    bucket.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The report of the sweep. */
async function onePass({ url }: Server, sweep: string): Promise<unknown> {
  const response = await fetch(`${url}/v1/admin/sweeps/${sweep}/run`, {
    method: 'POST',
    headers: bearer(ADMIN_TOKEN),
    timeout: false,
  } as RequestInit)
  if (!response.ok) throw new Error(`${sweep} answered ${response.status} ${await response.text()}`)
  return response.json()
}

if (process.argv[2] === 'bucket') serveBucket()
else await run()
