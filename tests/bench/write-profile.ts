/**
 * What a createRecord costs the server at 64 accounts, 64 at a time: processor time of all threads, pages written to
 * the log by table, memory that the collector has to see to, and where the time goes.
 *
 *     bun tests/bench/write-profile.ts [--records 1000] [--rounds 10] [--server FOLDER] [--functions]
 *
 * Linux only. The server runs from its source, in a process of its own, from FOLDER if that is given: compare two
 * versions by turns, and take the least of each. Figures of a machine that also does other work are too high, never
 * too low, except for pages and memory, which do not depend on it.
 *
 * The runtime compiles hot functions on threads of its own. The warm-up ends when these threads take less than a
 * twentieth of the time of the main thread.
 */
import { Database as Connection } from 'bun:sqlite'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../support/ports.ts'
import { countedGarbage, garbageIn, publicService, ranBetween, threadsOf, warmUp } from '../support/request-cost.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    records: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '10' },
    server: { type: 'string', default: join(import.meta.dir, '../..') },
    functions: { type: 'boolean', default: false },
  },
})
const RECORDS = Number(options.records)
const ROUNDS = Number(options.rounds)
const ACCOUNTS = 64
const BATCH = 200
/** Requests of each account between two looks at the counters. */
const EACH = 10
/** A log begins with this many bytes, and each of its pages with a head. */
const LOG_HEAD_BYTES = 32
const FRAME_BYTES = 4096 + 24
/** Where the log says how often it has begun anew. */
const LOG_BEGINNING = 12
const FUNCTIONS = 40
const collection = 'app.bsky.feed.post'

interface Account {
  did: string
  accessJwt: string
}

interface Server {
  url: string
  pid: number
  folder: string
  /** What the runtime has said about its collections since the last call. */
  collections(): string
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

async function startServer(more: Record<string, string>, flags: string[] = []): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-writes-'))
  const port = await freePort()
  const child = Bun.spawn([process.execPath, ...flags, join(options.server, 'src/main.ts'), 'dev'], {
    cwd: options.server,
    env: {
      ...process.env,
      SERVICE_DATA_DIR: folder,
      PORT: String(port),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      ...publicService,
      ...more,
    },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  let said = ''
  void (async () => {
    for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) if (more.BUN_JSC_logGC) said += piece
  })()
  const url = `http://localhost:${port}`
  await until(async () => (await fetch(`${url}/xrpc/_health`).catch(() => null))?.ok === true)
  const stop = async () => {
    child.kill('SIGINT')
    await child.exited
  }
  return {
    url,
    folder,
    pid: child.pid,
    collections() {
      const taken = said
      said = ''
      return taken
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(folder, { recursive: true })
    },
  }
}

async function post<T>({ url }: Server, method: string, body: unknown, token?: string): Promise<T> {
  const response = await fetch(`${url}/xrpc/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method}: ${await response.text()}`)
  return (await response.json()) as T
}

const note = () => ({
  $type: collection,
  text: 'a post of a usual length, '.repeat(10),
  createdAt: new Date().toISOString(),
  langs: ['en'],
})

/** Accounts with records. */
async function makeAccounts(server: Server): Promise<Account[]> {
  return Promise.all(
    Array.from({ length: ACCOUNTS }, async (_, i) => {
      const account = await post<Account>(server, 'com.atproto.server.createAccount', {
        handle: `writer${i}.test`,
        email: `writer${i}@example.com`,
        password: 'password-123456',
      })
      for (let written = 0; written < RECORDS; written += BATCH) {
        const writes = Array.from({ length: Math.min(BATCH, RECORDS - written) }, () => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection,
          value: note(),
        }))
        await post(server, 'com.atproto.repo.applyWrites', { repo: account.did, writes }, account.accessJwt)
      }
      return account
    }),
  )
}

const create = (server: Server, { did, accessJwt }: Account) =>
  post(server, 'com.atproto.repo.createRecord', { repo: did, collection, record: note() }, accessJwt)

/** Every account writes `EACH` records, one after another. */
async function writeAll(server: Server, accounts: readonly Account[]): Promise<void> {
  const write = async (account: Account) => {
    for (let i = 0; i < EACH; i++) await create(server, account)
  }
  await Promise.all(accounts.map(write))
}

interface LogEnd {
  beginning: number
  pages: number
}

/** Reads which pages were written to the log of a server. */
class LogReader {
  readonly #connection: Connection
  readonly #path: string

  constructor({ folder }: Server) {
    this.#connection = new Connection(join(folder, 'holdfast.db'), { readonly: true })
    this.#path = join(folder, 'holdfast.db-wal')
  }

  /** Where the log ends: how often it has begun anew, and how many pages it has since. */
  end(): LogEnd {
    const { log } = this.#connection.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!
    return { beginning: this.#read([LOG_BEGINNING])[0]!, pages: log }
  }

  /** Numbers of the pages between two ends of the log; null if it began anew in between. */
  pages(from: LogEnd, to: LogEnd): number[] | null {
    if (to.beginning !== from.beginning) return null
    return this.#read(
      Array.from({ length: to.pages - from.pages }, (_, i) => LOG_HEAD_BYTES + (from.pages + i) * FRAME_BYTES),
    )
  }

  #read(places: readonly number[]): number[] {
    const log = openSync(this.#path, 'r')
    const number = Buffer.alloc(4)
    try {
      return places.map((place) => {
        readSync(log, number, 0, number.length, place)
        return number.readUInt32BE()
      })
    } finally {
      closeSync(log)
    }
  }

  /** The table or index of each page. */
  names(): Map<number, string> {
    const rows = this.#connection.query<{ page: number; name: string }, []>('SELECT pageno AS page, name FROM dbstat')
    return new Map(rows.all().map(({ page, name }) => [page, name]))
  }
}

async function measureTime(): Promise<void> {
  await using server = await startServer({})
  const accounts = await makeAccounts(server)
  await warmUp(server.pid, () => writeAll(server, accounts))
  const log = new LogReader(server)
  const times: { main: number; all: number }[] = []
  const byTable = new Map<string, number>()
  let counted = 0
  const numbers: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const from = log.end()
    const before = threadsOf(server.pid)
    await writeAll(server, accounts)
    const ran = ranBetween(before, threadsOf(server.pid))
    const written = log.pages(from, log.end())
    const commits = ACCOUNTS * EACH
    times.push({ main: ran.main / commits, all: ran.all / commits })
    if (written === null) continue
    counted += commits
    numbers.push(...written)
  }
  const names = log.names()
  for (const page of numbers) {
    const name = names.get(page) ?? 'a page that is free by now'
    byTable.set(name, (byTable.get(name) ?? 0) + 1)
  }
  const least = (part: 'main' | 'all') => Math.min(...times.map((time) => time[part])).toFixed(0)
  console.log(
    `| µs of all threads, least of ${ROUNDS} | ${least('all')} |\n| of them the main thread | ${least('main')} |`,
  )
  console.log(`| pages of the log | ${(numbers.length / counted).toFixed(2)} |`)
  for (const [name, count] of [...byTable].sort(([, a], [, b]) => b - a))
    if (count / counted >= 0.03) console.log(`| of them \`${name}\` | ${(count / counted).toFixed(2)} |`)
  await server.stop()
}

async function measureMemory(): Promise<void> {
  await using server = await startServer(countedGarbage)
  const accounts = await makeAccounts(server)
  await warmUp(server.pid, () => writeAll(server, accounts))
  server.collections()
  for (let round = 0; round < ROUNDS; round++) await writeAll(server, accounts)
  const kilobytes = garbageIn(server.collections())
  console.log(`| kB allocated | ${(kilobytes / (ACCOUNTS * EACH * ROUNDS)).toFixed(1)} |`)
}

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  samples: number[]
  timeDeltas: number[]
}

/** Shares of the main thread's time by function; what the runtime does counts for the function that called it. */
async function measureFunctions(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-profile-'))
  await using server = await startServer({}, ['--cpu-prof', '--cpu-prof-interval=250', `--cpu-prof-dir=${folder}`])
  const accounts = await makeAccounts(server)
  await warmUp(server.pid, () => writeAll(server, accounts))
  const startedAt = performance.now()
  for (let round = 0; round < ROUNDS; round++) await writeAll(server, accounts)
  const endedAt = performance.now()
  await server.stop()
  const [writing, ending] = [(endedAt - startedAt) * 1000, (performance.now() - endedAt) * 1000]
  const profile = JSON.parse(readFileSync(join(folder, readdirSync(folder)[0]!), 'utf8')) as Profile
  rmSync(folder, { recursive: true })
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]))
  const callers = new Map(profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const shares = new Map<string, number>()
  let measured = 0
  let ago = 0
  for (let i = profile.samples.length - 1; i >= 0 && ago < ending + writing; i--) {
    ago += profile.timeDeltas[i]!
    if (ago <= ending) continue
    let at: number | undefined = profile.samples[i]!
    while (at !== undefined && !nodes.get(at)?.url.includes('/src/')) at = callers.get(at)
    const { functionName, url } = nodes.get(at ?? profile.samples[i]!)!
    const name = at === undefined ? 'the runtime itself' : `\`${functionName}\` in \`${url.split('/src/')[1]}\``
    shares.set(name, (shares.get(name) ?? 0) + profile.timeDeltas[i]!)
    measured += profile.timeDeltas[i]!
  }
  for (const [name, share] of [...shares].sort(([, a], [, b]) => b - a).slice(0, FUNCTIONS))
    console.log(`| ${name} | ${((100 * share) / measured).toFixed(1)} % |`)
}

console.log(`| createRecord, ${ACCOUNTS} accounts of ${RECORDS.toLocaleString('en')} records | |\n| --- | ---: |`)
await measureTime()
await measureMemory()
if (options.functions) await measureFunctions()
