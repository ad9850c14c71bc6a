/**
 * Compares two versions of the server, executables or folders of source, request by request: both serve at once, with
 * the same accounts and records, and are asked by turns, in slices too short for the machine to change in between.
 *
 *     bun tests/bench/two-programs.ts BEFORE AFTER [--pairs 40] [--millis 250] [--only TEXT]
 *
 * Linux only. For each row: the processor time of all threads of the server for a request, and requests a second, as
 * medians of the slices; then how many times as good AFTER is as BEFORE, as the median of the pairs of slices with the
 * range that holds the true median in 19 of 20 measurements. A row whose range has 1.00 in it shows no difference.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startMeasuredAppview, streamedMethod } from '../support/measured-appview.ts'
import { medianOf, medianRange } from '../support/medians.ts'
import { freePort } from '../support/ports.ts'
import { publicService, ranBetween, threadsOf } from '../support/request-cost.ts'
import { until } from '../support/until.ts'

const { values: options, positionals } = parseArgs({
  options: {
    pairs: { type: 'string', default: '40' },
    millis: { type: 'string', default: '250' },
    'warm-up': { type: 'string', default: '4' },
    only: { type: 'string', default: '' },
  },
  allowPositionals: true,
})
const PAIRS = Number(options.pairs)
const SLICE_MILLIS = Number(options.millis)
const WARM_UP_SECONDS = Number(options['warm-up'])
const ACCOUNTS = 64
const RECORDS = 400
const BATCH = 200
/** Commits of one record that each account begins with, and events that a subscriber reads from the first on. */
const SINGLE_POSTS = 6
const REPLAYED = 500
const PAGE = 50
const collection = 'app.bsky.feed.post'

/** The service that requests are forwarded to. */
const appview = startMeasuredAppview()

interface Account {
  did: string
  handle: string
  accessJwt: string
  keys: string[]
}

interface Server {
  url: string
  pid: number
  accounts: Account[]
  cids: string[]
  smallBlob: string
  largeBlob: string
  /** Two states of one account's repository, which imports replace by one another. */
  archives: Uint8Array[]
  stop(): Promise<void>
}

/** What each client asks for, again and again. `turn` counts the requests of all of them. */
interface Row {
  name: string
  clients: number
  subscribers?: number
  ask(server: Server, client: number, turn: number): Promise<unknown>
}

async function startServer(program: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-two-'))
  const port = await freePort()
  const isSource = statSync(program).isDirectory()
  const command = isSource ? [process.execPath, join(resolve(program), 'src/main.ts')] : [resolve(program)]
  const child = Bun.spawn([...command, 'dev'], {
    cwd: isSource ? program : folder,
    env: {
      ...process.env,
      SERVICE_DATA_DIR: folder,
      PORT: String(port),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_APPVIEW_URL: `http://127.0.0.1:${appview.port}`,
      ...publicService,
    },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const url = `http://localhost:${port}`
  await until(async () => (await fetch(`${url}/xrpc/_health`).catch(() => null))?.ok === true)
  const server: Server = {
    url,
    pid: child.pid,
    accounts: [],
    cids: [],
    smallBlob: '',
    largeBlob: '',
    archives: [],
    async stop() {
      child.kill('SIGINT')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
  await fill(server)
  return server
}

async function answerOf<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

const call = async <T>({ url }: Server, method: string, body: unknown, token?: string): Promise<T> =>
  answerOf<T>(
    await fetch(`${url}/xrpc/${method}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    }),
  )

/** Reads a response to its end. */
async function get({ url }: Server, query: string, token?: string): Promise<Uint8Array> {
  const response = await fetch(`${url}/xrpc/${query}`, { headers: token ? { Authorization: `Bearer ${token}` } : {} })
  if (!response.ok) throw new Error(`${query}: ${await response.text()}`)
  return response.bytes()
}

const upload = async ({ url }: Server, { accessJwt }: Account, bytes: Uint8Array): Promise<string> => {
  const { blob } = await answerOf<{ blob: { ref: { $link: string } } }>(
    await fetch(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/octet-stream', Authorization: `Bearer ${accessJwt}` },
      body: bytes,
    }),
  )
  return blob.ref.$link
}

let notes = 0
/** No two are alike: records with the same content share a CID, and with it a place in caches. */
const note = () => ({
  $type: collection,
  text: `${'a post of a usual length, '.repeat(8)}number ${notes++}`,
  createdAt: new Date().toISOString(),
})
const creation = () => ({ $type: 'com.atproto.repo.applyWrites#create', collection, value: note() })

/** The same bytes for both servers. */
const bytesOf = (seed: string, count: number): Uint8Array =>
  new Uint8Array(createHash('shake256', { outputLength: count }).update(seed).digest())

async function fill(server: Server): Promise<void> {
  for (let i = 0; i < ACCOUNTS; i++) {
    const account = await call<Account>(server, 'com.atproto.server.createAccount', {
      handle: `writer${i}.test`,
      email: `writer${i}@example.com`,
      password: 'password-123456',
    })
    account.keys = []
    for (let written = 0; written < RECORDS; written += BATCH) {
      const writes = Array.from({ length: BATCH }, creation)
      const { results } = await call<{ results: { uri: string; cid: string }[] }>(
        server,
        'com.atproto.repo.applyWrites',
        { repo: account.did, writes },
        account.accessJwt,
      )
      account.keys.push(...results.map(({ uri }) => uri.split('/').at(-1)!))
      if (i === 0) server.cids.push(...results.map(({ cid }) => cid))
    }
    server.accounts.push(account)
    for (let i = 0; i < SINGLE_POSTS; i++) await create(server, account)
  }
  const [first] = server.accounts as [Account]
  const blobs = [bytesOf('small', 50_000), bytesOf('large', 1_000_000)]
  const links: string[] = []
  for (const bytes of blobs) links.push(await upload(server, first, bytes))
  const embedded = links.map(($link, i) => ({
    $type: 'blob',
    ref: { $link },
    mimeType: 'application/octet-stream',
    size: blobs[i]!.length,
  }))
  await call(
    server,
    'com.atproto.repo.createRecord',
    { repo: first.did, collection: 'com.example.files', record: { $type: 'com.example.files', embedded } },
    first.accessJwt,
  )
  ;[server.smallBlob, server.largeBlob] = links as [string, string]
  const imported = importer(server)
  server.archives.push(await archiveOf(server, imported))
  await apply(server, imported, BATCH)
  server.archives.push(await archiveOf(server, imported))
}

const writer = ({ accounts }: Server, i: number): Account => accounts[i % ACCOUNTS]!
const create = (server: Server, { did, accessJwt }: Account) =>
  call(server, 'com.atproto.repo.createRecord', { repo: did, collection, record: note() }, accessJwt)
const apply = (server: Server, { did, accessJwt }: Account, count: number) =>
  call(
    server,
    'com.atproto.repo.applyWrites',
    { repo: did, writes: Array.from({ length: count }, creation) },
    accessJwt,
  )

const importer = ({ accounts }: Server): Account => accounts.at(-1)!
const archiveOf = (server: Server, { did }: Account) => get(server, `com.atproto.sync.getRepo?did=${did}`)

async function importRepo(server: Server, archive: Uint8Array): Promise<void> {
  const response = await fetch(`${server.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/vnd.ipld.car', Authorization: `Bearer ${importer(server).accessJwt}` },
    body: archive as Uint8Array<ArrayBuffer>,
  })
  if (!response.ok) throw new Error(`importRepo: ${await response.text()}`)
}

/** Reads the first events of the log. */
function replay({ url }: Server): Promise<void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos?cursor=0`)
  return new Promise((resolve, reject) => {
    let left = REPLAYED
    socket.addEventListener('message', () => {
      if (--left === 0) socket.close()
    })
    socket.addEventListener('close', () => (left <= 0 ? resolve() : reject(new Error('the replay ended early'))))
  })
}

/** Queries that 16 clients ask, about another account and record each time. */
const reading = (
  name: string,
  query: (account: Account, turn: number, server: Server) => string,
  token = false,
): Row => ({
  name,
  clients: 16,
  ask(server, _, turn) {
    const account = writer(server, turn)
    return get(server, query(account, turn, server), token ? account.accessJwt : undefined)
  },
})
const keyOf = (account: Account, turn: number) => account.keys[(turn * 7) % RECORDS]!

const rows: Row[] = [
  {
    name: 'createRecord, 64 accounts, 64 clients',
    clients: 64,
    ask: (server, client) => create(server, writer(server, client)),
  },
  { name: 'createRecord, 1 account, 16 clients', clients: 16, ask: (server) => create(server, writer(server, 1)) },
  { name: 'createRecord, 1 account, 1 client', clients: 1, ask: (server) => create(server, writer(server, 2)) },
  {
    name: 'putRecord',
    clients: 8,
    ask(server, client, turn) {
      const { did, accessJwt, keys } = writer(server, client + 8)
      const rkey = keys[turn % RECORDS]
      return call(server, 'com.atproto.repo.putRecord', { repo: did, collection, rkey, record: note() }, accessJwt)
    },
  },
  {
    name: 'createRecord and deleteRecord',
    clients: 8,
    async ask(server, client) {
      const account = writer(server, client + 16)
      const { uri } = (await create(server, account)) as { uri: string }
      const rkey = uri.split('/').at(-1)
      await call(server, 'com.atproto.repo.deleteRecord', { repo: account.did, collection, rkey }, account.accessJwt)
    },
  },
  { name: 'applyWrites of 10', clients: 4, ask: (server, client) => apply(server, writer(server, client + 24), 10) },
  { name: 'applyWrites of 200', clients: 2, ask: (server, client) => apply(server, writer(server, client + 28), 200) },
  {
    name: 'createRecord, 50 subscribers',
    clients: 8,
    subscribers: 50,
    ask: (server, client) => create(server, writer(server, client + 32)),
  },
  reading(
    'getRecord',
    (account, turn) =>
      `com.atproto.repo.getRecord?repo=${account.did}&collection=${collection}&rkey=${keyOf(account, turn)}`,
  ),
  reading(
    'listRecords',
    ({ did }) => `com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=${PAGE}`,
  ),
  reading('describeRepo', ({ did }) => `com.atproto.repo.describeRepo?repo=${did}`),
  reading('resolveHandle', ({ handle }) => `com.atproto.identity.resolveHandle?handle=${handle}`),
  reading('getSession', () => 'com.atproto.server.getSession', true),
  reading(
    'sync.getRecord',
    (account, turn) =>
      `com.atproto.sync.getRecord?did=${account.did}&collection=${collection}&rkey=${keyOf(account, turn)}`,
  ),
  reading('getBlocks', (_, turn, { accounts, cids }) => {
    const some = Array.from({ length: 10 }, (_, i) => `cids=${cids[(turn * 3 + i * 11) % cids.length]}`)
    return `com.atproto.sync.getBlocks?did=${accounts[0]!.did}&${some.join('&')}`
  }),
  reading('getLatestCommit', ({ did }) => `com.atproto.sync.getLatestCommit?did=${did}`),
  reading('getRepo, 400 records', ({ did }) => `com.atproto.sync.getRepo?did=${did}`),
  reading(
    'getBlob, 50 kB',
    (_, __, { accounts, smallBlob }) => `com.atproto.sync.getBlob?did=${accounts[0]!.did}&cid=${smallBlob}`,
  ),
  reading(
    'getBlob, 1 MB',
    (_, __, { accounts, largeBlob }) => `com.atproto.sync.getBlob?did=${accounts[0]!.did}&cid=${largeBlob}`,
  ),
  ...[
    ['with what the caller has just written (getTimeline)', 'app.bsky.feed.getTimeline'],
    ['a page (getPosts)', 'app.bsky.feed.getPosts?uris=at://x'],
    ['of unknown length (searchPosts)', `${streamedMethod}?q=x`],
  ].map(([name, query]): Row => ({
    name: `forwarded: ${name}`,
    clients: 32,
    ask: (server, _, turn) => get(server, query!, writer(server, turn).accessJwt),
  })),
  {
    name: 'uploadBlob, 1 MB',
    clients: 4,
    ask: (server, client) => upload(server, writer(server, client), new Uint8Array(randomBytes(1_000_000))),
  },
  { name: `replay of ${REPLAYED} events`, clients: 2, ask: replay },
  {
    name: `importRepo, ${BATCH} records change`,
    clients: 1,
    ask: (server, _, turn) => importRepo(server, server.archives[turn % 2]!),
  },
]

interface Slice {
  rate: number
  micros: number
}

let turns = 0
async function slice(server: Server, row: Row, millis: number): Promise<Slice> {
  const began = performance.now()
  const before = threadsOf(server.pid)
  let done = 0
  await Promise.all(
    Array.from({ length: row.clients }, async (_, client) => {
      while (performance.now() - began < millis) {
        await row.ask(server, client, turns++)
        done++
      }
    }),
  )
  const { all } = ranBetween(before, threadsOf(server.pid))
  return { rate: (done * 1000) / (performance.now() - began), micros: all / done }
}

/** Subscribers that read and forget. */
async function subscribers({ url }: Server, count: number): Promise<Disposable> {
  const sockets = Array.from(
    { length: count },
    () => new WebSocket(`${url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos`),
  )
  await Promise.all(sockets.map((socket) => new Promise((opened) => socket.addEventListener('open', opened))))
  return { [Symbol.dispose]: () => sockets.forEach((socket) => socket.close()) }
}

/** The median and where the true one is, in 19 of 20 measurements. */
const ratio = (values: readonly number[]): string => {
  const [least, most] = medianRange(values)
  return `${medianOf(values).toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`
}

async function measure(row: Row, before: Server, after: Server): Promise<void> {
  const slices = { before: [] as Slice[], after: [] as Slice[] }
  const counts = [await subscribers(before, row.subscribers ?? 0), await subscribers(after, row.subscribers ?? 0)]
  for (const server of [before, after]) await slice(server, row, WARM_UP_SECONDS * 1000)
  for (let pair = 0; pair < PAIRS; pair++)
    for (const which of pair % 2 ? (['after', 'before'] as const) : (['before', 'after'] as const))
      slices[which].push(await slice(which === 'before' ? before : after, row, SLICE_MILLIS))
  for (const some of counts) some[Symbol.dispose]()
  const of = (which: 'before' | 'after', what: keyof Slice) => slices[which].map((one) => one[what])
  const pairs = slices.before.map((earlier, i) => [earlier, slices.after[i]!] as const)
  const micros = ratio(pairs.map(([earlier, later]) => earlier.micros / later.micros))
  const rates = ratio(pairs.map(([earlier, later]) => later.rate / earlier.rate))
  console.log(
    `${row.name}: ${medianOf(of('before', 'micros')).toFixed(0)} → ${medianOf(of('after', 'micros')).toFixed(0)} µs, ${micros}; ` +
      `${medianOf(of('before', 'rate')).toFixed(0)} → ${medianOf(of('after', 'rate')).toFixed(0)} a second, ${rates}`,
  )
}

const [programBefore, programAfter] = positionals
if (programBefore === undefined || programAfter === undefined) throw new Error('Name two executables or folders.')
const before = await startServer(programBefore)
const after = await startServer(programAfter)
for (const row of rows) if (row.name.includes(options.only)) await measure(row, before, after)
await before.stop()
await after.stop()
process.exit()
