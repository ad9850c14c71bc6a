/**
 * What the blob sweeps cost the others: memory, and the latency of reads beside them.
 *
 *     bun tests/bench/blob-sweeps.ts [rows]
 *
 * Fills a folder with so many blobs (100,000 if nothing is said), runs the real server on it with a bucket in a process
 * of its own, and reads at a fixed rate: with nothing else going on, and beside one pass of each sweep.
 */
import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encode } from '../../src/protocol/cbor.ts'
import { cidOfBlob, cidOfCbor } from '../../src/protocol/cid.ts'
import { createAccount } from '../harness/account.ts'

const ROWS = Number(process.argv[2] ?? 100_000) || 0
const BLOB_BYTES = 2048
/** One in so many blobs is past its grace. */
const EXPIRED_EVERY = 3
const OWNERS = 200
const REV = '3k22222222222'
const READS_PER_SEC = 200
const WARM_SECS = 3
const IDLE_SECS = 9
const MAX_PASS_SECS = 600

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
  SERVICE_TELEMETRY_METRICS_REQUIRE_ADMIN: 'false',
  SERVICE_TELEMETRY_METRICS_ENABLED: 'true',
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
  stop(): Promise<void>
}

async function start(env: Record<string, string>): Promise<Server> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'dev'], { cwd: folder, env: { ...baseEnv, ...env }, stdout: 'pipe', stderr: 'inherit' })
  const listening = Promise.withResolvers<string>()
  void (async () => {
    let output = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      output = (output + chunk).slice(-10_000)
      const url = /\burl"?[=:]"?(http:[^\s",]+)/.exec(output)?.[1]
      if (url !== undefined) listening.resolve(url)
    }
    listening.reject(new Error(output))
  })()
  return {
    url: await listening.promise,
    pid: child.pid,
    async stop() {
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
      if (!url.searchParams.has('list-type')) return new Response(null, { status: request.method === 'GET' ? 404 : 200 })
      sorted ??= [...sizes.keys()].toSorted()
      const from = Number(url.searchParams.get('continuation-token') ?? 0)
      const page = sorted.slice(from, from + 1000)
      const next = from + page.length
      const contents = page.map((one) => `<Contents><Key>${one}</Key><Size>${sizes.get(one)}</Size></Contents>`).join('')
      return new Response(`<ListBucketResult><IsTruncated>${next < sorted.length}</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>${contents}</ListBucketResult>`)
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
  const blob = db.query('INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at) VALUES (?, ?, ?, ?, 0, ?)')
  const reference = db.query('INSERT INTO blob_reference (did, cid, record, rev) VALUES (?, ?, ?, ?)')
  /** Like the first one's: what a repository has beside its DID does not matter here. */
  const columns = db.query<{ name: string }, []>('PRAGMA table_info(repo)').all().map(({ name }) => name).filter((name) => name !== 'id' && name !== 'did')
  const repo = db.query<{ id: number }, [string, string]>(`INSERT INTO repo (did, ${columns}) SELECT ?, ${columns} FROM repo WHERE did = ? RETURNING id`)
  const record = db.query('INSERT INTO record (repo_id, path, cid, rev, indexed_at, value) VALUES (?, ?, ?, ?, 0, ?)')
  const owners = Array.from({ length: OWNERS }, (_, i) => (i === 0 ? did : `did:plc:${String(i).padStart(24, 'a')}`))
  const own: string[] = []
  db.transaction(() => {
    const repos = owners.map((owner, i) => (i === 0 ? db.query<{ id: number }, [string]>('SELECT id FROM repo WHERE did = ?').get(owner) : repo.get(owner, did))!.id)
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
      const value = encode({ $type: 'com.example.picture', text: 'x'.repeat(200), image: { $type: 'blob', ref, mimeType: 'image/png', size: BLOB_BYTES } })
      record.run(repos[i % OWNERS]!, path, cidOfCbor(value).bytes, REV, value)
      reference.run(owner, cid, path, REV)
      if (owner === did) own.push(cid)
    }
  })()
  db.close()
  return own
}

/** Reads at a fixed rate until told to stop; latency counts from when a read was due. */
function reader(url: string, did: string, cids: string[]) {
  const millis: number[] = []
  let running = true
  const done = (async () => {
    const started = performance.now()
    const pending = new Set<Promise<void>>()
    for (let i = 0; running; i++) {
      const due = started + (i * 1000) / READS_PER_SEC
      const wait = due - performance.now()
      if (wait > 0) await Bun.sleep(wait)
      const one = fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cids[i % cids.length]}`).then(async (response) => {
        await response.arrayBuffer()
        if (!response.ok) throw new Error(`a read answered ${response.status}`)
        millis.push(performance.now() - due)
        pending.delete(one)
      })
      pending.add(one)
    }
    await Promise.all(pending)
  })()
  return async () => {
    running = false
    await done
    const sorted = millis.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(2)
    return { reads: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
  }
}

const rssMiB = (pid: number, field: 'VmRSS' | 'VmHWM') => Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024)

const sweeps = [
  { name: 'blob_scrub', key: 'SERVICE_BLOB_SCRUB_INTERVAL_SECS' },
  { name: 'blob_mirror', key: 'SERVICE_BLOB_MIRROR_SYNC_INTERVAL_SECS', of: 'first copy' },
  { name: 'blob_mirror', key: 'SERVICE_BLOB_MIRROR_SYNC_INTERVAL_SECS', of: 'nothing to copy' },
  { name: 'blob_gc', key: 'SERVICE_BLOBS_GC_INTERVAL_SECS' },
]

async function run(): Promise<void> {
  const bucket = await startBucket()
  const bucketEnv = { SERVICE_BLOB_MIRROR_ENDPOINT: bucket.url }
  try {
    const first = await start(bucketEnv)
    const account = await createAccount(first, 'alice')
    await first.stop()
    const own = fill(account.did)
    console.log(`${ROWS} rows of ${BLOB_BYTES} bytes, ${READS_PER_SEC} reads/s, milliseconds`)
    for (const { name, key, of } of sweeps) {
      const server = await start({ ...bucketEnv, [key]: String(WARM_SECS + IDLE_SECS) })
      const during = async (work: () => Promise<unknown>) => {
        const stop = reader(server.url, account.did, own)
        await work()
        return stop()
      }
      await during(() => Bun.sleep(WARM_SECS * 1000))
      const idle = await during(() => Bun.sleep((IDLE_SECS - 1) * 1000))
      const before = rssMiB(server.pid, 'VmRSS')
      const started = performance.now()
      const beside = await during(() => passOf(server, name))
      const secs = ((performance.now() - started) / 1000).toFixed(1)
      console.log(JSON.stringify({ sweep: `${name}${of ? ` (${of})` : ''}`, secs, idle, beside, rssBeforeMiB: before, rssPeakMiB: rssMiB(server.pid, 'VmHWM') }))
      await server.stop()
    }
  } finally {
    bucket.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function passOf({ url }: Server, name: string): Promise<void> {
  const pattern = new RegExp(`^${name}_last_run_timestamp(?:{[^}]*})? ([0-9.e+]+)`, 'm')
  const deadline = performance.now() + MAX_PASS_SECS * 1000
  while (performance.now() < deadline) {
    await Bun.sleep(200)
    const text = await (await fetch(`${url}/metrics`)).text()
    if (Number(pattern.exec(text)?.[1] ?? 0) > 0) return
  }
  throw new Error(`${name} did not finish in ${MAX_PASS_SECS} s`)
}

if (process.argv[2] === 'bucket') serveBucket()
else await run()
