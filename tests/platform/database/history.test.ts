/**
 * PostgreSQL that has lost what it had acknowledged: every node notices, and none goes on as if nothing had happened.
 */
import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import {
  DatabaseUnavailable,
  HistoryContinued,
  HistoryLost,
  lockOn,
  sql,
  type Database,
} from '../../../src/platform/database/database.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import type { PostgresCluster } from '../../../src/platform/database/postgres-cluster.ts'
import { startDatabaseLine, type DatabaseLine } from '../../support/faults/database-line.ts'
import { startServer, startStandby, testDatabase, type PostgresServer } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const NAME = 'holdfast'

const add = (db: Database, name: string) =>
  db.transactionOn(lockOn('test', name), (tx) => tx.run(sql`INSERT INTO entry (name) VALUES (${name})`))
const namesIn = async (db: Database) =>
  (await db.all<{ name: string }>(sql`SELECT name FROM entry ORDER BY name`)).map(({ name }) => name)

async function withTables(url: string): Promise<void> {
  const db = await openPostgres({ url })
  await migrate(db, migrations, 0)
  await db.run(sql`CREATE TABLE entry (name TEXT PRIMARY KEY)`)
  await db.close()
}

/** It waits less than a server does, so that an outage is short. */
async function node(url: string): Promise<Database> {
  const db = await openPostgres({ url, access: 'shared', pace: 1 / 4 })
  await db.cluster!.join('1.2.3')
  return db
}

const isWhole = async (db: Database) =>
  (await db.get<{ whole: boolean }>(sql`SELECT ${db.cluster!.history.isWhole()} AS whole`))!.whole

/** The node has ended, and says why and what to do. */
async function hasEnded(db: Database, why: RegExp): Promise<void> {
  await until(() => db.ended.aborted)
  expect(db.ended.reason).toBeInstanceOf(HistoryLost)
  expect(db.ended.reason.message).toMatch(why)
  expect(db.ended.reason.message).toContain('holdfast restore --database-restored')
  expect(await thrownBy(add(db, 'never'))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(namesIn(db))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(db.snapshot((reader) => reader.get(sql`SELECT 1`)))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(db.shortSnapshot((reader) => reader.get(sql`SELECT 1`)))).toThrow(DatabaseUnavailable)
}

interface Given {
  server: PostgresServer
  line: DatabaseLine
  nodes: [Database, Database]
}

/** A server of the test's own, and two nodes over a line to it. */
async function withServer(work: (given: Given) => Promise<void>): Promise<void> {
  const server = await startServer()
  try {
    await server.createDatabase(NAME)
    await withTables(server.url(NAME))
    await using line = await startDatabaseLine(server.url(NAME))
    const nodes: [Database, Database] = [await node(line.databaseUrl), await node(line.databaseUrl)]
    await work({ server, line, nodes }).finally(() => Promise.all(nodes.map((each) => each.close())))
  } finally {
    server.stop()
  }
}

/** The server is lost, and every connection ends. */
async function crash({ server, line }: Given): Promise<void> {
  await server.crash()
  line.cut()
}

/** A standby that has seen the first change and not the second one is where the line leads to from then on. */
async function withStandby(
  given: Given,
  work: (standby: PostgresServer) => Promise<void>,
  lose: (given: Given) => unknown = crash,
): Promise<void> {
  const { server, line, nodes } = given
  await using replication = await startDatabaseLine(server.url('postgres'))
  const standby = await startStandby(server, replication.databaseUrl)
  try {
    await add(nodes[0], 'kept')
    await server.followedBy(standby)
    replication.freeze()
    await add(nodes[0], 'lost')
    line.leadTo(standby.url(NAME))
    await lose(given)
    await work(standby)
  } finally {
    line.cut()
    standby.stop()
  }
}

test('after a failover that lost a change no node reads or writes, whether it had made the change or not', async () => {
  await withServer((given) =>
    withStandby(given, async (standby) => {
      const [one, other] = given.nodes
      // Before it is promoted, the standby is a database that cannot be used, and nothing is lost.
      await until(() => given.nodes.every((each) => each.cluster!.history.isDoubtful))
      expect(await thrownBy(namesIn(one))).toThrow(DatabaseUnavailable)
      expect(await thrownBy(namesIn(other))).toThrow(DatabaseUnavailable)
      expect([one.ended.aborted, other.ended.aborted]).toEqual([false, false])
      await standby.promote()
      await Promise.all(
        given.nodes.map((each) => hasEnded(each, /it was copy \d+ 00000001 \d+ \d+, and is \d+ 00000002 \d+ \d+/)),
      )

      const next = await node(standby.url(NAME))
      expect(next.cluster!.history.broken).toBeInstanceOf(HistoryLost)
      expect([await namesIn(next), await isWhole(next)]).toEqual([['kept'], false])
      await next.transaction((tx) => next.cluster!.history.agree(tx, 0))
      expect([next.cluster!.history.broken, await isWhole(next)]).toEqual([null, true])
      await next.close()
    }),
  )
})

const reads: Record<string, (db: Database) => Promise<unknown>> = {
  'a read': namesIn,
  'a short snapshot': (db) => db.shortSnapshot((reader) => reader.all(sql`SELECT name FROM entry`)),
  'a snapshot': (db) => db.snapshot((reader) => reader.all(sql`SELECT name FROM entry`)),
}
test.each(Object.keys(reads))(
  '%s on a connection that opens after a failover, while the others are silent, waits until it is compared',
  async (kind) => {
    await withServer((given) =>
      withStandby(
        given,
        async (standby) => {
          const [one] = given.nodes
          await standby.promote()
          expect(await thrownBy(reads[kind]!(one))).toThrow(DatabaseUnavailable)
          // A comparison that takes longer than a read waits ends the node a moment later.
          await until(() => one.ended.aborted)
          expect(one.ended.reason).toBeInstanceOf(HistoryLost)
          const db = new SQL(standby.url(NAME), { max: 1 })
          await until(async () => (await db`SELECT lost FROM database_history`)[0].lost !== null)
          await db.close()
        },
        ({ line }) => line.freeze(),
      ),
    )
  },
)

test.each(Object.keys(reads))(
  '%s whose connection leads to a standby for a moment is not answered by it, and later ones are answered',
  async (kind) => {
    await withServer(async ({ server, line, nodes: [one] }) => {
      await using replication = await startDatabaseLine(server.url('postgres'))
      const standby = await startStandby(server, replication.databaseUrl)
      const watch = new SQL({ adapter: 'postgres', url: standby.url('postgres'), max: 1 })
      const hasAnswered = async () =>
        (await watch`SELECT 1 FROM pg_stat_activity WHERE datname = ${NAME} AND query LIKE '%database_history%'`)
          .length > 0
      try {
        await add(one, 'on the standby')
        await server.followedBy(standby)
        replication.freeze()
        await add(one, 'not on the standby')
        line.leadTo(standby.url(NAME))
        const found: unknown[] = []
        const read = async () => void found.push(await reads[kind]!(one).catch((error: unknown) => error))
        let isRefused = false
        const first = read().then(() => (isRefused = true))
        // The connection may be gone before it is seen: only some kinds of reads are repeated.
        await until(async () => isRefused || (await hasAnswered()))
        line.leadTo(server.url(NAME))
        await first
        await until(async () => {
          await read()
          return Array.isArray(found.at(-1))
        })
        for (const each of found)
          if (Array.isArray(each)) expect(each).toHaveLength(2)
          else expect(each).toBeInstanceOf(DatabaseUnavailable)
      } finally {
        await watch.close()
        standby.stop()
      }
    })
  },
)

test('a node that leaves reads on new connections, and does not miss what it has taken back', async () => {
  await withServer(async ({ nodes: [one, other] }) => {
    await add(other, 'kept')
    await (one.cluster as PostgresCluster).close()
    expect(await namesIn(one)).toEqual(['kept'])
    await one.close()
    expect(await other.cluster!.history.found()).toBeNull()
    await add(other, 'and goes on')
  })
})

/** A transaction that has changed something, and ends when it is told to. */
async function longTransaction(db: Database): Promise<{ end: () => void; made: Promise<unknown> }> {
  const begun = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const made = db.transactionOn(lockOn('test', 'late'), async (tx) => {
    await tx.run(sql`INSERT INTO entry (name) VALUES ('late')`)
    begun.resolve()
    await held.promise
  })
  await begun.promise
  return { end: held.resolve, made }
}

/** A node that joins deletes the marks of those that have left. */
const joinAndLeave = async ({ line }: Given) => (await node(line.databaseUrl)).close()

test('a transaction that runs while its node is closed is made, though another node joins', async () => {
  await withServer(async (given) => {
    const [one, other] = given.nodes
    const { end, made } = await longTransaction(one)
    const closed = one.close()
    await joinAndLeave(given)
    end()
    await Promise.all([made, closed])
    expect([await namesIn(other), await other.cluster!.history.found()]).toEqual([['late'], null])
  })
})

test('a transaction that outlasts its node is refused, and nothing counts as lost', async () => {
  await withServer(async (given) => {
    const [one, other] = given.nodes
    const { end, made } = await longTransaction(one)
    const closed = one.close()
    const hasLeft = async () => (await other.all(sql`SELECT id FROM node`)).length === 1
    await until(hasLeft)
    await joinAndLeave(given)
    end()
    expect(await thrownBy(made)).toThrow(DatabaseUnavailable)
    await closed
    expect([await namesIn(other), await other.cluster!.history.found()]).toEqual([[], null])
    await add(other, 'and goes on')
  })
})

test('a role that may not ask which server it is notices what is missing', async () => {
  const functions = ['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']
  const server = await startServer()
  try {
    await server.createDatabase(NAME)
    await withTables(server.url(NAME))
    const admin = new SQL({ adapter: 'postgres', url: server.url(NAME), max: 1 })
    await admin.unsafe('CREATE ROLE plain LOGIN')
    await admin.unsafe('GRANT ALL ON ALL TABLES IN SCHEMA public TO plain')
    for (const each of functions) await admin.unsafe(`REVOKE EXECUTE ON FUNCTION ${each} FROM PUBLIC`)
    await admin.close()
    await using line = await startDatabaseLine(server.url(NAME))
    const url = line.databaseUrl.replace('postgres@', 'plain@')
    const nodes: [Database, Database] = [await node(url), await node(url)]
    await withStandby({ server, line, nodes }, async (standby) => {
      await standby.promote()
      await hasEnded(nodes[0], /a change that was acknowledged is missing/)
      await Promise.all(nodes.map((each) => each.close()))
    })
  } finally {
    server.stop()
  }
})

test('an old copy that is put in the place of the data under running nodes is noticed by both, and recorded', async () => {
  await withServer(async ({ server, nodes: [one, other] }) => {
    await add(one, 'kept')
    const copy = await server.copy()
    await add(one, 'lost')
    // What the other one knows is that it was alive.
    const beats = async () =>
      (await one.get<{ beats: number }>(sql`SELECT beats FROM node WHERE id = ${other.cluster!.node.id}`))!.beats
    const before = await beats()
    await until(async () => (await beats()) > before)
    await server.replaceData(copy)
    await Promise.all([
      hasEnded(one, /a change that was acknowledged is missing|heartbeats of a node/),
      hasEnded(other, /is missing|heartbeats of a node/),
    ])

    // Its identity is what it was, so a node that starts now knows by the row.
    await Promise.all([one.close(), other.close()])
    const next = await node(server.url(NAME))
    expect(next.cluster!.history.broken!.message).toMatch(/is missing|heartbeats of a node/)
    expect([await namesIn(next), await isWhole(next)]).toEqual([['kept'], false])
    await next.close()
  })
})

test('a database that was made anew from a dump is another one', async () => {
  await withServer(async ({ server, nodes }) => {
    await Promise.all(nodes.map((each) => each.close()))
    await server.createDatabase('dump', NAME)
    const before = await node(server.url(NAME))
    expect(before.cluster!.history.broken).toBeNull()
    await before.close()
    await server.dropDatabase(NAME)
    await server.createDatabase(NAME, 'dump')
    const after = await node(server.url(NAME))
    expect(after.cluster!.history.broken).toBeInstanceOf(HistoryLost)
    await after.close()
  })
})

test('tables that are replaced under open connections are noticed by the next change', async () => {
  await withServer(async ({ server, nodes: [one, other] }) => {
    await add(one, 'kept')
    const admin = new SQL({ adapter: 'postgres', url: server.url(NAME), max: 1 })
    await admin.unsafe(
      'BEGIN; CREATE TABLE marks AS SELECT writer, node, mark - 1 AS mark FROM commit_mark; DELETE FROM commit_mark',
    )
    await admin.unsafe('INSERT INTO commit_mark SELECT * FROM marks; COMMIT')
    await admin.close()
    expect(await thrownBy(add(one, 'never'))).toThrow(DatabaseUnavailable)
    await hasEnded(one, /a change that was acknowledged is missing/)
    // The other one reads it in the row, with its next heartbeat.
    await hasEnded(other, /a change that was acknowledged is missing/)
  })
})

test('a server that is killed and starts again has lost nothing, and the nodes go on', async () => {
  await withServer(async ({ server, nodes: [one, other] }) => {
    await add(one, 'before')
    await server.crash()
    await server.restart()
    await until(() =>
      add(other, 'after').then(
        () => true,
        () => false,
      ),
    )
    await until(() =>
      namesIn(one).then(
        (names) => names.length === 2,
        () => false,
      ),
    )
    expect([one.ended.aborted, other.ended.aborted, await isWhole(one)]).toEqual([false, false, true])
  })
})

test('a node that was cut off while others went on with another copy has to begin anew, and blames nobody', async () => {
  const { databaseUrl, drop } = await testDatabase()
  await using line = await startDatabaseLine(databaseUrl)
  const cutOff = await node(line.databaseUrl)
  const other = await node(databaseUrl)
  line.watch = () => 'lose'
  line.cut()
  await other.transaction((tx) => other.cluster!.history.agree(tx, 7))
  line.watch = () => 'pass'
  await until(() => cutOff.ended.aborted)
  expect(cutOff.ended.reason).toBeInstanceOf(HistoryContinued)
  const anew = await node(databaseUrl)
  expect(anew.cluster!.history).toMatchObject({
    broken: null,
    keptThrough: 7,
    generation: other.cluster!.history.generation,
  })
  expect([await isWhole(anew), await isWhole(other)]).toEqual([true, true])
  await Promise.all([cutOff.close(), other.close(), anew.close()])
  await drop()
})
