/**
 * What the promises of the continuous backup cost: createRecord at 1 and at 64 clients, without a continuous backup,
 * with `async` and with `sync`, to a folder, and to a store that takes 25 ms for each object.
 *
 *     bun tests/bench/backup-promises.ts [--seconds 4] [--rounds 2] [--millis 25] [--only async,none]
 *
 * Linux only. The server runs from its source in a process of its own; clients and store are threads of this one.
 * Rounds alternate between the variants, and the best of each counts. Processor time is that of the server.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '2' },
    millis: { type: 'string', default: '25' },
    only: { type: 'string', default: 'none,async folder,sync folder,async store,sync store' },
  },
})
const SECONDS = Number(options.seconds)
const CLIENTS = 64

/** Objects that the store was sent. */
const stored = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
const store = new Worker(new URL('slow-store.ts', import.meta.url), {
  workerData: { millis: Number(options.millis), stored: stored.buffer },
})
const [storePort] = (await once(store, 'message')) as [number]
const password = 'password-123456'
const collection = 'app.bsky.feed.post'

async function post<T>(url: string, method: string, body: unknown, token?: string): Promise<T> {
  const response = await fetch(`${url}/xrpc/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method}: ${await response.text()}`)
  return (await response.json()) as T
}

interface Variant {
  name: string
  url: string
  pid: number
  accounts: { did: string; accessJwt: string }[]
  best: Record<number, { rate: number; processorMicros: number; objects: number }>
  stop(): Promise<void>
}

async function start(name: string): Promise<Variant> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-promises-'))
  const port = await freePort()
  const [promise, place] = name.split(' ')
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'dev'], {
    env: {
      ...process.env,
      PORT: String(port),
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      ...(place !== undefined && {
        SERVICE_BACKUP_CONTINUOUS: place === 'folder' ? join(folder, 'backup') : 's3://bench/backup-' + port,
        SERVICE_BACKUP_CONTINUOUS_PROMISE: promise!,
        SERVICE_BLOB_MIRROR_ENDPOINT: `http://127.0.0.1:${storePort}`,
        SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: 'key',
        SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: 'secret',
        SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
      }),
    },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const url = `http://localhost:${port}`
  await until(async () => (await fetch(`${url}/xrpc/_health`).catch(() => null))?.ok === true)
  const accounts = await Promise.all(
    Array.from({ length: CLIENTS }, (_, i) =>
      post<Variant['accounts'][number]>(url, 'com.atproto.server.createAccount', {
        handle: `writer${i}.test`,
        email: `writer${i}@example.com`,
        password,
      }),
    ),
  )
  if (place !== undefined)
    await until(async () => {
      const { continuousBackup: state } = (await (await fetch(`${url}/readyz`)).json()) as {
        continuousBackup: { promise: string; lagMillis: number }
      }
      return state.promise === promise && state.lagMillis === 0
    })
  return {
    name,
    url,
    pid: child.pid,
    accounts,
    best: {},
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}

const MICROS_PER_TICK = 10_000

/** Of all threads, also of those that have ended since. */
function processorMicros(pid: number): number {
  const [, fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user, system] = fields!.split(' ').slice(11, 13).map(Number) as [number, number]
  return (user + system) * MICROS_PER_TICK
}

async function measure(variant: Variant, clients: number, seconds: number): Promise<void> {
  const { url, pid, accounts } = variant
  const record = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: new Date().toISOString(),
  }
  let writes = 0
  const storedBefore = stored[0]!
  const before = processorMicros(pid)
  const since = performance.now()
  const end = since + seconds * 1000
  await Promise.all(
    accounts.slice(0, clients).map(async ({ did, accessJwt }) => {
      for (; performance.now() < end; writes++)
        await post(url, 'com.atproto.repo.createRecord', { repo: did, collection, record }, accessJwt)
    }),
  )
  const passed = (performance.now() - since) / 1000
  const found = {
    rate: writes / passed,
    processorMicros: (processorMicros(pid) - before) / writes,
    objects: (stored[0]! - storedBefore) / passed,
  }
  const best = variant.best[clients]
  variant.best[clients] = {
    rate: Math.max(found.rate, best?.rate ?? 0),
    processorMicros: Math.min(found.processorMicros, best?.processorMicros ?? Infinity),
    objects: Math.max(found.objects, best?.objects ?? 0),
  }
}

const variants: Variant[] = []
try {
  for (const name of options.only.split(',')) variants.push(await start(name))
  for (const variant of variants) await measure(variant, CLIENTS, SECONDS)
  for (const variant of variants) variant.best = {}
  for (let round = 0; round < Number(options.rounds); round++)
    for (const clients of [1, CLIENTS]) for (const variant of variants) await measure(variant, clients, SECONDS)
  console.log('variant, clients, writes a second, microseconds of processor time for each, objects a second')
  for (const { name, best } of variants)
    for (const [clients, { rate, processorMicros: micros, objects }] of Object.entries(best))
      console.log([name, clients, rate.toFixed(0), micros.toFixed(0), objects.toFixed(0)].join(', '))
} finally {
  for (const variant of variants) await variant.stop()
  await store.terminate()
}
