/**
 * What a request costs a cluster, in counts: round trips and bytes between each node and PostgreSQL, commits and bytes
 * of the write-ahead log; and the time on processors.
 *
 * TEST_POSTGRES_FSYNC=on bun tests/bench/cluster-costs.ts [requests of each kind, 1000] [nodes, 3]
 *
 * Three nodes have a subscriber each: the first numbers events, the second serves all requests, the third only follows.
 * Of two, none only follows, and one node does everything. Where all nodes serve, a model made of the other rows can be
 * checked. Counts are the same on every machine, but for how many transactions share a commit.
 */
import { SQL } from 'bun'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount, holder, type TestAccount } from '../support/clients/account.ts'
import { startBucket } from '../support/servers/bucket-host.ts'
import { startDatabaseLine } from '../support/faults/database-line.ts'
import { testDatabase } from '../support/servers/postgres.ts'
import { ranBetween, threadsOf, type Threads } from '../support/request-cost.ts'
import { startProgram } from '../support/servers/program.ts'
import { Subscriber } from '../support/clients/subscriber.ts'

const REQUESTS = Number(process.argv[2] ?? 1000)
const ACCOUNTS = 64
const IDLE_SECS = 10
const SETTLE_MILLIS = 500
/** What nodes do, by how many there are. */
const rolesOf = [['serves'], ['numbers', 'serves'], ['numbers', 'serves', 'follows']]
const roles = rolesOf[Number(process.argv[3] ?? rolesOf.length) - 1]!

interface Spent {
  roundTrips: number
  kilobytes: number
  threads: Threads
}

/** Time on processors of all its threads, which the kernel counts exactly. */
function millisOf(pid: number | string): number {
  let nanos = 0
  for (const thread of entriesOf(`/proc/${pid}/task`))
    nanos += Number(textOf(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0])
  return nanos / 1e6
}

const parentOf = (pid: number | string): number => Number(/^PPid:\s(\d+)$/m.exec(textOf(`/proc/${pid}/status`))?.[1])

/** Of a server with the processes of its connections. */
const millisOfFamily = (parent: number): number =>
  entriesOf('/proc').reduce(
    (sum, pid) => (/^\d+$/.test(pid) && parentOf(pid) === parent ? sum + millisOf(pid) : sum),
    millisOf(parent),
  )

/** Empty if the process has ended. */
const textOf = (path: string): string => orGone(() => readFileSync(path, 'utf8'), '')
const entriesOf = (path: string): string[] => orGone(() => readdirSync(path), [])

function orGone<T>(read: () => T, gone: T): T {
  try {
    return read()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code!)) return gone
    throw error
  }
}

await using resources = new AsyncDisposableStack()
const { databaseUrl, drop } = await testDatabase()
resources.defer(drop)
const { primary } = resources.use(await startBucket())
const folder = resources.adopt(mkdtempSync(join(tmpdir(), 'holdfast-costs-')), (path) =>
  rmSync(path, { recursive: true, force: true }),
)
const shared = {
  SERVICE_PUBLIC_URL: 'http://127.0.0.1:2583',
  SERVICE_AVAILABLE_USER_DOMAINS: 'test',
  SERVICE_INVITE_CODE_REQUIRED: 'false',
  SERVICE_RATE_LIMIT_ENABLED: process.env['RATE_LIMIT'] ?? 'false',
  SERVICE_SIGNING_KEY_MASTER_KEY: randomBytes(32).toString('hex'),
  SERVICE_BLOBS_STORE: primary.store,
  SERVICE_BLOBS_S3_BUCKET: primary.s3Bucket,
  SERVICE_BLOBS_S3_ENDPOINT: primary.s3Endpoint,
  SERVICE_BLOBS_S3_ACCESS_KEY_ID: primary.s3AccessKeyId,
  SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: primary.s3SecretAccessKey.reveal(),
  SERVICE_BLOBS_S3_FORCE_PATH_STYLE: String(primary.s3ForcePathStyle),
  SERVICE_BIND_ADDRESS: '127.0.0.1',
  SERVICE_PORT: '0',
  SERVICE_CRAWLERS: '',
}

async function startNode(name: string) {
  const line = resources.use(await startDatabaseLine(databaseUrl))
  const own = { SERVICE_NODE_NAME: name, SERVICE_DATA_DIR: join(folder, name), SERVICE_DATABASE_URL: line.databaseUrl }
  const server = resources.use(await startProgram(['dev'], { ...shared, ...own }, folder))
  const subscriber = new Subscriber(server.url)
  await subscriber.opened
  return { url: server.url, pid: server.pid, carried: line.carried, subscriber }
}
const nodes: Awaited<ReturnType<typeof startNode>>[] = []
for (const role of roles) nodes.push(await startNode(role))
const serving = nodes[roles.indexOf('serves')]!

const admin = new SQL({ adapter: 'postgres', url: databaseUrl, max: 1 })
resources.defer(() => admin.close())
const [backend] = await admin.unsafe('SELECT pg_backend_pid() AS pid')
const postmaster = parentOf(backend.pid)

async function standing() {
  const [row] = await admin.unsafe(`
    SELECT CAST(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS FLOAT) AS wal,
      CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS FLOAT) AS writes`)
  const ofNodes = nodes.map(({ pid, carried }): Spent => ({
    roundTrips: carried.roundTrips,
    kilobytes: carried.bytes / 1000,
    threads: threadsOf(pid),
  }))
  return { ofNodes, wal: row.wal / 1000, writes: row.writes, millis: millisOfFamily(postmaster) }
}

const heads = roles.flatMap((role) => [`${role}: round trips`, 'kB', 'ms'])
const columns = ['for each', ...heads, 'PostgreSQL: ms', 'transactions that write', 'kB of the log', 'a second']
console.log(`| ${columns.join(' | ')} |\n| --- |${' ---: |'.repeat(columns.length - 1)}`)

/** Does it, and prints what one of `count` costs. */
async function measure(what: string, count: number, work: () => Promise<void>): Promise<void> {
  await Bun.sleep(SETTLE_MILLIS)
  const before = await standing()
  const startedAt = performance.now()
  await work()
  const secs = (performance.now() - startedAt) / 1000
  await Bun.sleep(SETTLE_MILLIS)
  const after = await standing()
  const per = (total: number, digits: number) => (total / count).toFixed(digits)
  const ofNodes = after.ofNodes.flatMap(({ roundTrips, kilobytes, threads }, i) => {
    const from = before.ofNodes[i]!
    const millis = ranBetween(from.threads, threads).all / 1000
    return [per(roundTrips - from.roundTrips, 2), per(kilobytes - from.kilobytes, 1), per(millis, 3)]
  })
  const ofDatabase = [
    per(after.millis - before.millis, 3),
    per(after.writes - before.writes, 2),
    per(after.wal - before.wal, 1),
    (count / secs).toFixed(0),
  ]
  console.log(`| ${[what, ...ofNodes, ...ofDatabase].join(' | ')} |`)
}

/** Sends so many requests, `atOnce` at a time. */
async function send(count: number, atOnce: number, one: (i: number) => Promise<{ status: number }>): Promise<void> {
  let next = 0
  const sender = async () => {
    while (next < count) {
      const { status } = await one(next++)
      if (status !== 200) throw new Error(`answered ${status}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
}

const accounts: TestAccount[] = []
for (let i = 0; i < ACCOUNTS; i++) accounts.push(await createAccount(serving, `user${i}`))
const collection = 'app.bsky.feed.post'
const rkeys: string[] = []
const create = async (account: TestAccount, i: number) => {
  const record = {
    $type: collection,
    text: `${i} `.padEnd(250, 'lorem ipsum '),
    createdAt: '2026-01-01T00:00:00.000Z',
    langs: ['en'],
  }
  const answer = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection, record },
  })
  if (account === accounts[0]) rkeys.push(answer.body.uri.split('/').at(-1))
  return answer
}
const [first] = accounts as [TestAccount]
const seen = () => Promise.all(nodes.map(({ subscriber }) => subscriber.until(ACCOUNTS * 4 + written)))
let written = 0
const write =
  (count: number, atOnce: number, by: readonly TestAccount[] = accounts) =>
  async () => {
    await send(count, atOnce, (i) => create(by[i % atOnce]!, i))
    written += count
    await seen()
  }
const read = (count: number, atOnce: number, path: (rkey: string) => string) => () =>
  send(count, atOnce, (i) => first.call(path(rkeys[i % rkeys.length]!)))

const spread = accounts.map((account, i) => holder(nodes[i % nodes.length]!, account))
await write(REQUESTS * 2, ACCOUNTS, spread)()
await write(REQUESTS, ACCOUNTS)()
await write(REQUESTS, 1)()
await measure('second without requests', IDLE_SECS, () => Bun.sleep(IDLE_SECS * 1000 - 2 * SETTLE_MILLIS))
await measure('createRecord, 1 at a time', REQUESTS / 2, write(REQUESTS / 2, 1))
await measure('createRecord, 64 at a time', REQUESTS * 2, write(REQUESTS * 2, ACCOUNTS))
await measure('createRecord, 64 at a time, at all nodes', REQUESTS * 2, write(REQUESTS * 2, ACCOUNTS, spread))
const getRecord = (rkey: string) => `com.atproto.repo.getRecord?repo=${first.did}&collection=${collection}&rkey=${rkey}`
await measure('getRecord, 1 at a time', REQUESTS, read(REQUESTS, 1, getRecord))
await measure('getRecord, 32 at a time', REQUESTS * 4, read(REQUESTS * 4, 32, getRecord))
await measure(
  'getSession, 32 at a time',
  REQUESTS * 2,
  read(REQUESTS * 2, 32, () => 'com.atproto.server.getSession'),
)
const listRecords = `com.atproto.repo.listRecords?repo=${first.did}&collection=${collection}&limit=50`
await measure(
  'listRecords of 50',
  REQUESTS,
  read(REQUESTS, 32, () => listRecords),
)
const proof = (rkey: string) => `com.atproto.sync.getRecord?did=${first.did}&collection=${collection}&rkey=${rkey}`
await measure('sync.getRecord', REQUESTS, read(REQUESTS, 32, proof))
for (const { subscriber } of nodes) subscriber.close()
await resources.disposeAsync()
process.exit(0)
