/**
 * What the promises of the continuous backup cost: createRecord, without a continuous backup, with `async` and with
 * `sync`, to a folder, and to a store that takes 25 ms for each object.
 *
 *     bun tests/bench/backup-promises.ts [--seconds 4] [--pause 1] [--rounds 5] [--millis 25] [--clients 1,16x1,64]
 *       [--only 'none,async folder,none SERVICE_LOG_LEVEL=debug'] [--threads]
 *
 * Linux only. The server runs from its source in a process of its own; clients and store are threads of this one.
 * `16x1` are 16 clients that share one account; otherwise each has its own. The variants take turns, in the opposite
 * order every other round, with a pause after each in which its last segment is sent. Figures are medians, with the
 * least and the most. Each is also compared with the first variant in the same round: there the range is the one that
 * holds the true median in 19 of 20 measurements. Processor time is that of all threads of the server but those that
 * compile. `--threads` tells which had it, and the bytes that the server had written.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { medianOf, medianRange } from '../support/medians.ts'
import { freePort } from '../support/ports.ts'
import { publicService, ranBetween, threadsOf } from '../support/request-cost.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '5' },
    millis: { type: 'string', default: '25' },
    clients: { type: 'string', default: '1,64' },
    pause: { type: 'string', default: '1' },
    threads: { type: 'boolean', default: false },
    'warm-up': { type: 'string', default: '8' },
    only: { type: 'string', default: 'none,async folder,sync folder,async store,sync store' },
  },
})
const SECONDS = Number(options.seconds)
const WARM_UP_SECONDS = Number(options['warm-up'])
const PAUSE_MILLIS = Number(options.pause) * 1000

interface Load {
  name: string
  clients: number
  accounts: number
}
const LOADS = options.clients.split(',').map((name): Load => {
  const [clients, accounts] = name.split('x').map(Number) as [number, number?]
  return { name, clients, accounts: accounts ?? clients }
})
const MOST_ACCOUNTS = Math.max(...LOADS.map(({ accounts }) => accounts))

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
  /** By the load, one for each round. */
  found: Map<Load, Found[]>
  stop(): Promise<void>
}

async function start(name: string): Promise<Variant> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-promises-'))
  const port = await freePort()
  const words = name.split(' ')
  const [promise, place] = words.filter((word) => !word.includes('='))
  const variables = words.filter((word) => word.includes('=')).map((word) => word.split('='))
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'dev'], {
    env: {
      ...process.env,
      PORT: String(port),
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      ...publicService,
      ...Object.fromEntries(variables),
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
    Array.from({ length: MOST_ACCOUNTS }, (_, i) =>
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

async function measure(variant: Variant, load: Load, seconds: number): Promise<void> {
  const { url, pid, accounts } = variant
  const record = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: new Date().toISOString(),
  }
  let writes = 0
  const before = {
    stored: stored[0]!,
    time: threadsOf(pid),
    bytes: writtenBytes(pid),
    threads: threadMicros(pid),
  }
  const since = performance.now()
  const end = since + seconds * 1000
  await Promise.all(
    Array.from({ length: load.clients }, async (_, client) => {
      const { did, accessJwt } = accounts[client % load.accounts]!
      for (; performance.now() < end; writes++)
        await post(url, 'com.atproto.repo.createRecord', { repo: did, collection, record }, accessJwt)
    }),
  )
  const passed = (performance.now() - since) / 1000
  const time = ranBetween(before.time, threadsOf(pid))
  const found = {
    rate: writes / passed,
    processorMicros: (time.all - time.compilers) / writes,
    objects: (stored[0]! - before.stored) / passed,
    writtenKilobytes: (writtenBytes(pid) - before.bytes) / writes / 1000,
    threads: new Map(
      Array.from(threadMicros(pid), ([name, micros]) => [name, (micros - (before.threads.get(name) ?? 0)) / writes]),
    ),
  }
  variant.found.set(load, [...(variant.found.get(load) ?? []), found])
  await Bun.sleep(PAUSE_MILLIS)
}

const spreadOf = (values: readonly number[], digits = 0): string =>
  `${medianOf(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`

/** In percent, of what the first variant had in the same round. */
function against(values: readonly number[], first: readonly number[]): string {
  const more = values.map((value, round) => 100 * (value / first[round]! - 1))
  const [least, most] = medianRange(more)
  return `${medianOf(more).toFixed(1)} (${least.toFixed(1)} to ${most.toFixed(1)})`
}

const variants: Variant[] = []
try {
  for (const name of options.only.split(',')) variants.push(await start(name))
  for (const variant of variants) for (const load of LOADS) await measure(variant, load, WARM_UP_SECONDS / LOADS.length)
  for (const variant of variants) variant.found.clear()
  for (let round = 0; round < Number(options.rounds); round++)
    for (const load of LOADS)
      for (const variant of round % 2 === 0 ? variants : variants.toReversed()) await measure(variant, load, SECONDS)
  console.log(
    'variant, clients: writes a second; % more; microseconds of processor time for each; % more; objects a second',
  )
  for (const { name, found } of variants)
    for (const [load, rounds] of found) {
      const first = variants[0]!.found.get(load)!
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
      console.log(`${name}, ${load.name}: ${columns.join('; ')}`)
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
