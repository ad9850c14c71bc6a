/** Reads of a file whose pages are replaced beneath them: each sees one state, and none sees a part of a change. */
import { afterAll, expect, test } from 'bun:test'
import { Database as Connection } from 'bun:sqlite'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CopyDatabase } from '../../../src/platform/database/copy-database.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { eventLoopTurns } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-copy-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let files = 0

/** The bytes of databases that differ in one row. */
const states = Array.from({ length: 3 }, (_, value) => {
  const path = join(scratch, `state-${value}`)
  const connection = new Connection(path)
  connection.run('PRAGMA journal_mode = WAL')
  connection.run('CREATE TABLE number (value INTEGER NOT NULL)')
  connection.run('INSERT INTO number VALUES (?)', [value])
  connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  connection.close()
  return readFileSync(path)
})

/** A copy in a folder whose name would end a URL early. */
function copy(maxHoldMillis?: number) {
  const path = join(scratch, `copy #${++files}?`)
  const file = openSync(path, 'w+')
  const put = (value: number, bytes = Infinity) => {
    writeSync(file, states[value]!, 0, Math.min(bytes, states[value]!.byteLength), 0)
  }
  put(0)
  const database = new CopyDatabase(() => {}, maxHoldMillis)
  database.begin(path)
  const read = async () => (await database.asDatabase().get<{ value: number }>(sql`SELECT value FROM number`))?.value
  return { path, database, put, read, [Symbol.dispose]: () => (database.end(), closeSync(file)) }
}

test('each change is seen by the next read', async () => {
  using there = copy()
  for (const value of [0, 1, 2, 1]) {
    await there.database.change(() => there.put(value))
    expect(await there.read()).toBe(value)
  }
})

test('a change waits for reads of one state, those that come after it wait for it, and single reads never wait', async () => {
  using there = copy()
  const order: unknown[] = []
  const reading = Promise.withResolvers<void>()
  const value = sql`SELECT value FROM number`
  const long = there.database.asDatabase().snapshot(async ({ get }) => {
    order.push(await get(value))
    await reading.promise
    order.push(await get(value))
  })
  await eventLoopTurns(2)
  const change = there.database.change(() => there.put(1))
  const later = there.database.asDatabase().shortSnapshot(async ({ get }) => order.push(await get(value)))
  await eventLoopTurns(5)
  expect(await there.read()).toBe(0)
  reading.resolve()
  await Promise.all([long, change, later])
  expect(order).toEqual([{ value: 0 }, { value: 0 }, { value: 1 }])
})

test('a change waits for so long only: what still reads fails, and holds up no other change', async () => {
  using there = copy(0)
  const never = Promise.withResolvers<void>()
  const reading = there.database.asDatabase().snapshot(async ({ get }) => {
    await never.promise
    return get(sql`SELECT value FROM number`)
  })
  for (const value of [1, 2]) {
    await there.database.change(() => there.put(value))
    expect(await there.database.asDatabase().snapshot(() => there.read())).toBe(value)
  }
  never.resolve()
  expect(await thrownBy(reading)).toThrow('the copy has changed')
})

test('after a change that failed nothing is read, until another one has succeeded', async () => {
  using there = copy()
  const failing = there.database.change(() => {
    there.put(1, 3000)
    throw new Error('the disk is full')
  })
  expect(await thrownBy(failing)).toThrow('the disk is full')
  expect(there.database.isReadable).toBe(false)
  expect(await thrownBy(there.read())).toThrow('there is no copy to read')
  await there.database.change(() => there.put(2))
  expect(await there.read()).toBe(2)
})

test('at the end, whatever reads fails, and nothing is read after it', async () => {
  using there = copy()
  const reading = Promise.withResolvers<void>()
  const long = there.database.asDatabase().snapshot(async ({ get }) => {
    await reading.promise
    return get(sql`SELECT value FROM number`)
  })
  await eventLoopTurns(2)
  there.database.end()
  reading.resolve()
  expect(await thrownBy(long)).toThrow('the copy has changed')
  expect(await thrownBy(there.read())).toThrow('there is no copy to read')
})

test('it writes nothing: neither rows nor files beside the copy', async () => {
  using there = copy()
  expect(await there.read()).toBe(0)
  expect(await thrownBy(there.database.asDatabase().get(sql`UPDATE number SET value = 7 RETURNING value`))).toThrow()
  expect(() => there.database.asDatabase().run(sql`UPDATE number SET value = 7`)).toThrow()
  expect(readFileSync(there.path).equals(states[0]!)).toBe(true)
  expect(readdirSync(scratch).filter((name) => /-(wal|shm|journal)$/.test(name))).toEqual([])
})

test('however many changes there are, one connection is open', async () => {
  using there = copy()
  for (let i = 0; i < 500; i++) {
    await there.database.change(() => there.put(i % 3))
    await there.database.asDatabase().snapshot(async ({ get }) => get(sql`SELECT value FROM number`))
  }
  const open = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === there.path
    } catch {
      return false
    }
  })
  // That of the test, and that of the copy.
  expect(open).toHaveLength(2)
})

test('reads that never end hold up a change now and then, and not each of them', async () => {
  using there = copy(300)
  const ended = Promise.withResolvers<void>()
  const reads: Promise<unknown>[] = []
  // A hundred changes that each wait for so long would take half a minute.
  for (let i = 0; i < 100; i++) {
    reads.push(there.database.asDatabase().snapshot(() => ended.promise))
    await eventLoopTurns(2)
    await there.database.change(() => there.put(i % 3))
  }
  expect(await there.read()).toBe(0)
  ended.resolve()
  await Promise.all(reads)
})
