/** Servers that share a database: notifications, leases and who is there, whichever database the suite runs on. */
import { afterAll, beforeAll, beforeEach, afterEach, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { LeaseLost, sql, type Cluster, type Database, type Lease } from '../../../src/platform/database/database.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import { startDatabaseLine } from '../../support/faults/database-line.ts'
import { testDatabase, type TestDatabase } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

let place: TestDatabase
let admin: SQL
let one: Database & { cluster: Cluster }
let other: Database & { cluster: Cluster }

async function node(): Promise<Database & { cluster: Cluster }> {
  const db = await openPostgres({ url: place.databaseUrl, strict: true })
  await db.cluster!.join('1.2.3')
  return db as Database & { cluster: Cluster }
}

beforeAll(async () => {
  place = await testDatabase()
  admin = new SQL({ adapter: 'postgres', url: place.databaseUrl, max: 1 })
})
beforeEach(async () => {
  one = await node()
  other = await node()
})
afterEach(async () => {
  await Promise.all([one.close(), other.close()])
})
afterAll(async () => {
  await admin.close()
  await place.drop()
})

/** As when the line to the database is cut: all connections, or those that last did this. */
const cut = (query = '%') =>
  admin.unsafe(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE $1',
    [query],
  )
const sessions = '%pg_backend_pid() AS pid%'

test('a notification wakes the listeners of its channel on every node, and none if the transaction fails', async () => {
  const heard: string[] = []
  const ends = [one, other].flatMap((db, i) =>
    ['news', 'else'].map((channel) => db.cluster.listen(channel, () => heard.push(`${i} ${channel}`))),
  )
  await until(() => heard.length === 4)
  heard.length = 0
  expect(
    await thrownBy(
      one.transaction(async (tx) => {
        one.cluster.notify(tx, 'else')
        throw new Error('no')
      }),
    ),
  ).toThrow('no')
  await one.transaction(async (tx) => one.cluster.notify(tx, 'news'))
  await until(() => heard.length >= 2)
  expect(heard.toSorted()).toEqual(['0 news', '1 news'])
  for (const end of ends) end()
  await one.transaction(async (tx) => one.cluster.notify(tx, 'news'))
  expect(heard.length).toBe(2)
})

test('a listener whose connection was lost is called again, because it may have missed something', async () => {
  let calls = 0
  const end = one.cluster.listen('news', () => calls++)
  await until(() => calls === 1)
  await cut('LISTEN%')
  await until(() => calls === 2)
  await other.transaction(async (tx) => other.cluster.notify(tx, 'news'))
  await until(() => calls === 3)
  end()
  await other.transaction(async (tx) => other.cluster.notify(tx, 'news'))
  expect(calls).toBe(3)
})

test('a node whose connection for notifications alone carries nothing any more listens on another', async () => {
  await using line = await startDatabaseLine(place.databaseUrl)
  const deaf = await openPostgres({ url: line.databaseUrl, pace: 1 / 8 })
  await using _ = { [Symbol.asyncDispose]: () => deaf.close() }
  await deaf.cluster!.join('1.2.3')
  let calls = 0
  deaf.cluster!.listen('news', () => calls++)
  await until(() => calls === 1)
  expect(line.freezeListeners()).toBe(1)
  await other.transaction(async (tx) => other.cluster.notify(tx, 'news'))
  await until(() => calls === 2)
  await other.transaction(async (tx) => other.cluster.notify(tx, 'news'))
  await until(() => calls === 3)
})

test('one node at a time holds a lease, and the number grows', async () => {
  const first = (await one.cluster.take('work'))!
  expect(await other.cluster.take('work')).toBeNull()
  expect(await one.cluster.take('work')).toBeNull()
  expect(await other.cluster.take('other work')).not.toBeNull()
  await first.release()
  expect(first.lost.aborted).toBe(true)
  const second = (await other.cluster.take('work'))!
  expect(second.fence).toBeGreaterThan(first.fence)
  await first.release()
  expect(await one.cluster.take('work')).toBeNull()
  expect(await one.cluster.leases()).toMatchObject([
    { name: 'other work', holder: other.cluster.node.id, isHeld: true },
    { name: 'work', holder: other.cluster.node.id, fence: second.fence, isHeld: true },
  ])
  await second.release()
  expect((await one.cluster.leases()).find(({ name }) => name === 'work')).toMatchObject({ isHeld: false })
})

test('of many who ask at once, one gets the lease', async () => {
  const taken = await Promise.all([one, other, one, other].map((db) => db.cluster.take('race')))
  expect(taken.filter((lease) => lease !== null).length).toBe(1)
})

test('a node whose session was cut has lost its leases, and its transactions are refused once another took over', async () => {
  const lease = (await one.cluster.take('cut'))!
  await one.transaction((tx) => lease.guard(tx))
  await cut(sessions)
  await until(() => lease.lost.aborted)
  const next = await taken(other, 'cut')
  expect(await thrownBy(one.transaction((tx) => lease.guard(tx)))).toThrow(LeaseLost)
  await other.transaction((tx) => next.guard(tx))
  await lease.release()
  await other.transaction((tx) => next.guard(tx))
})

test('nobody takes over while a guarded transaction of the holder before is open', async () => {
  const lease = (await one.cluster.take('guarded'))!
  const order: string[] = []
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const loose = await openPostgres({ url: place.databaseUrl })
  const transaction = loose.transaction(async (tx) => {
    await lease.guard(tx)
    open()
    await tx.all(sql`SELECT pg_sleep(0.3)`)
    await lease.guard(tx)
    order.push('last of the old holder')
  })
  await opened
  await cut(sessions)
  await until(() => lease.lost.aborted)
  await taken(other, 'guarded')
  order.push('first of the new one')
  await transaction
  expect(order).toEqual(['last of the old holder', 'first of the new one'])
  await loose.close()
})

async function taken(db: { cluster: Cluster }, name: string): Promise<Lease> {
  let lease: Lease | null = null
  await until(async () => (lease = await db.cluster.take(name).catch(() => null)) !== null)
  return lease!
}

test('work of one node at a time goes on at another when its node ends or is cut off', async () => {
  const running = new Set<string>()
  const starts: string[] = []
  const faults: unknown[] = []
  const work = (name: string) => async (lease: Lease) => {
    running.add(name)
    starts.push(name)
    if (running.size > 1) faults.push('two at once')
    if (!lease.lost.aborted) await new Promise((resolve) => lease.lost.addEventListener('abort', resolve))
    running.delete(name)
  }
  one.cluster.whileHolding('numbers', work('one'), (error) => faults.push(error))
  await until(() => starts.length === 1)
  const end = other.cluster.whileHolding('numbers', work('other'), (error) => faults.push(error))
  await one.close()
  expect(running.has('one')).toBe(false)
  await until(() => starts.length === 2)
  await cut(sessions)
  await until(() => starts.length === 3)
  await end()
  expect(starts).toEqual(['one', 'other', 'other'])
  expect(running.size).toBe(0)
  expect(faults).toEqual([])
  one = await node()
})

test('work that fails is reported, and done again', async () => {
  const errors: unknown[] = []
  const end = one.cluster.whileHolding(
    'failing',
    async () => {
      throw new Error('of the work')
    },
    (error) => errors.push(error),
  )
  await until(() => errors.length === 2)
  await end()
  expect(await other.cluster.take('failing')).not.toBeNull()
})

test('nodes see each other until they leave', async () => {
  const seen = await other.cluster.nodes()
  expect(seen.map(({ id }) => id)).toEqual([one.cluster.node.id, other.cluster.node.id])
  expect(seen[0]).toMatchObject({ name: one.cluster.node.name, version: '1.2.3', isAlive: true })
  await one.close()
  expect((await other.cluster.nodes()).map(({ id }) => id)).toEqual([other.cluster.node.id])
  one = await node()
})
