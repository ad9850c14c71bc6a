/**
 * Three nodes whose PostgreSQL fails over to an asynchronous standby, which lacks the last change: what a subscriber
 * has seen is never told in another way, and nobody is left with a state that the service does not have.
 */
import { expect, test } from 'bun:test'
import { createAccount, holder, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { startDatabaseLine } from '../../support/faults/database-line.ts'
import { runProgram } from '../../support/servers/program.ts'
import { startServer, startStandby } from '../../support/servers/postgres.ts'
import { Subscriber, type Message } from '../../support/clients/subscriber.ts'
import { until } from '../../support/until.ts'
import { startExample, type Example, type ExampleNode } from './example.ts'
import { thrownBy } from '../../support/thrown.ts'

const NAME = 'holdfast'
const COLLECTION = 'com.example.note'
const MAX_MILLIS = 90_000

const at = ({ server }: ExampleNode) => ({ url: server.url })
const kindOf = ({ type, body }: Message) => `${type} ${String(body['repo'] ?? body['did'])}`

async function write(node: ExampleNode, account: TestAccount, text: string): Promise<string> {
  const json = { repo: account.did, collection: COLLECTION, record: { $type: COLLECTION, text } }
  const { status, body } = await holder(at(node), account).call('com.atproto.repo.createRecord', { json })
  expect(status).toBe(200)
  return body.uri.split('/').at(-1)
}

const statusOf = async (node: ExampleNode, account: TestAccount, rkey: string) =>
  (await xrpc(at(node), `com.atproto.repo.getRecord?repo=${account.did}&collection=${COLLECTION}&rkey=${rkey}`)).status

interface Failed {
  cluster: Example
  /** One of them wrote what was lost, the other one did not. */
  alice: TestAccount
  bob: TestAccount
  kept: string
  lost: string
  /** What the subscribers of each node have seen. */
  seen: Message[]
}

/** Runs `work` when the standby has been promoted. */
async function afterFailover(env: Record<string, string>, work: (failed: Failed) => Promise<void>): Promise<void> {
  const primary = await startServer()
  const standbys: { stop(): void }[] = []
  try {
    await primary.createDatabase(NAME)
    await using replication = await startDatabaseLine(primary.url('postgres'))
    await using line = await startDatabaseLine(primary.url(NAME))
    await using cluster = await startExample({
      env: { SERVICE_RATE_LIMIT_ENABLED: 'false', ...env },
      databaseUrls: Array(3).fill(line.databaseUrl),
    })
    const [one, two, three] = cluster.nodes as [ExampleNode, ExampleNode, ExampleNode]
    const alice = await createAccount(at(one), 'alice')
    const bob = await createAccount(at(two), 'bob')
    const kept = await write(one, alice, 'kept')
    const standby = await startStandby(primary, replication.databaseUrl)
    standbys.push(standby)
    await primary.followedBy(standby)

    replication.freeze()
    const subscribers = cluster.nodes.map(({ server }) => new Subscriber(server.url, '?cursor=0'))
    const lost = await write(three, alice, 'lost')
    const commits = (messages: readonly Message[]) => messages.filter(({ type }) => type === '#commit').length
    // Two made the repositories.
    await Promise.all(subscribers.map((subscriber) => subscriber.untilSeen((messages) => commits(messages) === 4)))
    await primary.crash()
    line.leadTo(standby.url(NAME))
    line.cut()
    await standby.promote()
    await work({ cluster, alice, bob, kept, lost, seen: subscribers[0]!.messages })
  } finally {
    primary.stop()
    for (const standby of standbys) standby.stop()
  }
}

/** Each number has been given to one event, and what comes after those that were seen has higher numbers. */
function checkNumbers(seen: readonly Message[], logs: readonly (readonly Message[])[]): void {
  const last = seen.at(-1)!.body.seq
  const frames = new Map(seen.map(({ body, bytes }) => [body.seq, bytes.toString('hex')]))
  for (const log of logs)
    for (const { body, bytes } of log) {
      if (body.seq <= last) expect(bytes.toString('hex')).toBe(frames.get(body.seq)!)
      frames.set(body.seq, bytes.toString('hex'))
    }
}

/** The log from a number on, as each node sends it, up to a commit. */
const logsFrom = (cluster: Example, cursor: number, commit: string): Promise<Message[][]> =>
  Promise.all(
    cluster.nodes.map(async ({ server }) => {
      const subscriber = new Subscriber(server.url, `?cursor=${cursor}`)
      await subscriber.untilSeen((messages) => String(messages.at(-1)?.body['commit']) === commit)
      subscriber.close()
      return subscriber.messages
    }),
  )

const headOf = async (node: ExampleNode, { did }: TestAccount) =>
  (await xrpc(at(node), `com.atproto.sync.getLatestCommit?did=${did}`)).body.cid as string

test(
  'the nodes stop and say what to do, and serve again once that was done',
  () =>
    afterFailover({}, async ({ cluster, alice, bob, kept, lost, seen }) => {
      expect(await Promise.all(cluster.nodes.map(({ server }) => server.exited))).toEqual([1, 1, 1])
      for (const { server } of cluster.nodes)
        expect(server.output()).toContain('run "holdfast restore --database-restored"')
      const [one] = cluster.nodes as [ExampleNode]
      expect(await thrownBy(one.restart())).toThrow('run "holdfast restore --database-restored"')
      const sweep = await runProgram(['sweep', '--dev', 'name-claims'], { ...one.env, SERVICE_ADMIN_TOKEN: '' })
      expect(sweep).toMatchObject({
        code: 1,
        err: expect.stringContaining('run "holdfast restore --database-restored"'),
      })

      const restored = await runProgram(['restore', '--dev', '--database-restored'], one.env)
      expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('2 accounts announced again') })
      await Promise.all(cluster.nodes.map((node) => node.restart()))
      const after = await write(one, bob, 'after')
      const logs = await logsFrom(cluster, seen.at(-1)!.body.seq, await headOf(one, bob))
      for (const log of logs) expect(log.map(kindOf)).toEqual(logs[0]!.map(kindOf))
      expect(logs[0]!.slice(0, 6).map(kindOf).toSorted()).toEqual(
        [alice, bob]
          .flatMap(({ did }) => ['#account', '#identity', '#sync'].map((type) => `${type} ${did}`))
          .toSorted(),
      )
      checkNumbers(seen, [...logs, ...(await logsFrom(cluster, 0, await headOf(one, bob)))])
      for (const node of cluster.nodes)
        expect([
          await statusOf(node, alice, kept),
          await statusOf(node, alice, lost),
          await statusOf(node, bob, after),
        ]).toEqual([200, 400, 200])
    }),
  MAX_MILLIS,
)

test(
  'with database.after_failover = continue, the nodes continue by themselves and announce what differs from what they have sent',
  () =>
    afterFailover(
      { SERVICE_DATABASE_AFTER_FAILOVER: 'continue' },
      async ({ cluster, alice, bob, kept, lost, seen }) => {
        const [one, two] = cluster.nodes as [ExampleNode, ExampleNode]
        await until(() =>
          cluster.nodes.every(({ server }) => / stopped[^]*Holdfast is listening/.test(server.output())),
        )
        await cluster.untilReady(cluster.nodes.length)
        const synced = await headOf(two, alice)
        const after = await write(two, alice, 'after')
        const logs = await logsFrom(cluster, seen.at(-1)!.body.seq, await headOf(one, alice))
        for (const log of logs)
          expect(log.map(({ bytes }) => bytes.toString('hex'))).toEqual(
            logs[0]!.map(({ bytes }) => bytes.toString('hex')),
          )
        // Every node has sent the event that was lost, and so does not rely on the others.
        const kinds = logs[0]!.map(kindOf)
        expect(kinds.at(-1)).toBe(`#commit ${alice.did}`)
        expect(new Set(kinds.slice(0, -1))).toEqual(
          new Set(['#identity', '#account', '#sync'].map((type) => `${type} ${alice.did}`)),
        )
        expect(logs[0]!.at(-2)!.body['rev']).toBe(logs[0]!.at(-1)!.body['since'])
        expect(synced).not.toBe(String(seen.findLast(({ type }) => type === '#commit')!.body['commit']))
        const whole = await logsFrom(cluster, 0, await headOf(one, alice))
        checkNumbers(seen, [...logs, ...whole])
        // What is only in the memory of those who sent it is sent no more.
        for (const log of whole)
          expect(log.map(({ body }) => String(body['commit']))).not.toContain(String(seen.at(-1)!.body['commit']))
        for (const node of cluster.nodes)
          expect([
            await statusOf(node, alice, kept),
            await statusOf(node, alice, lost),
            await statusOf(node, alice, after),
          ]).toEqual([200, 400, 200])
        await write(one, bob, 'of the other')
      },
    ),
  MAX_MILLIS,
)
