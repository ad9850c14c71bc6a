/** Commits behind a gate: several wait at a time, and nobody sees one before it has passed. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql, type Database, type Reader } from '../../../src/platform/database/database.ts'
import type { GatedCommit, LogFollower } from '../../../src/platform/database/log-follower.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { FlushFailed } from '../../../src/platform/database/wal.ts'
import { CommitBoard } from '../../../src/platform/readers/commit-board.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

/** More than the log has when it is copied into the database. */
const LONG_LOG_BYTES = 40 * 1024 ** 2

let folder: string
let path: string
let db: Database
let follower: LogFollower
/** Commits that wait, with what lets them pass. */
let waiting: (GatedCommit & PromiseWithResolvers<void>)[] = []
let isOpen = false

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-gate-'))
  path = join(folder, 'holdfast.db')
  db = openSqlite({ path })
  waiting = []
  isOpen = false
  await db.run(sql`CREATE TABLE item (name TEXT NOT NULL)`)
  follower = (await db.logFollowing!.begin(null))!
  follower.gate = {
    refusal: null,
    async pass(commit) {
      follower.take()
      if (isOpen) return commit.flushed
      const gate = Promise.withResolvers<void>()
      waiting.push({ ...commit, ...gate })
      await Promise.all([gate.promise, commit.flushed])
    },
  }
})
afterEach(async () => {
  isOpen = true
  for (const { resolve } of waiting) resolve()
  await db.close()
  rmSync(folder, { recursive: true })
})

const namesIn = async (reader: Reader) =>
  (await reader.all<{ name: string }>(sql`SELECT name FROM item ORDER BY name`)).map(({ name }) => name)
/** What each way of reading shows. */
const seen = async () => [await namesIn(db), await db.snapshot(namesIn), await db.shortSnapshot(namesIn)]
const everywhere = (...names: string[]) => [names, names, names]

/** Add an item in a commit of its own. Returns how that ends, once it waits at the gate. */
async function add(name: string): Promise<{ end: string; announced: boolean }> {
  const state = { end: 'waits', announced: false }
  const before = waiting.length
  db.transaction(async (tx) => {
    tx.afterCommit(() => (state.announced = true))
    await tx.run(sql`INSERT INTO item (name) VALUES (${name})`)
  }).then(
    () => (state.end = 'done'),
    (error: Error) => (state.end = error.message),
  )
  await until(() => waiting.length > before || state.end !== 'waits')
  return state
}

test('the next commits are made while the first waits, and each is seen once it and all before it have passed', async () => {
  const one = await add('one')
  const two = await add('two')
  const three = await add('three')
  expect(await seen()).toEqual(everywhere())
  expect(await Promise.all(waiting.map(({ state }) => namesIn(state)))).toEqual([
    ['one'],
    ['one', 'two'],
    ['one', 'three', 'two'],
  ])
  waiting[1]!.resolve()
  await Promise.all(waiting.map(({ flushed }) => flushed))
  expect([one, two].map(({ end }) => end)).toEqual(['waits', 'waits'])
  expect(await seen()).toEqual(everywhere())
  waiting[0]!.resolve()
  await until(() => two.end === 'done')
  expect([one.announced, two.announced, three.announced]).toEqual([true, true, false])
  expect(await seen()).toEqual(everywhere('one', 'two'))
  waiting[2]!.resolve()
  await until(() => three.end === 'done')
  expect(await seen()).toEqual(everywhere('one', 'three', 'two'))
})

test.each([
  ['passes', 'taken'],
  ['never passes', 'the bucket is lost'],
  ['is refused', 'the bucket is slow'],
])('a refusal because of a commit that waits is told once that %s', async (outcome, told) => {
  await add('one')
  let end = 'waits'
  const other = db.transaction(async (tx) => {
    if ((await namesIn(tx)).includes('one')) throw new Error('taken')
  })
  const ended = other.catch((error: Error) => (end = error.message))
  await db.snapshot(namesIn)
  await eventLoopTurns(10)
  expect(end).toBe('waits')
  // It waits for a gate of its own, too: another machine may know better.
  await until(() => waiting.length === 2)
  const [first, second] = waiting as [(typeof waiting)[0], (typeof waiting)[0]]
  if (outcome === 'passes') first.resolve()
  await eventLoopTurns(10)
  expect(end).toBe('waits')
  for (const gate of [first, second]) {
    if (outcome === 'passes') gate.resolve()
    if (outcome === 'never passes') gate.reject(new Error(told))
    if (outcome === 'is refused') gate.refuse(new Error(told))
  }
  await ended
  expect(end).toBe(told)
})

test('a commit whose state no connection can be opened for is not made, and is refused as one that was not', async () => {
  const one = await add('one')
  let hasRun = false
  const told = thrownBy(
    db.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO item (name) VALUES ('two')`)
      // As if too many files were open.
      renameSync(path, `${path}.away`)
      hasRun = true
    }),
  )
  await until(() => hasRun)
  await eventLoopTurns(2)
  renameSync(`${path}.away`, path)
  waiting[0]!.resolve()
  expect(await told).toThrow('unable to open')
  expect(one.end).toBe('done')
  const three = await add('three')
  for (const gate of waiting) gate.resolve()
  await until(() => three.end !== 'waits')
  expect(await seen()).toEqual(everywhere('one', 'three'))
})

test('a reader keeps its state while commits pass', async () => {
  const one = await add('one')
  const { promise, resolve } = Promise.withResolvers<void>()
  const reading = db.snapshot(async (reader) => {
    const before = await namesIn(reader)
    await promise
    return [before, await namesIn(reader)]
  })
  await add('two')
  for (const gate of waiting) gate.resolve()
  await until(() => one.end === 'done')
  resolve()
  expect(await reading).toEqual([[], []])
})

test('only so many commits wait, and what comes in the meantime shares the next one', async () => {
  const states = []
  for (let i = 0; i < 8; i++) states.push(await add(`item ${i}`))
  const more = Array.from({ length: 5 }, (_, i) => db.run(sql`INSERT INTO item (name) VALUES (${`more ${i}`})`))
  await Promise.all(waiting.map(({ flushed }) => flushed))
  expect(waiting).toHaveLength(8)
  waiting[0]!.resolve()
  await until(() => waiting.length === 9)
  for (const { resolve } of waiting) resolve()
  await Promise.all(more)
  expect(waiting).toHaveLength(9)
  expect(await namesIn(db)).toHaveLength(13)
})

test('once a commit cannot pass, nothing is acknowledged any more, and nobody ever sees what was not', async () => {
  const one = await add('one')
  waiting[0]!.resolve()
  await until(() => one.end === 'done')
  const states = [await add('two'), await add('three')]
  waiting[1]!.reject(new Error('it will never pass'))
  waiting[2]!.resolve()
  await until(() => states.every(({ end }) => end === 'it will never pass'))
  expect(await seen()).toEqual(everywhere('one'))
  expect(await thrownBy(db.run(sql`INSERT INTO item (name) VALUES ('four')`))).toThrow('it will never pass')
  expect(await seen()).toEqual(everywhere('one'))
  expect(states.some(({ announced }) => announced)).toBe(false)
  expect(waiting).toHaveLength(3)
})

test('a commit that cannot pass is not seen when a log that it has made long is copied', async () => {
  const one = await add('one')
  waiting[0]!.resolve()
  await until(() => one.end === 'done')
  const large = db.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO item (name) VALUES ('two')`)
    await tx.run(sql`CREATE TABLE large AS SELECT zeroblob(${LONG_LOG_BYTES}) AS value`)
  })
  await until(() => waiting.length === 2)
  waiting[1]!.reject(new Error('it will never pass'))
  expect(await thrownBy(large)).toThrow('it will never pass')
  // Waits until the log was copied.
  expect(await thrownBy(db.logFollowing!.rewind(() => {}))).toThrow('it will never pass')
  expect(await seen()).toEqual(everywhere('one'))
})

test('a commit that cannot pass is not seen while the database is being closed', async () => {
  const one = await add('one')
  waiting[0]!.reject(new Error('it will never pass'))
  await until(() => one.end === 'it will never pass')
  let shown: string[][] = []
  follower.onClosing = async () => void (shown = await seen())
  await db.close()
  expect(shown).toEqual(everywhere())
  db = openSqlite({ path })
})

test('only a change that could not be flushed may still take effect, and none that begins later', async () => {
  const one = await add('one')
  waiting[0]!.reject(new FlushFailed(Object.assign(new Error('EIO'), { code: 'EIO' })))
  await until(() => one.end === 'the disk reports errors; the change may still take effect')
  const later = db.run(sql`INSERT INTO item (name) VALUES ('two')`)
  expect(await thrownBy(later)).toThrow('the disk reports errors: the server needs a restart')
})

test('reader threads can end when nothing can be written any more', async () => {
  isOpen = true
  await db.threads!.notify(new CommitBoard(1))
  isOpen = false
  const one = await add('one')
  waiting[0]!.reject(new Error('it will never pass'))
  await until(() => one.end === 'it will never pass')
  await db.threads!.notify(null)
  expect(await seen()).toEqual(everywhere())
})

test('who waits for too long is told, and so are those who come after; the commit may still pass', async () => {
  const one = await add('one')
  const two = await add('two')
  waiting[0]!.refuse(new Error('not known'))
  await until(() => one.end === 'not known')
  expect(two.end).toBe('waits')
  expect(await seen()).toEqual(everywhere())
  for (const { resolve } of waiting) resolve()
  await until(() => two.end === 'done')
  expect(await seen()).toEqual(everywhere('one', 'two'))
})

test('the log starts over now and then, also if a commit always waits', async () => {
  isOpen = true
  await db.run(sql`CREATE TABLE large (id INTEGER PRIMARY KEY, value BLOB NOT NULL)`)
  const value = new Uint8Array(400_000)
  const written: Promise<unknown>[] = []
  let longest = 0
  for (let i = 0; i < 700; i++) {
    written.push(
      db.run(
        sql`INSERT INTO large (id, value) VALUES (${i % 50}, ${value}) ON CONFLICT (id) DO UPDATE SET value = ${value}`,
      ),
    )
    if (i % 3 === 2) await written[i - 2]
    longest = Math.max(longest, statSync(`${path}-wal`).size)
  }
  await Promise.all(written)
  expect(await db.get(sql`SELECT count(*) AS count FROM large`)).toEqual({ count: 50 })
  expect(longest).toBeLessThan(160 * 1024 ** 2)
})
