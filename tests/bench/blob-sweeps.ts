/**
 * What the blob sweeps cost the others: memory, and the latency of reads beside them.
 *
 *     bun tests/bench/blob-sweeps.ts [rows]
 *
 * Fills a folder with so many blobs (100,000 if nothing is said), runs the real server on it with a bucket in this
 * process, and reads at a fixed rate: first with nothing else going on, then beside one pass of each sweep.
 */
import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cidOfBlob } from '../../src/protocol/cid.ts'
import { createAccount } from '../harness/account.ts'
import { bearer } from '../harness/http.ts'

const ROWS = Number(process.argv[2] ?? 100_000)
const BLOB_BYTES = 2048
/** A third of the accounts' blobs are past their grace. */
const EXPIRED_EVERY = 3
const OWNERS = 200
const READS_PER_SEC = 200
const IDLE_SECS = 10
const MAX_PASS_SECS = 240

const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
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
function startBucket() {
  const sizes = new Map<string, number>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      const key = decodeURIComponent(url.pathname.slice('/bench/'.length))
      if (request.method === 'PUT') sizes.set(key, (await request.arrayBuffer()).byteLength)
      if (request.method === 'DELETE') sizes.delete(key)
      if (!url.searchParams.has('list-type')) return new Response(null, { status: request.method === 'GET' ? 404 : 200, headers: { ETag: '"0"' } })
      const after = url.searchParams.get('continuation-token') ?? ''
      const keys = [...sizes.keys()].filter((one) => one > after).toSorted()
      const page = keys.slice(0, 1000)
      const more = keys.length > page.length
      const contents = page.map((one) => `<Contents><Key>${one}</Key><Size>${sizes.get(one)}</Size></Contents>`).join('')
      return new Response(
        `<?xml version="1.0"?><ListBucketResult><IsTruncated>${more}</IsTruncated>${more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''}${contents}</ListBucketResult>`,
        { headers: { 'content-type': 'application/xml' } },
      )
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, sizes, stop: () => server.stop(true) }
}

function fill(did: string): string[] {
  const db = new Database(join(dataDir, 'holdfast.db'))
  const blob = db.query('INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at) VALUES (?, ?, ?, ?, 0, ?)')
  const reference = db.query("INSERT INTO blob_reference (did, cid, record, rev) VALUES (?, ?, ?, '3k')")
  const own: string[] = []
  db.transaction(() => {
    const bytes = new Uint8Array(BLOB_BYTES)
    for (let i = 0; i < ROWS; i++) {
      new DataView(bytes.buffer).setUint32(0, i + 1)
      const cid = cidOfBlob(bytes).toString()
      const owner = i % OWNERS === 0 ? did : `did:plc:${String(i % OWNERS).padStart(24, 'a')}`
      const isExpired = i % EXPIRED_EVERY === 1
      const shard = join(dataDir, 'blobs', cid.slice(-2))
      mkdirSync(shard, { recursive: true })
      writeFileSync(join(shard, cid), bytes)
      blob.run(owner, cid, 'image/png', BLOB_BYTES, isExpired ? 1 : null)
      if (!isExpired) reference.run(owner, cid, `a.b.c/${i}`)
      if (owner === did && !isExpired) own.push(cid)
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

const bucket = startBucket()
const bucketEnv = { SERVICE_BLOB_MIRROR_ENDPOINT: bucket.url }
try {
  const first = await start({ SERVICE_BLOB_MIRROR_ENDPOINT: bucket.url })
  const account = await createAccount(first, 'alice')
  await first.stop()
  const own = fill(account.did)
  console.log(`${ROWS} rows of ${BLOB_BYTES} bytes; ${READS_PER_SEC} reads/s`)
  const idle = await start(bucketEnv)
  const warm = reader(idle.url, account.did, own)
  await Bun.sleep(3000)
  await warm()
  const reading = reader(idle.url, account.did, own)
  await Bun.sleep(IDLE_SECS * 1000)
  console.log('idle', await reading(), { rssMiB: rssMiB(idle.pid, 'VmRSS') })
  await idle.stop()

  for (const { name, key, of } of sweeps) {
    // The pass starts after this many seconds; until then reads warm up.
    const server = await start({ ...bucketEnv, [key]: '4' })
    await (async () => {
      const stopWarm = reader(server.url, account.did, own)
      await Bun.sleep(3000)
      await stopWarm()
    })()
    const before = rssMiB(server.pid, 'VmRSS')
    const stop = reader(server.url, account.did, own)
    const started = performance.now()
    let ranAt = 0
    while (ranAt === 0 && performance.now() - started < MAX_PASS_SECS * 1000) {
      await Bun.sleep(200)
      const metrics = await (await fetch(`${server.url}/metrics`, { headers: bearer('') })).text()
      ranAt = Number(new RegExp(`^${name}_last_run_timestamp(?:{[^}]*})? ([0-9.e+]+)`, 'm').exec(metrics)?.[1] ?? 0)
    }
    const secs = ((performance.now() - started) / 1000).toFixed(1)
    console.log(name, of ?? '', ranAt === 0 ? 'NOT FINISHED' : '', await stop(), { secs, rssBeforeMiB: before, rssPeakMiB: rssMiB(server.pid, 'VmHWM') })
    await server.stop()
  }
} finally {
  bucket.stop()
  rmSync(folder, { recursive: true, force: true })
}
