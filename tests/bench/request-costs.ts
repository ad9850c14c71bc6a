/**
 * What a request costs the server: processor time of all its threads, and garbage. Linux only.
 *
 *     bun tests/bench/request-costs.ts [--rounds 8] [--server FOLDER] [--only TEXT] [--functions FOLDER]
 *
 * 32 requests are under way at once, on connections that are kept. The server runs from its source, in a process of its
 * own, from another FOLDER if one is given: compare two versions by turns. Each figure is the least of the rounds,
 * after the runtime has stopped compiling: figures of a machine that also does other work are too high, never too low.
 * Garbage does not depend on the machine. `--only` leaves out rows without the text; `--functions` writes a profile.
 *
 * With one reader, what the main thread does not take is nearly all the reader's: the two of them answer as many
 * requests as the busier one can, if the clients run elsewhere.
 *
 * The service that requests are forwarded to is in the process of the clients, compresses its pages as AppViews do, and
 * has indexed all that callers wrote. Other responses are not compressed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { serverCertificate, serverKey } from '../support/certificates.ts'
import { createAccount, type TestAccount } from '../support/clients/account.ts'
import { bearer } from '../support/clients/http.ts'
import { startMeasuredAppview, streamedMethod } from '../support/measured-appview.ts'
import { freePort } from '../support/ports.ts'
import { countedGarbage, garbageIn, publicService, ranBetween, threadsOf, warmUp } from '../support/request-cost.ts'
import { testDatabase } from '../support/servers/postgres.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '8' },
    server: { type: 'string', default: join(import.meta.dir, '../..') },
    only: { type: 'string', default: '' },
    functions: { type: 'string' },
  },
})
const ROUNDS = Number(options.rounds)
const AT_ONCE = 32
const ACCOUNTS = 32
const RECORDS = 100
/** Requests between two looks at the counters. */
const BATCH = 1500
const collection = 'app.bsky.feed.post'

/** The service that requests are forwarded to. */
const appview = startMeasuredAppview()

interface Server {
  url: string
  pid: number
  people: TestAccount[]
  /** What the runtime has said about its collections since the last call. */
  collections(): string
}

type Ask = (
  server: Server,
  person: TestAccount,
) => [path: string, init?: { method?: string; headers?: Record<string, string>; body?: string }]

const as = ({ accessJwt }: TestAccount) => ({ headers: bearer(accessJwt) })
const note = { $type: collection, text: 'a post of a usual length, '.repeat(10), createdAt: '2026-01-01T00:00:00.000Z' }
const rkey = '3jzfcijpj2z2a'

const getRecord: Ask = (_, { did }) => [`com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey}`]
const createRecord: Ask = (_, person) => [
  'com.atproto.repo.createRecord',
  {
    method: 'POST',
    headers: { ...bearer(person.accessJwt), 'content-type': 'application/json' },
    body: JSON.stringify({ repo: person.did, collection, record: note }),
  },
]

const proof: Ask = (_, { did }) => [`com.atproto.sync.getRecord?did=${did}&collection=${collection}&rkey=${rkey}`]
const listRecords =
  (limit: number): Ask =>
  (_, { did }) => [`com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=${limit}`]
let cursors = 0
/** A page of 100 after a key that nobody has asked for: it is in no cache. */
const otherPage: Ask = (_, { did }) => [
  `com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=100&cursor=zzz${++cursors}`,
]

type Way = 'plain' | 'tls' | 'readers' | 'postgres'

const rows: readonly [name: string, way: Way, ask: Ask][] = [
  ['getRecord', 'plain', getRecord],
  ['proof of a record', 'plain', proof],
  ['listRecords of 50', 'plain', listRecords(50)],
  ['listRecords of 100', 'plain', listRecords(100)],
  ['listRecords of 100, not cached', 'plain', otherPage],
  ['getRepo of 100 records', 'plain', (_, { did }) => [`com.atproto.sync.getRepo?did=${did}`]],
  ['checkAccountStatus', 'plain', (_, person) => ['com.atproto.server.checkAccountStatus', as(person)]],
  ['getSession', 'plain', (_, person) => ['com.atproto.server.getSession', as(person)]],
  ['createRecord', 'plain', createRecord],
  ['forwarded: getPosts', 'plain', (_, person) => ['app.bsky.feed.getPosts?uris=at://x', as(person)]],
  ['forwarded: getTimeline', 'plain', (_, person) => ['app.bsky.feed.getTimeline', as(person)]],
  ['forwarded: searchPosts, of unknown length', 'plain', (_, person) => [`${streamedMethod}?q=x`, as(person)]],
  ['getRecord over TLS', 'tls', getRecord],
  ['getRecord, one reader', 'readers', getRecord],
  ['proof of a record, one reader', 'readers', proof],
  ['listRecords of 100, one reader', 'readers', listRecords(100)],
  ['getRepo of 100 records, one reader', 'readers', (_, { did }) => [`com.atproto.sync.getRepo?did=${did}`]],
  ['createRecord, one reader', 'readers', createRecord],
  ['getRecord, one node on PostgreSQL', 'postgres', getRecord],
  ['createRecord, one node on PostgreSQL', 'postgres', createRecord],
]

const more: Record<
  Way,
  (folder: string) => Promise<{ env: Record<string, string>; url?: string; end?: () => Promise<void> }>
> = {
  plain: async () => ({ env: {} }),
  async tls(folder) {
    const [cert, key, port] = [join(folder, 'cert.pem'), join(folder, 'key.pem'), await freePort()]
    writeFileSync(cert, serverCertificate)
    writeFileSync(key, serverKey)
    const env = {
      SERVICE_PUBLIC_URL: `https://localhost:${port}`,
      SERVICE_TLS_MODE: 'files',
      SERVICE_TLS_PORT: String(port),
      SERVICE_TLS_HTTP_PORT: '0',
      SERVICE_TLS_CERTIFICATE_FILES: cert,
      SERVICE_TLS_KEY_FILES: key,
    }
    return { env, url: `https://localhost:${port}` }
  },
  readers: async () => ({ env: { SERVICE_SERVER_READERS: '1' } }),
  async postgres() {
    const { databaseUrl, drop } = await testDatabase()
    return { env: { SERVICE_DATABASE_URL: databaseUrl }, end: drop }
  },
}

async function withServer(
  way: Way,
  env: Record<string, string>,
  flags: string[],
  use: (server: Server) => Promise<void>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-costs-'))
  const extra = await more[way](folder)
  const port = await freePort()
  const child = Bun.spawn([process.execPath, ...flags, join(options.server, 'src/main.ts'), 'dev'], {
    cwd: options.server,
    env: {
      ...process.env,
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_PORT: String(port),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_APPVIEW_URL: `http://127.0.0.1:${appview.port}`,
      ...publicService,
      ...extra.env,
      ...env,
    },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  let said = ''
  void (async () => {
    for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) said += piece
  })()
  const plain = `http://127.0.0.1:${port}`
  try {
    await until(async () => (await fetch(`${plain}/xrpc/_health`).catch(() => null))?.ok === true)
    const people: TestAccount[] = []
    for (let made = 0; made < ACCOUNTS; made++) people.push(await createAccount({ url: plain }, `person-${made}`))
    for (const { did, call } of people) {
      const writes = Array.from({ length: RECORDS }, (_, i) => ({
        $type: 'com.atproto.repo.applyWrites#create',
        collection,
        ...(i === 0 && { rkey }),
        // Records of a page differ: each text has to be fetched from a place of its own.
        value: { ...note, text: note.text + i },
      }))
      const { status } = await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })
      if (status !== 200) throw new Error(`applyWrites returned ${status}`)
    }
    const collections = () => {
      const taken = said
      said = ''
      return taken
    }
    await use({ url: extra.url ?? plain, pid: child.pid, people, collections })
  } finally {
    child.kill('SIGINT')
    await child.exited
    await extra.end?.()
    rmSync(folder, { recursive: true })
  }
}

/** A batch of requests. Throws if one of them fails. */
async function askAll(server: Server, ask: Ask): Promise<void> {
  const turns = Array.from({ length: BATCH }).keys()
  const hand = async () => {
    for (const turn of turns) {
      const [path, init] = ask(server, server.people[turn % server.people.length]!)
      const headers = { ...init?.headers, 'accept-encoding': path.startsWith('app.') ? 'gzip' : 'identity' }
      const response = await fetch(`${server.url}/xrpc/${path}`, {
        ...init,
        headers,
        tls: { rejectUnauthorized: false },
      })
      const body = await response.text()
      if (!response.ok) throw new Error(`${path} returned ${response.status}: ${body}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, hand))
}

console.log('| Request | µs of all threads | of them the main thread | kB of garbage |\n| --- | ---: | ---: | ---: |')
for (const way of ['plain', 'tls', 'readers', 'postgres'] as const) {
  const some = rows.filter(([name, its]) => its === way && name.includes(options.only))
  if (some.length === 0) continue
  const found = new Map<string, { all: number; main: number; garbage: string }>()
  await withServer(way, {}, [], async (server) => {
    for (const [name, , ask] of some) {
      await warmUp(server.pid, () => askAll(server, ask))
      const rounds: { all: number; main: number }[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const before = threadsOf(server.pid)
        await askAll(server, ask)
        const { all, main } = ranBetween(before, threadsOf(server.pid))
        rounds.push({ all: all / BATCH, main: main / BATCH })
      }
      const least = (part: 'all' | 'main') => Math.min(...rounds.map((round) => round[part]))
      found.set(name, { all: least('all'), main: least('main'), garbage: 'not measured' })
    }
  })
  await withServer(way, countedGarbage, [], async (server) => {
    for (const [name, , ask] of some) {
      await askAll(server, ask)
      server.collections()
      for (let round = 0; round < ROUNDS; round++) await askAll(server, ask)
      const kilobytes = garbageIn(server.collections())
      found.get(name)!.garbage = (kilobytes / (BATCH * ROUNDS)).toFixed(0)
    }
  })
  for (const [name, { all, main, garbage }] of found)
    console.log(`| ${name} | ${all.toFixed(0)} | ${main.toFixed(0)} | ${garbage} |`)
  if (options.functions === undefined) continue
  const flags = ['--cpu-prof', '--cpu-prof-interval=250', `--cpu-prof-dir=${options.functions}`]
  await withServer(way, {}, flags, async (server) => {
    for (const [, , ask] of some) for (let round = 0; round < ROUNDS; round++) await askAll(server, ask)
  })
}
await appview.stop(true)
process.exit()
