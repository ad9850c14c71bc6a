/**
 * What the promises of the continuous backup cost: createRecord at 1 and at 64 clients, without a continuous backup,
 * with `async` and with `sync`, to a folder, and to a store that takes 25 ms for each object.
 *
 *     bun tests/bench/backup-promises.ts [--seconds 4] [--rounds 5] [--millis 25] [--clients 1,64]
 *       [--only 'none,async folder'] [--threads]
 *
 * Linux only. The server runs from its source in a process of its own; clients and store are threads of this one.
 * The variants take turns, in the opposite order every other round. Figures are medians, with the least and the most.
 * Each is also compared with the first variant in the same round. Processor time is that of all threads of the server.
 * `--threads` tells which had it, and the bytes that the server had written.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
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
    rounds: { type: 'string', default: '5' },
    millis: { type: 'string', default: '25' },
    clients: { type: 'string', default: '1,64' },
    threads: { type: 'boolean', default: false },
    'warm-up': { type: 'string', default: '8' },
    only: { type: 'string', default: 'none,async folder,sync folder,async store,sync store' },
  },
})
const SECONDS = Number(options.seconds)
const WARM_UP_SECONDS = Number(options['warm-up'])
const CLIENTS = options.clients.split(',').map(Number)
const MOST_CLIENTS = Math.max(...CLIENTS)

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

interface Found {
  rate: number
  /** For each write. */
  processorMicros: number
  /** For each second. */
  objects: number
  writtenKilobytes: number
  /** Processor time for each write of the threads of one name, in microseconds. */
  threads: Map<string, number>
}

interface Variant {
  name: string
  url: string
  pid: number
  accounts: { did: string; accessJwt: string }[]
  /** By the number of clients, one for each round. */
  found: Map<number, Found[]>
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
    Array.from({ length: MOST_CLIENTS }, (_, i) =>
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
    found: new Map(),
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

function threadMicros(pid: number): Map<string, number> {
  const found = new Map<string, number>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const textOf = (name: string) => readFileSync(`/proc/${pid}/task/${thread}/${name}`, 'utf8')
    const name =
      Number(thread) === pid
        ? 'main thread'
        : textOf('comm')
            .trim()
            .replace(/ ?\d+$/, '')
    found.set(name, (found.get(name) ?? 0) + Number(textOf('schedstat').split(' ')[0]) / 1000)
  }
  return found
}

const writtenBytes = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0)

async function measure(variant: Variant, clients: number, seconds: number): Promise<void> {
  const { url, pid, accounts } = variant
  const record = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: new Date().toISOString(),
  }
  let writes = 0
  const before = {
    stored: stored[0]!,
    micros: processorMicros(pid),
    bytes: writtenBytes(pid),
    threads: threadMicros(pid),
  }
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
    processorMicros: (processorMicros(pid) - before.micros) / writes,
    objects: (stored[0]! - before.stored) / passed,
    writtenKilobytes: (writtenBytes(pid) - before.bytes) / writes / 1000,
    threads: new Map(
      Array.from(threadMicros(pid), ([name, micros]) => [name, (micros - (before.threads.get(name) ?? 0)) / writes]),
    ),
  }
  variant.found.set(clients, [...(variant.found.get(clients) ?? []), found])
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

const spreadOf = (values: readonly number[], digits = 0): string =>
  `${medianOf(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`

/** In percent, of what the first variant had in the same round. */
const against = (values: readonly number[], first: readonly number[]): string =>
  spreadOf(
    values.map((value, round) => 100 * (value / first[round]! - 1)),
    1,
  )

const variants: Variant[] = []
try {
  for (const name of options.only.split(',')) variants.push(await start(name))
  for (const variant of variants)
    for (const clients of CLIENTS) await measure(variant, clients, WARM_UP_SECONDS / CLIENTS.length)
  for (const variant of variants) variant.found.clear()
  for (let round = 0; round < Number(options.rounds); round++)
    for (const clients of CLIENTS)
      for (const variant of round % 2 === 0 ? variants : variants.toReversed()) await measure(variant, clients, SECONDS)
  console.log(
    'variant, clients: writes a second; % more; microseconds of processor time for each; % more; objects a second',
  )
  for (const { name, found } of variants)
    for (const [clients, rounds] of found) {
      const first = variants[0]!.found.get(clients)!
      const rates = rounds.map(({ rate }) => rate)
      const micros = rounds.map(({ processorMicros: each }) => each)
      const columns = [
        spreadOf(rates),
        against(
          rates,
          first.map(({ rate }) => rate),
        ),
        spreadOf(micros),
        against(
          micros,
          first.map(({ processorMicros: each }) => each),
        ),
        spreadOf(rounds.map(({ objects }) => objects)),
      ]
      console.log(`${name}, ${clients}: ${columns.join('; ')}`)
      if (!options.threads) continue
      const names = Array.from(new Set(rounds.flatMap(({ threads }) => Array.from(threads.keys()))))
      for (const thread of names) {
        const each = rounds.map(({ threads }) => threads.get(thread) ?? 0)
        if (medianOf(each) >= 0.5) console.log(`    ${thread}: ${spreadOf(each)} µs`)
      }
      console.log(
        `    written: ${spreadOf(
          rounds.map(({ writtenKilobytes: each }) => each),
          1,
        )} kB for each`,
      )
    }
} finally {
  for (const variant of variants) await variant.stop()
  await store.terminate()
}
