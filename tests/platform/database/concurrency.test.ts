/** Which transactions run beside others on PostgreSQL, on one node and on several. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  accountLock,
  isUniqueViolation,
  lockOn,
  sql,
  together,
  WriteConflict,
  type Database,
  type Tx,
} from '../../../src/platform/database/database.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import { testDatabase, type TestDatabase } from '../../support/servers/postgres.ts'
import { thrownBy } from '../../support/thrown.ts'

let place: TestDatabase
let nodes: [Database, Database]
beforeAll(async () => {
  place = await testDatabase()
  const open = () => openPostgres({ url: place.databaseUrl, access: 'shared' })
  nodes = [await open(), await open()]
  await nodes[0].run(sql`CREATE TABLE counter (name TEXT PRIMARY KEY, value BIGINT NOT NULL)`)
  await nodes[0].run(sql`CREATE TABLE entry (id TEXT PRIMARY KEY)`)
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()))
  await place.drop()
})

/** A transaction that has begun, and ends when it is told to. */
function begun(node: Database, begin: (node: Database, work: (tx: Tx) => Promise<void>) => Promise<void>) {
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  const { promise: told, resolve: end } = Promise.withResolvers<void>()
  let isOver = false
  const over = begin(node, async (tx) => {
    await tx.get(sql`SELECT 1 AS one`)
    start()
    await told
  }).finally(() => (isOver = true))
  return { started, end, over, isOver: () => isOver }
}
const on = (lock: string) => (node: Database, work: (tx: Tx) => Promise<void>) =>
  node.transactionOn(lockOn('test', lock), work)
const alone = (node: Database, work: (tx: Tx) => Promise<void>) => node.transaction(work)
/** Long enough for a transaction that nothing keeps from running. */
const aMoment = async () => {
  for (let i = 0; i < 20; i++) await nodes[0].get(sql`SELECT pg_sleep(0.01)`)
}

for (const [name, other] of [
  ['of one node', 0],
  ['of two nodes', 1],
] as const) {
  test(`transactions ${name} with different locks run beside each other`, async () => {
    const first = begun(nodes[0], on('a'))
    await first.started
    const second = begun(nodes[other], on('b'))
    await second.started
    expect(first.isOver()).toBe(false)
    second.end()
    await second.over
    first.end()
    await first.over
  })

  test(`transactions ${name} with the same lock run one after another`, async () => {
    const first = begun(nodes[0], on('a'))
    await first.started
    const second = begun(nodes[other], on('a'))
    second.end()
    await aMoment()
    expect(second.isOver()).toBe(false)
    first.end()
    await Promise.all([first.over, second.over])
  })

  test(`a transaction without locks runs alone, ${name}`, async () => {
    const first = begun(nodes[0], on('a'))
    await first.started
    const second = begun(nodes[other], alone)
    const third = begun(nodes[other], on('b'))
    for (const one of [second, third]) one.end()
    await aMoment()
    expect([second.isOver(), third.isOver()]).toEqual([false, false])
    first.end()
    await Promise.all([first.over, second.over, third.over])
  })

  test(`what transactions ${name} count under a lock is right`, async () => {
    await nodes[0].run(sql`INSERT INTO counter (name, value) VALUES (${name}, 0)`)
    const add = async (tx: Tx) => {
      const { value } = (await tx.get<{ value: number }>(sql`SELECT value FROM counter WHERE name = ${name}`))!
      await tx.run(sql`UPDATE counter SET value = ${value + 1} WHERE name = ${name}`)
    }
    const lock = accountLock(name)
    await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        i % 10 === 0 ? nodes[0].transaction(add) : nodes[i % 2 === 0 ? 0 : other].transactionOn(lock, add),
      ),
    )
    expect(await nodes[0].get(sql`SELECT value FROM counter WHERE name = ${name}`)).toEqual({ value: 120 })
  })
}

test('locks that are named in different orders do not wait for each other in a circle', async () => {
  const names = ['one', 'two', 'three'].map((name) => lockOn('test', name))
  const work = (tx: Tx) => tx.get<{ one: number }>(sql`SELECT 1 AS one`)
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      nodes[i % 2]!.transactionOn([names[i % 3]!, names[(i + 1 + (i % 2)) % 3]!], work),
    ),
  )
  expect(outcomes).toEqual(Array(60).fill({ one: 1 }))
})

test('transactions that wait for rows of each other in a circle are run again', async () => {
  await nodes[0].run(sql`INSERT INTO counter (name, value) VALUES ('x', 0), ('y', 0)`)
  const both = (first: string, second: string) => async (tx: Tx) => {
    await tx.run(sql`UPDATE counter SET value = value + 1 WHERE name = ${first}`)
    await tx.get(sql`SELECT pg_sleep(0.05)`)
    await tx.run(sql`UPDATE counter SET value = value + 1 WHERE name = ${second}`)
  }
  await Promise.all([nodes[0].transactionOn([], both('x', 'y')), nodes[1].transactionOn([], both('y', 'x'))])
  expect(await nodes[0].all(sql`SELECT value FROM counter WHERE name IN ('x', 'y')`)).toEqual([
    { value: 2 },
    { value: 2 },
  ])
})

test('a transaction that found a row changed is run again, and in the end alone', async () => {
  let runs = 0
  const insist = nodes[0].transactionOn([], async () => {
    runs++
    throw new WriteConflict('something')
  })
  expect(await thrownBy(insist)).toThrow(WriteConflict)
  expect(runs).toBeGreaterThan(2)
})

test('in a group, one that fails before it has changed anything costs the others nothing; one that fails later falls alone', async () => {
  const runs = new Map<string, number>()
  const effects: string[] = []
  const add = (id: string, fails: 'early' | 'late' | null = null) =>
    nodes[0].transactionOn(accountLock('the group'), async (tx) => {
      runs.set(id, (runs.get(id) ?? 0) + 1)
      tx.afterCommit(() => effects.push(id))
      await tx.get(sql`SELECT 1 AS one`)
      if (fails === 'early') throw new Error('early')
      await tx.run(sql`INSERT INTO entry (id) VALUES (${id})`)
      if (fails === 'late') throw new Error('late')
    })
  const early = await Promise.allSettled([add('a'), add('b', 'early'), add('c')])
  expect(early.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect([...runs.values()]).toEqual([1, 1, 1])
  const late = await Promise.allSettled([add('d'), add('e', 'late'), add('a'), add('f')])
  expect(late.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  expect((await nodes[1].all<{ id: string }>(sql`SELECT id FROM entry ORDER BY id`)).map(({ id }) => id)).toEqual([
    'a',
    'c',
    'd',
    'f',
  ])
  expect(effects).toEqual(['a', 'c', 'd', 'f'])
})

test('of statements that are sent together, the first that fails is the reason, and nothing goes on after it', async () => {
  const add = (tx: Tx, id: string) => tx.run(sql`INSERT INTO entry (id) VALUES (${id})`)
  await nodes[0].run(sql`INSERT INTO entry (id) VALUES ('there')`)
  const slow = async (tx: Tx) => {
    await add(tx, 'before')
    await add(tx, 'after')
  }
  const failing = nodes[0].transactionOn([], (tx) => together(slow(tx), add(tx, 'there'), add(tx, 'other')))
  const error = await failing.catch((reason: unknown) => reason)
  expect(isUniqueViolation(error)).toBe(true)
  expect(await nodes[0].all(sql`SELECT id FROM entry WHERE id IN ('before', 'after', 'other')`)).toEqual([])
})
