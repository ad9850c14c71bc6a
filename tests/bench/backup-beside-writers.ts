/**
 * What a backup costs the others: its time and memory, and the latency of writes and reads beside it.
 *
 *     bun tests/bench/backup-beside-writers.ts [MiB]
 *
 * Fills a server through its front door with so much data (1024 MiB if nothing is said; two thirds blobs, the rest
 * records with their events), then writes and reads at a fixed rate: with nothing else going on, beside a first backup,
 * which copies everything, and beside a second one, which finds the blobs there already. Ends with `verify` on a
 * restore.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount, type TestAccount } from '../support/clients/account.ts'
import { memoryMiB, peakMiBOf } from '../support/process-memory.ts'
import { readOutput } from '../support/servers/program.ts'

const MEBIBYTE = 1024 ** 2
const DATA_MIB = Number(process.argv[2] ?? 1024) || 0
const BLOB_BYTES = MEBIBYTE
const TEXT_CHARS = 1500
const RECORDS_PER_COMMIT = 200
/** A record is stored twice: in its repository, and in the event that carries it. */
const RECORD_COPIES = 2
const ACCOUNTS = 8
const WRITES_PER_SEC = 20
const READS_PER_SEC = 100
const IDLE_SECS = 15

const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const dataDir = join(folder, 'data')
const env = {
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: 'http://localhost:2583',
  SERVICE_PORT: '0',
  SERVICE_RATE_LIMIT_ENABLED: 'false',
  SERVICE_LOG_LEVEL: 'error',
}
const holdfast = (...words: string[]) => [
  process.execPath,
  join(import.meta.dir, '../../src/main.ts'),
  ...words,
  '--dev',
]

async function startServer() {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'dev'], {
    cwd: folder,
    env: { ...env, SERVICE_LOG_LEVEL: 'info' },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return { child, url: await readOutput(child.stdout, null).listening }
}

const text = (seed: number) =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(TEXT_CHARS / 2))).toString('hex') + seed

async function fill(accounts: TestAccount[]): Promise<string[]> {
  const blobs = Math.floor((DATA_MIB * 2) / 3)
  const commits = Math.floor((DATA_MIB * MEBIBYTE) / 3 / TEXT_CHARS / RECORD_COPIES / RECORDS_PER_COMMIT)
  const uris: string[] = []
  await Promise.all(
    accounts.map(async (account, lane) => {
      for (let i = lane; i < blobs; i += ACCOUNTS) {
        const bytes = new Uint8Array(BLOB_BYTES)
        for (let at = 0; at < BLOB_BYTES; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536))
        expectOk(
          await account.call('com.atproto.repo.uploadBlob', {
            method: 'POST',
            body: bytes,
            headers: { 'content-type': 'application/octet-stream' },
          }),
        )
      }
      for (let i = lane; i < commits; i += ACCOUNTS) {
        const writes = Array.from({ length: RECORDS_PER_COMMIT }, (_, n) => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection: 'org.example.note',
          value: { text: text(n) },
        }))
        const { body } = expectOk(
          await account.call('com.atproto.repo.applyWrites', { json: { repo: account.did, writes } }),
        )
        for (const { uri } of body.results) uris.push(uri)
      }
    }),
  )
  return uris
}

function expectOk<Answer extends { status: number; body: unknown }>(answer: Answer): Answer {
  if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

/** One request after another is due, whether or not those before are answered; latency counts from when it was due. */
function atRate(perSec: number, send: (i: number) => Promise<unknown>) {
  const millis: number[] = []
  let running = true
  const done = (async () => {
    const startedAt = performance.now()
    const pending: Promise<void>[] = []
    for (let i = 0; running; i++) {
      const due = startedAt + (i * 1000) / perSec
      const early = due - performance.now()
      if (early > 0) await Bun.sleep(early)
      pending.push(send(i).then(() => void millis.push(performance.now() - due)))
    }
    await Promise.all(pending)
  })()
  return async () => {
    running = false
    await done
    millis.sort((a, b) => a - b)
    const at = (share: number) =>
      Number(millis[Math.min(millis.length - 1, Math.floor(millis.length * share))]!.toFixed(1))
    return { count: millis.length, p50: at(0.5), p99: at(0.99), max: at(1) }
  }
}

async function run(words: string[], changes: Record<string, string> = {}) {
  const startedAt = performance.now()
  const child = Bun.spawn(holdfast(...words), {
    cwd: folder,
    env: { ...env, ...changes },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const [code, out, peak] = await Promise.all([child.exited, new Response(child.stdout).text(), peakMiBOf(child)])
  const { cpuTime } = child.resourceUsage()!
  return {
    code,
    secs: ((performance.now() - startedAt) / 1000).toFixed(1),
    cpuSecs: (Number(cpuTime.total) / 1e6).toFixed(1),
    peakMiB: Math.round(peak),
    said: out.trim(),
  }
}

const sizeMiB = (dir: string) =>
  Math.round(
    readdirSync(dir, { recursive: true }).reduce(
      (sum, name) => sum + (statSync(join(dir, String(name)), { throwIfNoEntry: false })?.size ?? 0),
      0,
    ) / MEBIBYTE,
  )

try {
  const { child, url } = await startServer()
  const accounts: TestAccount[] = []
  for (let i = 0; i < ACCOUNTS; i++) accounts.push(await createAccount({ url }, `person${i}`))
  const uris = await fill(accounts)
  console.log(
    `${sizeMiB(dataDir)} MiB in the data directory; ${WRITES_PER_SEC} writes/s and ${READS_PER_SEC} reads/s; milliseconds`,
  )

  const beside = async (work: () => Promise<unknown>) => {
    const writes = atRate(WRITES_PER_SEC, async (i) => {
      const account = accounts[i % ACCOUNTS]!
      expectOk(
        await account.call('com.atproto.repo.createRecord', {
          json: { repo: account.did, collection: 'org.example.note', record: { text: text(i) } },
        }),
      )
    })
    const reads = atRate(READS_PER_SEC, async (i) => {
      const [, , repo, collection, rkey] = uris[(i * 7919) % uris.length]!.split('/')
      const response = await fetch(
        `${url}/xrpc/com.atproto.repo.getRecord?repo=${repo}&collection=${collection}&rkey=${rkey}`,
      )
      if (response.status !== 200) throw new Error(`a read answered ${response.status}`)
      await response.arrayBuffer()
    })
    const worked = await work()
    return {
      worked,
      writes: await writes(),
      reads: await reads(),
      serverPeakMiB: Math.round(memoryMiB(child.pid, 'VmHWM')),
    }
  }
  console.log('idle', JSON.stringify(await beside(() => Bun.sleep(IDLE_SECS * 1000))))
  const place = join(folder, 'backups')
  console.log('first backup', JSON.stringify(await beside(() => run(['backup', place]))))
  console.log('second backup', JSON.stringify(await beside(() => run(['backup', place]))))
  child.kill()
  await child.exited
  console.log('restore', JSON.stringify(await run(['restore', place], { SERVICE_DATA_DIR: join(folder, 'restored') })))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
