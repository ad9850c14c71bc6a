/**
 * Three nodes over one PostgreSQL and one bucket, in a storm of writes at all of them. Again and again one is killed
 * with -9, the sequencer of events in every other round, while the others go on; CLUSTER_KILLS says how often. Then the
 * line of one to the database falls silent, and PostgreSQL fails over to a standby that lacks the last writes.
 */
import { expect, test } from 'bun:test'
import { type Example, type ExampleNode, sequencerOf, startExample } from '../cluster/example.ts'
import { startDatabaseLine } from '../../support/faults/database-line.ts'
import { request } from '../../support/clients/http.ts'
import { startServer, startStandby, testDatabase } from '../../support/servers/postgres.ts'
import { type Message, Subscriber } from '../../support/clients/subscriber.ts'
import { until } from '../../support/until.ts'
import { StormAccount } from './storm.ts'
import { checkBlobs, checkEventLog, checkRecords, checkRepositories } from './storm-checks.ts'

const KILLS = Number(process.env['CLUSTER_KILLS'] ?? 6)
/** An account has a writer at each node, so that nodes compete for one repository. */
const ACCOUNTS = 3
const WRITES_BEFORE_KILL = 40
/** Written by the nodes that are left, and by the one that takes over. */
const WRITES_AFTER_KILL = 40
const MAX_MILLIS_PER_KILL = 20_000
const MAX_MILLIS = 120_000

const start = (databaseUrls: readonly string[] = [], env: Record<string, string> = {}) =>
  startExample({ env: { SERVICE_RATE_LIMIT_ENABLED: 'false', ...env }, databaseUrls })

const createAccounts = ({ nodes }: Example): Promise<StormAccount[]> =>
  Promise.all(
    Array.from({ length: ACCOUNTS }, (_, index) =>
      StormAccount.create(nodes[index % nodes.length]!.server.url, `storm${index}`),
    ),
  )

test(
  `after ${KILLS} kills every acknowledged write is there, and every node shows one numbering of events`,
  async () => {
    await using cluster = await start()
    const accounts = await createAccounts(cluster)
    const reader = new Reader(cluster.nodes)
    for (let round = 0; round < KILLS; round++) {
      const victim = round % 2 === 0 ? await sequencerOf(cluster) : cluster.nodes[round % cluster.nodes.length]!
      await stormAndKill(cluster, victim, accounts)
      await victim.restart()
      await cluster.untilReady(cluster.nodes.length)
      await checkRecords(cluster.nodes[(round + 1) % cluster.nodes.length]!.server, accounts)
    }
    await checkUnbroken(cluster, accounts, reader)
  },
  (KILLS + 2) * MAX_MILLIS_PER_KILL,
)

test(
  'after the line of the sequencer to the database was silent, every acknowledged write is there, and the numbers go on',
  async () => {
    await using resources = new AsyncDisposableStack()
    const { databaseUrl, drop } = await testDatabase()
    resources.defer(drop)
    const lines = await Promise.all(
      Array.from({ length: 3 }, async () => resources.use(await startDatabaseLine(databaseUrl))),
    )
    const cluster = resources.use(await start(lines.map((line) => line.databaseUrl)))
    const accounts = await createAccounts(cluster)
    for (const account of accounts) account.isPatient = true
    const reader = new Reader(cluster.nodes)
    const victim = await sequencerOf(cluster)
    const line = lines[cluster.nodes.indexOf(victim)]!

    const storm = new Storm(cluster, accounts)
    await storm.untilWritten(WRITES_BEFORE_KILL)
    line.silence()
    await storm.untilWritten(WRITES_AFTER_KILL)
    await until(async () => (await fetch(`${victim.server.url}/readyz`)).status === 503)
    await until(
      async () =>
        (await sequencerOf(
          cluster,
          cluster.nodes.filter((node) => node !== victim),
        )) !== victim,
    )
    await storm.end()
    line.speak()
    await cluster.untilReady(cluster.nodes.length)
    await checkRecords(victim.server, accounts)
    const after = new Storm(cluster, accounts)
    await after.untilWritten(WRITES_AFTER_KILL)
    await after.end()
    await checkUnbroken(cluster, accounts, reader)
  },
  MAX_MILLIS,
)

test(
  'after a failover that lost writes, no number has two events, and whoever follows the events has the state that is left',
  async () => {
    await using resources = new AsyncDisposableStack()
    const primary = await startServer()
    resources.defer(() => primary.stop())
    await primary.createDatabase('holdfast')
    const replication = resources.use(await startDatabaseLine(primary.url('postgres')))
    const line = resources.use(await startDatabaseLine(primary.url('holdfast')))
    const cluster = resources.use(
      await start(Array(3).fill(line.databaseUrl), { SERVICE_DATABASE_AFTER_FAILOVER: 'continue' }),
    )
    const accounts = await createAccounts(cluster)
    for (const account of accounts) account.isPatient = true
    const standby = await startStandby(primary, replication.databaseUrl)
    resources.defer(() => standby.stop())
    const reader = new Reader(cluster.nodes)
    const first = new Storm(cluster, accounts)
    await first.untilWritten(WRITES_BEFORE_KILL)
    await first.end()
    await primary.followedBy(standby)
    const kept = accounts.map((account) => account.remember())

    replication.freeze()
    const lost = new Storm(cluster, accounts)
    await lost.untilWritten(WRITES_BEFORE_KILL)
    const seen = reader.seqs.length
    await until(() => reader.seqs.length > seen + WRITES_BEFORE_KILL)
    await primary.crash()
    line.leadTo(standby.url('holdfast'))
    line.cut()
    await Promise.all([standby.promote(), lost.end()])
    await until(() => cluster.nodes.every(({ server }) => / stopped[^]* listening /.test(server.output())))
    await cluster.untilReady(cluster.nodes.length)
    for (const [i, account] of accounts.entries()) account.fallBackTo(kept[i]!)
    await checkRecords(cluster.nodes[0]!.server, accounts)

    const after = new Storm(cluster, accounts)
    await after.untilWritten(WRITES_AFTER_KILL)
    await after.end()
    for (const { server } of cluster.nodes) await checkRecords(server, accounts)
    await checkBlobs(cluster.nodes[0]!.server, accounts)
    await checkRepositories(cluster.nodes[1]!.server, accounts)
    const logs = await Promise.all(cluster.nodes.map(({ server }) => eventsAt(server.url, accounts)))
    const [log] = logs as [Message[]]
    const framesOf = (messages: readonly Message[]) => messages.map(({ bytes }) => bytes.toString('hex'))
    for (const other of logs) expect(framesOf(other)).toEqual(framesOf(log))
    await reader.untilSeen(log.at(-1)!.body.seq)
    expect(reader.seqs).toEqual([...new Set(reader.seqs)].toSorted((a, b) => a - b))
    const numbers = new Map(log.map(({ body, bytes }) => [body.seq, bytes.toString('hex')]))
    const lostEvents = reader.messages.filter(({ body, bytes }) => numbers.get(body.seq) !== bytes.toString('hex'))
    expect(lostEvents.length).toBeGreaterThan(0)
    expect(lostEvents.filter(({ body }) => numbers.has(body.seq))).toEqual([])
    const followed = new Set(reader.seqs)
    expect(log.filter(({ body }) => !followed.has(body.seq))).toEqual([])
    for (const { did } of accounts) {
      const { body } = await request(`${cluster.nodes[2]!.server.url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)
      const last = reader.messages.findLast(
        ({ type, body: event }) => /^#(commit|sync)$/.test(type) && (event['repo'] ?? event['did']) === did,
      )
      expect(last!.body['rev']).toBe(body.rev)
    }
  },
  MAX_MILLIS,
)

/** Nothing that was acknowledged is missing, and all show the same. */
async function checkUnbroken(cluster: Example, accounts: StormAccount[], reader: Reader): Promise<void> {
  for (const { server } of cluster.nodes) await checkEventLog(server, accounts)
  await checkBlobs(cluster.nodes[0]!.server, accounts)
  await checkRepositories(cluster.nodes[1]!.server, accounts)
  const logs = await Promise.all(cluster.nodes.map(({ server }) => eventsAt(server.url, accounts)))
  const numbered = (log: readonly Message[]) =>
    log.map(({ body }) => ({ seq: body.seq, commit: String(body['commit']) }))
  expect(numbered(logs[1]!)).toEqual(numbered(logs[0]!))
  expect(numbered(logs[2]!)).toEqual(numbered(logs[0]!))
  // Who follows the firehose from node to node as they die has seen each event once, in the same order.
  await reader.untilSeen(logs[0]!.at(-1)!.body.seq)
  expect(reader.seqs).toEqual(logs[0]!.map(({ body }) => body.seq))
}

/** Writers of all accounts at all nodes. */
class Storm {
  #isOver = false
  readonly #writing: Promise<unknown>

  constructor(
    { nodes }: Example,
    readonly accounts: StormAccount[],
  ) {
    this.#writing = Promise.all(
      accounts.flatMap((account) =>
        nodes.map(({ server }, writer) => account.writeUntilGone(server.url, writer, () => this.#isOver)),
      ),
    )
  }

  async untilWritten(count: number): Promise<void> {
    const acknowledged = () => this.accounts.reduce((sum, { commits }) => sum + commits.length, 0)
    const before = acknowledged()
    await Promise.race([this.#writing, until(() => acknowledged() - before >= count, { maxPauseMillis: 1 })])
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#writing
  }
}

async function stormAndKill(cluster: Example, victim: ExampleNode, accounts: StormAccount[]): Promise<void> {
  const storm = new Storm(cluster, accounts)
  await storm.untilWritten(WRITES_BEFORE_KILL)
  victim.server.signal('SIGKILL')
  await victim.server.exited
  await storm.untilWritten(WRITES_AFTER_KILL)
  await storm.end()
}

/** All events up to the newest commit of every account. */
async function eventsAt(url: string, accounts: StormAccount[]): Promise<Message[]> {
  const latest = await Promise.all(
    accounts.map(({ did }) => request(`${url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)),
  )
  const missing = new Set(latest.map(({ body }) => body.cid as string))
  const subscriber = new Subscriber(url, '?cursor=0')
  for (let next = 0; missing.size > 0; next++)
    missing.delete(String((await subscriber.until(next + 1))[next]!.body['commit']))
  subscriber.close()
  return subscriber.messages
}

/** A consumer that goes on at another node, from its cursor, whenever its connection ends. */
class Reader {
  readonly #before: Message[] = []
  readonly #reading: Promise<void>
  #current: Subscriber | null = null
  #isOver = false

  constructor(readonly nodes: readonly ExampleNode[]) {
    this.#reading = this.#read()
  }

  get messages(): Message[] {
    return [...this.#before, ...(this.#current?.messages ?? [])]
  }

  get seqs(): number[] {
    return this.messages.map(({ body }) => body.seq)
  }

  async #read(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const { url } = this.nodes[turn % this.nodes.length]!.server
      const subscriber = (this.#current = new Subscriber(url, `?cursor=${this.#before.at(-1)?.body.seq ?? 0}`))
      // A node that is down refuses the connection.
      await Promise.allSettled([subscriber.opened, subscriber.closed])
      this.#before.push(...subscriber.messages)
      this.#current = null
    }
  }

  async untilSeen(seq: number): Promise<void> {
    await until(() => (this.#current?.messages.at(-1) ?? this.#before.at(-1))?.body.seq === seq)
    this.#isOver = true
    this.#current?.close()
    await this.#reading
  }
}
