/**
 * What the promises of the continuous backup cost: createRecord at 1 and at 64 clients, without a continuous backup,
 * with `async` and with `sync`, to a folder, and to a store that takes 25 ms for each object.
 *
 *     bun tests/bench/backup-promises.ts [--seconds 4] [--rounds 2] [--millis 25] [--only async,none]
 *
 * Linux only. The server runs from its source in a process of its own; clients and store are in this one. Rounds
 * alternate between the variants, and the best of each counts. Processor time is that of the server.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
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

/** An S3 store in memory. It answers as the large ones do, after a while. */
function startStore(millis: number) {
  const objects = new Map<string, Uint8Array<ArrayBuffer>>()
  const tagOf = (bytes: Uint8Array) => `"${new Bun.CryptoHasher('md5').update(bytes).digest('hex')}"`
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      const key = url.pathname
      const found = objects.get(key)
      if (request.method === 'PUT') {
        const bytes = new Uint8Array(await request.arrayBuffer())
        await Bun.sleep(millis)
        const match = request.headers.get('if-match')
        if (request.headers.get('if-none-match') === '*' && objects.has(key)) return new Response(null, { status: 412 })
        if (match !== null && (found === undefined || tagOf(found) !== match))
          return new Response(null, { status: 412 })
        objects.set(key, bytes)
        return new Response(null, { headers: { etag: tagOf(bytes) } })
      }
      if (url.searchParams.has('list-type'))
        return new Response('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
      if (request.method === 'DELETE') objects.delete(key)
      if (found === undefined) return new Response(null, { status: request.method === 'DELETE' ? 204 : 404 })
      return new Response(found, { headers: { etag: tagOf(found) } })
    },
  })
}

const store = startStore(Number(options.millis))
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
  best: Record<number, { rate: number; processorMicros: number }>
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
        SERVICE_BLOB_MIRROR_ENDPOINT: `http://127.0.0.1:${store.port}`,
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

function processorMicros(pid: number): number {
  let micros = 0
  for (const thread of readdirSync(`/proc/${pid}/task`))
    micros += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1000
  return micros
}

async function measure(variant: Variant, clients: number, seconds: number): Promise<void> {
  const { url, pid, accounts } = variant
  const record = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: new Date().toISOString(),
  }
  let writes = 0
  const before = processorMicros(pid)
  const since = performance.now()
  const end = since + seconds * 1000
  await Promise.all(
    accounts.slice(0, clients).map(async ({ did, accessJwt }) => {
      for (; performance.now() < end; writes++)
        await post(url, 'com.atproto.repo.createRecord', { repo: did, collection, record }, accessJwt)
    }),
  )
  const rate = writes / ((performance.now() - since) / 1000)
  const found = { rate, processorMicros: (processorMicros(pid) - before) / writes }
  const best = variant.best[clients]
  variant.best[clients] = {
    rate: Math.max(rate, best?.rate ?? 0),
    processorMicros: Math.min(found.processorMicros, best?.processorMicros ?? Infinity),
  }
}

const variants: Variant[] = []
try {
  for (const name of options.only.split(',')) variants.push(await start(name))
  for (const variant of variants) await measure(variant, CLIENTS, SECONDS)
  for (const variant of variants) variant.best = {}
  for (let round = 0; round < Number(options.rounds); round++)
    for (const clients of [1, CLIENTS]) for (const variant of variants) await measure(variant, clients, SECONDS)
  console.log('variant, clients, writes a second, microseconds of processor time for each')
  for (const { name, best } of variants)
    for (const [clients, { rate, processorMicros: micros }] of Object.entries(best))
      console.log([name, clients, rate.toFixed(0), micros.toFixed(0)].join(', '))
} finally {
  for (const variant of variants) await variant.stop()
  await store.stop(true)
}
