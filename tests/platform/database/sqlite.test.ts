import { Database as Connection } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  DatabaseUnavailable,
  inPieces,
  isUniqueViolation,
  sql,
  sqlAnd,
  sqlList,
  sqlRows,
  type Database,
  type Sql,
} from '../../../src/platform/database/database.ts'
import { migrate, SchemaTooNew } from '../../../src/platform/database/migrations.ts'
import { StoredNodes } from '../../../src/features/data/repo/node-store.ts'
import { LAST_PATH, listRecordHeads } from '../../../src/features/data/repo/record-store.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { openFiles } from '../../support/faults/open-files.ts'
import { thrownBy } from '../../support/thrown.ts'

const dir = mkdtempSync(join(tmpdir(), 'holdfast-db-'))
let db: Database

beforeAll(async () => {
  db = openSqlite({ path: join(dir, 'test.db'), strict: true })
  await db.run(sql`CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)`)
})
afterAll(async () => {
  await db.close()
  rmSync(dir, { recursive: true })
})

const names = async () =>
  (await db.all<{ name: string }>(sql`SELECT name FROM item ORDER BY name`)).map((row) => row.name)
const add = (name: string) => db.transaction(async (tx) => tx.run(sql`INSERT INTO item (name) VALUES (${name})`))

test('templates nest, and lists and rows become parameters', async () => {
  await db.run(
    sql`INSERT INTO item (id, name) VALUES ${sqlRows([
      [1, 'a'],
      [2, 'b'],
      [3, "c'; DROP TABLE item"],
    ])}`,
  )
  const where = sqlAnd([sql`id > ${1}`, sql`name IN ${sqlList(['b', 'a', "c'; DROP TABLE item"])}`])
  expect(await db.all<{ id: number }>(sql`SELECT id FROM item WHERE ${where} ORDER BY id`)).toEqual([
    { id: 2 },
    { id: 3 },
  ])
  expect(await db.all(sql`SELECT id FROM item WHERE id IN ${sqlList([])}`)).toEqual([])
  await db.run(sql`DELETE FROM item`)
})

test('a template with others in it has one text for each of them, and its own parameters every time', async () => {
  const newest = sql`ORDER BY id DESC LIMIT 1`
  const oldest = sql`ORDER BY id LIMIT 1`
  const above = (id: number, order: Sql) => sql`SELECT id FROM item WHERE ${sql`id > ${id}`} ${order}`
  await db.run(
    sql`INSERT INTO item (id, name) VALUES ${sqlRows([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ])}`,
  )
  for (let turn = 0; turn < 2; turn++) {
    expect([await db.get(above(0, oldest)), await db.get(above(1, oldest)), await db.get(above(1, newest))]).toEqual([
      { id: 1 },
      { id: 2 },
      { id: 3 },
    ])
  }
  expect(above(0, oldest).texts).toBe(above(7, oldest).texts)
  expect(above(0, oldest).texts).not.toBe(above(0, newest).texts)
  await db.run(sql`DELETE FROM item`)
})

test('transactions of one tick share a commit, and a failed one falls alone', async () => {
  const before = { ...db.counters }
  const outcomes = await Promise.allSettled([add('one'), add('two'), add('two'), add('three')])
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(isUniqueViolation((outcomes[2] as PromiseRejectedResult).reason)).toBe(true)
  expect(await names()).toEqual(['one', 'three', 'two'])
  expect(db.counters.commits - before.commits).toBe(1)
  expect(db.counters.transactions - before.transactions).toBe(4)
})

test.each([false, true])(
  'one of a group that fails after it has changed rows falls alone, and costs one repetition (strict: %p)',
  async (strict) => {
    const own = openSqlite({ path: join(dir, `careful-${strict}.db`), strict })
    await own.run(sql`CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)`)
    const announced: string[] = []
    const put = (name: string, { fails = false } = {}) =>
      own.transaction(async (tx) => {
        tx.afterCommit(() => announced.push(name))
        await tx.get(sql`INSERT INTO item (name) VALUES (${name}) RETURNING id`)
        if (fails) throw new Error(name)
      })
    const refuse = () => own.transaction(() => Promise.reject(new Error('before it changes anything')))
    /** Runs five at once, of which two fail. Returns how many transactions that took. */
    const group = async (round: string) => {
      const before = { ...own.counters }
      const outcomes = await Promise.allSettled([
        put(`${round} 1`),
        refuse(),
        put(`${round} 2`),
        put(`${round} failing`, { fails: true }),
        put(`${round} 3`),
      ])
      expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([true, false, true, false, true])
      expect(own.counters.commits - before.commits).toBe(1)
      return own.counters.transactions - before.transactions
    }
    expect(await group('one')).toBe(4 + 5)
    expect(await group('two')).toBe(5)
    const kept = ['one 1', 'one 2', 'one 3', 'two 1', 'two 2', 'two 3']
    expect(await own.all<{ name: string }>(sql`SELECT name FROM item ORDER BY id`)).toEqual(
      kept.map((name) => ({ name })),
    )
    expect(announced).toEqual(kept)
    await own.close()
  },
)

test('one of a group that fails after it has made a table leaves no table', async () => {
  const own = openSqlite({ path: join(dir, 'tables.db') })
  const outcomes = await Promise.allSettled([
    own.run(sql`CREATE TABLE kept (id INTEGER PRIMARY KEY)`),
    own.transaction(async (tx) => {
      await tx.run(sql`CREATE TABLE undone (id INTEGER PRIMARY KEY)`)
      throw new Error('changed its mind')
    }),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(await own.all<{ name: string }>(sql`SELECT name FROM sqlite_schema`)).toEqual([{ name: 'kept' }])
  await own.close()
})

test('strict mode runs work twice, keeps nothing of the first run, and counts and announces the second alone', async () => {
  const before = { ...db.counters }
  const seen: number[] = []
  const announced: number[] = []
  await db.transaction(async (tx) => {
    const { count } = (await tx.get<{ count: number }>(
      sql`SELECT count(*) AS count FROM item WHERE name = 'rehearsed'`,
    ))!
    seen.push(count)
    await tx.run(sql`INSERT INTO item (name) VALUES ('rehearsed')`)
    tx.afterCommit(() => announced.push(seen.length))
  })
  expect([seen, announced]).toEqual([[0, 0], [2]])
  expect([db.counters.transactions - before.transactions, db.counters.rows - before.rows]).toEqual([1, 1])
  await db.run(sql`DELETE FROM item WHERE name = 'rehearsed'`)
})

test('a transaction gives others turns to read what was before, and none to write', async () => {
  const seen: string[] = []
  const counted = async () =>
    (await db.get<{ count: number }>(sql`SELECT count(*) AS count FROM item WHERE name LIKE 'turn%'`))!.count
  const long = db.transaction(async (tx) => {
    for (let i = 0; i < 3; i++) {
      await tx.run(sql`INSERT INTO item (name) VALUES (${`turn${i}`})`)
      // Somebody reads in between.
      setImmediate(() => void counted().then((count) => seen.push(`read ${count}`)))
      await tx.turn()
    }
    seen.push('written')
  })
  const other = db
    .run(sql`INSERT INTO item (name) VALUES ('after')`)
    .then(async () => seen.push(`wrote after ${await counted()}`))
  await Promise.all([long, other])
  const reads = Array.from({ length: 3 }, () => 'read 0')
  // Strict mode runs it twice.
  expect(seen).toEqual([...reads, 'written', ...reads, 'written', 'wrote after 3'])
  await db.run(sql`DELETE FROM item WHERE name LIKE 'turn%' OR name = 'after'`)
})

test('a transaction that asks for a turn must not wait for anything else', async () => {
  const waiting = db.transaction(async (tx) => {
    await tx.turn()
    await Bun.sleep(1)
  })
  expect(await thrownBy(waiting)).toThrow('a transaction waited for something other than its database')
})

test('what a failed transaction did before its fault is gone', async () => {
  const failing = db.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO item (name) VALUES ('half')`)
    throw new Error('no')
  })
  expect(await thrownBy(failing)).toThrow('no')
  expect(await names()).not.toContain('half')
})

test('what is to be done after transactions is done in their order, and not after one that failed', async () => {
  const done: string[] = []
  const transaction = (name: string, fails = false) =>
    db.transaction(async (tx) => {
      tx.afterCommit(() => done.push(`${name} after ${db.counters.commits - commits} commit`))
      if (fails) throw new Error('no')
    })
  const { commits } = db.counters
  await Promise.allSettled([transaction('one'), transaction('two', true), transaction('three')])
  await Promise.allSettled([transaction('four', true)])
  expect(done).toEqual(['one after 1 commit', 'three after 1 commit'])
})

/** In a process of its own, for the runner of these tests takes every fault that nobody waits for as its own. */
const faultAfterCommit = `
  import { openSqlite } from ${JSON.stringify(join(import.meta.dir, '../../../src/platform/database/sqlite.ts'))}
  process.on('unhandledRejection', ({ message }) => console.log('told:', message))
  const db = openSqlite({ path: process.argv.at(-1) })
  await db.transaction(async (tx) => {
    tx.afterCommit(() => { throw new Error('a fault') })
    tx.afterCommit(() => console.log('the next one'))
  })
  console.log('answered')
  await db.transaction(async () => console.log('goes on'))
  await db.close()`

test('a fault in what is done after a transaction is told, and is the end of nothing', async () => {
  const child = Bun.spawn([process.execPath, '-e', faultAfterCommit, join(dir, 'fault.db')], { stdout: 'pipe' })
  expect((await child.stdout.text()).trim().split('\n').toSorted()).toEqual([
    'answered',
    'goes on',
    'the next one',
    'told: a fault',
  ])
  expect(await child.exited).toBe(0)
})

test('readers do not see what is not committed', async () => {
  await db.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO item (name) VALUES ('unseen')`)
    expect(await tx.get(sql`SELECT name FROM item WHERE name = 'unseen'`)).not.toBeNull()
    expect(await db.get(sql`SELECT name FROM item WHERE name = 'unseen'`)).toBeNull()
  })
  expect(await names()).toContain('unseen')
})

test('a transaction that waits for something else is refused where that is checked', async () => {
  const waiting = db.transaction(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
  })
  expect(await thrownBy(waiting)).toThrow('something other than its database')
})

test('values that would change on their way are refused', async () => {
  expect(await thrownBy(db.run(sql`INSERT INTO item (name) VALUES (${2 ** 60})`))).toThrow(TypeError)
  expect(await thrownBy(db.run(sql`INSERT INTO item (name) VALUES (${undefined as unknown as string})`))).toThrow(
    TypeError,
  )
})

test('migrations run once, in order, each whole or not at all, and a newer schema is refused', async () => {
  const path = join(dir, 'migrated.db')
  const first = {
    number: 1,
    name: 'first',
    text: '-- a; comment\nCREATE TABLE a (x INTEGER);\nINSERT INTO a (x) VALUES (1);\n',
  }
  const second = { number: 2, name: 'second', text: 'CREATE TABLE b (x INTEGER);\n' }
  const broken = { number: 3, name: 'broken', text: 'CREATE TABLE c (x INTEGER);\nINSERT INTO nowhere VALUES (1);\n' }
  const fresh = openSqlite({ path })
  expect(await migrate(fresh, [second, first], 0)).toEqual(['first', 'second'])
  expect(await migrate(fresh, [first, second], 0)).toEqual([])
  expect(await thrownBy(migrate(fresh, [first, second, broken], 0))).toThrow()
  expect(await fresh.get(sql`SELECT name FROM sqlite_master WHERE name = 'c'`)).toBeNull()
  expect(await thrownBy(migrate(fresh, [first], 0))).toThrow(SchemaTooNew)
  const later = Array.from({ length: 90 }, (_, i) => ({ number: i + 3, name: `later${i}`, text: '' }))
  await migrate(fresh, [first, second, ...later], 0)
  expect(await thrownBy(migrate(fresh, [first, second], 0))).toThrow(
    'has migration 3, 4, 5, 6, 7 and others, which this version does not know: start the newer version',
  )
  await fresh.close()
})

test('a new database gets all migrations or none', async () => {
  const first = { number: 1, name: 'first', text: 'CREATE TABLE a (x INTEGER);\n' }
  const broken = { number: 2, name: 'broken', text: 'INSERT INTO nowhere VALUES (1);\n' }
  const fresh = openSqlite({ path: join(dir, 'all-or-none.db') })
  expect(await thrownBy(migrate(fresh, [first, broken], 0))).toThrow()
  expect(await fresh.get(sql`SELECT name FROM sqlite_master WHERE name = 'a'`)).toBeNull()
  expect(await migrate(fresh, [first], 0)).toEqual(['first'])
  await fresh.close()
})

test('a snapshot sees one state, whatever is written meanwhile', async () => {
  await db.run(sql`DELETE FROM item`)
  await add('before')
  const seen = await db.snapshot(async (reader) => {
    const count = async () => (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM item`))!.count
    const first = await count()
    await add('meanwhile')
    return [first, await count(), (await names()).length]
  })
  expect(seen).toEqual([1, 1, 2])
  expect(await db.snapshot(async (reader) => (await reader.all(sql`SELECT id FROM item`)).length)).toBe(2)
})

test('snapshots of the same state share a connection, and those of a newer state have another', async () => {
  const path = join(dir, 'shared-snapshots.db')
  const other = openSqlite({ path })
  await other.run(sql`CREATE TABLE item (id INTEGER PRIMARY KEY)`)
  const connections = () => [...openFiles().values()].filter((file) => file === path).length
  const before = connections()
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const seen: number[] = []
  const read = () =>
    other.snapshot(async (reader) => {
      await over
      seen.push((await reader.all(sql`SELECT id FROM item`)).length)
    })
  const first = Array.from({ length: 10 }, read)
  await new Promise((next) => setImmediate(next))
  expect(connections()).toBe(before + 1)
  await other.run(sql`INSERT INTO item (id) VALUES (1)`)
  const second = Array.from({ length: 10 }, read)
  await new Promise((next) => setImmediate(next))
  expect(connections()).toBe(before + 2)
  end()
  await Promise.all([...first, ...second])
  expect(seen.toSorted()).toEqual([...Array<number>(10).fill(0), ...Array<number>(10).fill(1)])
  expect(await other.snapshot(async (reader) => (await reader.all(sql`SELECT id FROM item`)).length)).toBe(1)
  await other.close()
})

test('a short snapshot sees one state too, and when it ends everybody sees the newest', async () => {
  const path = join(dir, 'short-snapshot.db')
  const other = openSqlite({ path })
  await other.run(sql`CREATE TABLE item (id INTEGER PRIMARY KEY)`)
  const count = async (reader: Pick<Database, 'get'>) =>
    (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM item`))!.count
  await other.shortSnapshot(async (reader) => {
    expect(await count(reader)).toBe(0)
    await other.run(sql`INSERT INTO item (id) VALUES (1)`)
    expect(await count(reader)).toBe(0)
    expect(await thrownBy(other.shortSnapshot(() => Promise.reject(new Error('changed its mind'))))).toThrow(
      'changed its mind',
    )
    expect(await count(reader)).toBe(0)
  })
  expect(await count(other)).toBe(1)
  await other.close()
})

test('a short snapshot that ends while a commit is on its way to the disk shows nobody what is not there yet', async () => {
  const other = openSqlite({ path: join(dir, 'short-snapshots.db') })
  await other.run(sql`CREATE TABLE item (id INTEGER PRIMARY KEY)`)
  for (let turns = 0; turns < 12; turns++) {
    const before = await other.get(sql`SELECT count(*) AS count FROM item`)
    const ending = Promise.withResolvers<void>()
    const reading = other.shortSnapshot(() => ending.promise)
    let isDurable = false
    const writing = other.run(sql`INSERT INTO item (id) VALUES (${turns})`).then(() => (isDurable = true))
    for (let turn = 0; !isDurable || turn <= turns; turn++) {
      if (turn === turns) ending.resolve()
      const seen = await other.get(sql`SELECT count(*) AS count FROM item`)
      if (!isDurable) expect(seen).toEqual(before)
      await new Promise((next) => setImmediate(next))
    }
    await Promise.all([reading, writing])
    expect(await other.get(sql`SELECT count(*) AS count FROM item`)).toEqual({ count: turns + 1 })
  }
  await other.close()
})

test('a snapshot whose reader fails is given back', async () => {
  for (let i = 0; i < 10; i++) expect(await thrownBy(db.snapshot(() => Promise.reject(new Error('no'))))).toThrow('no')
  expect(await db.snapshot(async (reader) => reader.get(sql`SELECT 1 AS one`))).toEqual({ one: 1 })
})

test('many rows make statements of bounded size, and none is lost', async () => {
  await db.run(sql`DELETE FROM item`)
  const rows = Array.from({ length: 200 }, (_, i) => [`row ${i}`])
  const sizes: number[] = []
  for (const piece of inPieces(rows)) {
    sizes.push(piece.length)
    await db.run(sql`INSERT INTO item (name) VALUES ${sqlRows(piece)}`)
  }
  expect(sizes).toEqual([64, 64, 64, 8])
  expect(await names()).toEqual(rows.flat().toSorted())
  expect([...inPieces([])]).toEqual([])
})

test('while the disk takes its time, others are answered, with what is durable', async () => {
  // Statements of the reader run at once; a commit is on the disk only turns of the event loop later.
  await db.run(sql`DELETE FROM item`)
  let isDurable = false
  const writing = add('slow').then(() => (isDurable = true))
  const seen: boolean[] = []
  while (!isDurable) {
    const found = (await names()).includes('slow')
    if (!isDurable) seen.push(found)
    await new Promise((turn) => setImmediate(turn))
  }
  await writing
  expect(seen.length).toBeGreaterThan(0)
  expect(seen).not.toContain(true)
  expect(await names()).toEqual(['slow'])
})

test('the file of the log is made longer now and then, and what is in it is found after a crash', async () => {
  const path = join(dir, 'steps.db')
  const other = openSqlite({ path })
  await other.run(sql`CREATE TABLE page (id INTEGER PRIMARY KEY)`)
  const sizes = new Set<number>()
  for (let id = 0; id < 50; id++) {
    await other.run(sql`INSERT INTO page (id) VALUES (${id})`)
    sizes.add(statSync(`${path}-wal`).size)
  }
  expect(sizes.size).toBeLessThan(3)
  for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, join(dir, `crashed.db${end}`))
  await other.close()
  const crashed = openSqlite({ path: join(dir, 'crashed.db') })
  expect(await crashed.get(sql`SELECT count(*) AS count FROM page`)).toEqual({ count: 50 })
  await crashed.close()
})

test('the log does not grow without end, and what was in it is in the database', async () => {
  const path = join(dir, 'log.db')
  const other = openSqlite({ path })
  await other.run(sql`CREATE TABLE page (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)`)
  const block = new Uint8Array(64 * 1024)
  const largest = 28_000 * 4120
  for (let i = 0; i < 60; i++) {
    await other.transaction(async (tx) => {
      for (let n = 0; n < 40; n++) await tx.run(sql`INSERT INTO page (bytes) VALUES (${block})`)
    })
    expect(await other.get(sql`SELECT max(id) AS last FROM page`)).toEqual({ last: (i + 1) * 40 })
    expect(statSync(`${path}-wal`).size).toBeLessThan(largest)
  }
  expect(await other.get(sql`SELECT count(*) AS count FROM page`)).toEqual({ count: 2400 })
  await other.close()
  expect(statSync(path).size).toBeGreaterThan(2400 * block.length)
  expect(existsSync(`${path}-wal`)).toBe(false)
}, 60_000)

test('accounts from before wallets were recorded have one if they show it, and children of accounts do not', async () => {
  const old = openSqlite({ path: join(dir, 'wallets.db') })
  await migrate(
    old,
    migrations.filter(({ number }) => number < 139),
    0,
  )
  const account = (did: string, passwordHash: string | null) => [did, passwordHash, 'key', 'wrapped', 1]
  const accounts = [
    account('both', 'hash'),
    account('wallet', null),
    account('password', 'hash'),
    account('child', null),
  ]
  await old.run(
    sql`INSERT INTO account (did, password_hash, signing_key, signing_key_wrapped, created_at) VALUES ${sqlRows(accounts)}`,
  )
  await old.run(
    sql`INSERT INTO escrow_share (did, share_wrapped, held_since) VALUES ('both', 'share', 1), ('gone', 'share', 1)`,
  )
  await old.run(
    sql`INSERT INTO child_account (did, parent_did, registration_id, genesis, created_at) VALUES ('child', 'both', 'reg', '{}', 1)`,
  )
  await migrate(old, migrations, 0)
  expect(await old.all(sql`SELECT did FROM known_wallet ORDER BY did`)).toEqual([{ did: 'both' }, { did: 'wallet' }])
  await old.close()
})

test('a trial of whether writing works writes to the file', async () => {
  const path = join(dir, 'trial.db')
  const tried = openSqlite({ path })
  await migrate(tried, migrations, 0)
  const onlooker = new Connection(path, { readonly: true })
  // Changes when another connection has written a page.
  const version = () => onlooker.query('PRAGMA data_version').get()
  const before = version()
  await tried.retryWriting()
  expect(version()).not.toEqual(before)
  onlooker.close()
  await tried.close()
})

test('what is asked of a database that is closed, or is being closed, is refused as unavailable, and changes nothing', async () => {
  const path = join(dir, 'closed.db')
  const own = openSqlite({ path })
  await own.run(sql`CREATE TABLE thing (id INTEGER PRIMARY KEY)`)
  const [closing, late] = [own.close(), own.run(sql`INSERT INTO thing VALUES (1)`)]
  await Promise.all([closing, late.catch((error: unknown) => expect(error).toBeInstanceOf(DatabaseUnavailable))])
  const size = statSync(path).size
  expect(await thrownBy(own.run(sql`INSERT INTO thing VALUES (2)`))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(own.logFollowing!.settle())).toThrow(DatabaseUnavailable)
  // Requests that a stopping server no longer waits for are refused like any other.
  expect(await thrownBy(own.get(sql`SELECT 1`))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(own.all(sql`SELECT id FROM thing`))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(own.snapshot((reader) => reader.get(sql`SELECT 1`)))).toThrow(DatabaseUnavailable)
  expect(await thrownBy(own.shortSnapshot((reader) => reader.get(sql`SELECT 1`)))).toThrow(DatabaseUnavailable)
  expect(statSync(path).size).toBe(size)
  expect(existsSync(`${path}-wal`)).toBe(false)
})

test('rows from before framings were kept are given theirs', async () => {
  const path = join(dir, 'unframed.db')
  const unframed = openSqlite({ path })
  await migrate(
    unframed,
    migrations.filter(({ number }) => number < 73),
    0,
  )
  const blocks = [1, 91, 92, 300, 16_347, 16_348, 70_000, 1_000_000].map((length) => new Uint8Array(length))
  await unframed.run(
    sql`INSERT INTO record (repo_id, path, cid, rev, indexed_at, value) VALUES ${sqlRows(blocks.map((block, i) => [1, `a/${i}`, new Uint8Array(36), 'a', 0, block]))}`,
  )
  await unframed.run(
    sql`INSERT INTO repo_node (repo_id, cid, rev, bytes) VALUES ${sqlRows(blocks.map((block, i) => [1, new Uint8Array([i]), 'a', block]))}`,
  )
  await migrate(unframed, migrations, 0)
  const heads = await listRecordHeads(unframed, 1, { after: '', upTo: LAST_PATH, limit: 100 })
  expect(heads.filter(({ isMisframed }) => isMisframed)).toEqual([])
  expect((await new StoredNodes(unframed, 1).countFramed()).misframed).toBe(0)
  await unframed.close()
})
