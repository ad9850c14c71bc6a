/**
 * Three nodes over one PostgreSQL and one bucket, in a storm of writes at all of them: again and again one is killed with
 * -9, the numberer of events in every other round, while the others go on. CLUSTER_KILLS says how often.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildExecutable } from '../../build.ts'
import { type Example, type ExampleNode, numbererOf, startExample } from '../cluster/example.ts'
import { request } from '../harness/http.ts'
import { Subscriber } from '../harness/subscriber.ts'
import { StormAccount } from './storm.ts'
import { checkBlobs, checkEventLog, checkRecords, checkRepositories } from './storm-checks.ts'

const KILLS = Number(process.env['CLUSTER_KILLS'] ?? 6)
/** An account has a writer at each node, so that nodes compete for one repository. */
const ACCOUNTS = 3
const WRITES_BEFORE_KILL = 40
/** Written by the nodes that are left, and by the one that takes over. */
const WRITES_AFTER_KILL = 40
const MAX_MILLIS_PER_KILL = 20_000

test(
  `after ${KILLS} kills every acknowledged write is there, and every node shows one numbering of events`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-cluster-kill-'))
    try {
      const executable = join(folder, 'holdfast')
      expect(await buildExecutable(executable, null)).toBe(true)
      await using cluster = await startExample({ program: [executable], env: { SERVICE_RATE_LIMIT_ENABLED: 'false' } })
      const accounts = await Promise.all(
        Array.from({ length: ACCOUNTS }, (_, index) =>
          StormAccount.create(cluster.nodes[index % cluster.nodes.length]!.server.url, `storm${index}`),
        ),
      )
      const reader = new Reader(cluster.nodes)
      for (let round = 0; round < KILLS; round++) {
        const victim = round % 2 === 0 ? await numbererOf(cluster) : cluster.nodes[round % cluster.nodes.length]!
        await stormAndKill(cluster, victim, accounts)
        await victim.restart()
        await cluster.untilReady(cluster.nodes.length)
        await checkRecords(cluster.nodes[(round + 1) % cluster.nodes.length]!.server, accounts)
      }
      for (const { server } of cluster.nodes) await checkEventLog(server, accounts)
      await checkBlobs(cluster.nodes[0]!.server, accounts)
      await checkRepositories(cluster.nodes[1]!.server, accounts)
      const logs = await Promise.all(cluster.nodes.map(({ server }) => eventsAt(server.url, accounts)))
      expect(logs[1]).toEqual(logs[0]!)
      expect(logs[2]).toEqual(logs[0]!)
      // Who follows the firehose from node to node as they die has seen each event once, in the same order.
      await reader.until(logs[0]!.length)
      expect(reader.seqs).toEqual(logs[0]!.map(({ seq }) => seq))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  (KILLS + 2) * MAX_MILLIS_PER_KILL,
)

async function stormAndKill({ nodes }: Example, victim: ExampleNode, accounts: StormAccount[]): Promise<void> {
  const acknowledged = () => accounts.reduce((sum, { commits }) => sum + commits.length, 0)
  let isOver = false
  const storm = Promise.all(
    accounts.flatMap((account) => nodes.map(({ server }, writer) => account.writeUntilGone(server.url, writer, () => isOver))),
  )
  const untilWritten = async (count: number) => {
    for (const before = acknowledged(); acknowledged() - before < count;) await Promise.race([storm, Bun.sleep(1)])
  }
  await untilWritten(WRITES_BEFORE_KILL)
  victim.server.signal('SIGKILL')
  await victim.server.exited
  await untilWritten(WRITES_AFTER_KILL)
  isOver = true
  await storm
}

/** All events up to the newest commit of every account. */
async function eventsAt(url: string, accounts: StormAccount[]): Promise<{ seq: number; commit: string }[]> {
  const latest = await Promise.all(accounts.map(({ did }) => request(`${url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)))
  const missing = new Set(latest.map(({ body }) => body.cid as string))
  const subscriber = new Subscriber(url, '?cursor=0')
  for (let next = 0; missing.size > 0; next++) missing.delete(String((await subscriber.until(next + 1))[next]!.body['commit']))
  subscriber.close()
  return subscriber.messages.map(({ body }) => ({ seq: body.seq, commit: String(body['commit']) }))
}

/** A consumer that goes on at another node, from its cursor, whenever its connection ends. */
class Reader {
  readonly seqs: number[] = []
  readonly #reading: Promise<void>
  #current: Subscriber | null = null
  #isOver = false

  constructor(readonly nodes: readonly ExampleNode[]) {
    this.#reading = this.#read()
  }

  async #read(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const subscriber = (this.#current = new Subscriber(
        this.nodes[turn % this.nodes.length]!.server.url,
        `?cursor=${this.seqs.at(-1) ?? 0}`,
      ))
      // A node that is down refuses the connection.
      await Promise.allSettled([subscriber.opened, subscriber.closed])
      this.seqs.push(...subscriber.seqs)
    }
  }

  async until(count: number): Promise<void> {
    while (this.seqs.length + (this.#current?.seqs.length ?? 0) < count) await Bun.sleep(1)
    await this.end()
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#current?.close()
    await this.#reading
  }
}
