/** The connection of a reader thread sees what is on the disk: no more, and no less than was acknowledged. */
import { Database as Connection } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Elsewhere } from '../../../src/base/elsewhere.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { ReaderDatabase } from '../../../src/platform/database/reader-database.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { CommitBoard } from '../../../src/platform/readers/commit-board.ts'
import { errorOf } from '../../support/thrown.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-readers-'))
  path = join(folder, 'holdfast.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

const total = sql`SELECT COALESCE(max(n), 0) AS n FROM tally`

/** A writer whose commits are on the disk when the test says so. */
function heldWriter() {
  const writer = new Connection(path, { create: true })
  writer.run('PRAGMA journal_mode = WAL')
  writer.run('CREATE TABLE tally (n INTEGER)')
  const board = new CommitBoard(1)
  const reader = new ReaderDatabase(path, board, 0)
  return {
    board,
    reader,
    write(n: number) {
      board.begin()
      writer.run('INSERT INTO tally (n) VALUES (?)', [n])
    },
    read: async () => (await reader.asDatabase().get<{ n: number }>(total))!.n,
    [Symbol.dispose]() {
      reader.close()
      writer.close()
    },
  }
}

test('a commit that is not on the disk is not seen, and the one before it is', async () => {
  using held = heldWriter()
  expect(held.reader.isCurrent()).toBe(true)
  held.write(1)
  expect(held.reader.isCurrent()).toBe(true)
  expect(await held.read()).toBe(0)
  held.board.settle()
  expect(held.reader.isCurrent()).toBe(true)
  expect(await held.read()).toBe(1)
})

test('a reader that has missed a commit says so while the next one is on its way', async () => {
  using held = heldWriter()
  expect(held.reader.isCurrent()).toBe(true)
  held.write(1)
  held.board.settle()
  held.write(2)
  expect(held.reader.isCurrent()).toBe(false)
  expect(await errorOf(held.read())).toBeInstanceOf(Elsewhere)
  held.board.settle()
  expect(held.reader.isCurrent()).toBe(true)
  expect(await held.read()).toBe(2)
})

test('a commit that begins while a reader begins is not seen', () => {
  using held = heldWriter()
  expect(held.board.steady(() => held.write(1))).toBeNull()
})

test('a snapshot waits until no commit is on its way', async () => {
  using held = heldWriter()
  held.write(1)
  let hasBegun = false
  const seen = held.reader.asDatabase().snapshot(async (reader) => {
    hasBegun = true
    return (await reader.get<{ n: number }>(total))!.n
  })
  await Promise.resolve()
  expect(hasBegun).toBe(false)
  held.board.settle()
  expect(await seen).toBe(1)
})

test('a reader thread says which requests it cannot answer', () => {
  using held = heldWriter()
  const db = held.reader.asDatabase()
  expect(() => db.transaction(async () => {})).toThrow(Elsewhere)
  expect(() => db.run(sql`DELETE FROM tally`)).toThrow(Elsewhere)
})

test('beside a writer without a pause, a reader sees what the main connection sees, at every moment', async () => {
  const db = openSqlite({ path })
  await db.run(sql`CREATE TABLE tally (n INTEGER)`)
  const board = new CommitBoard(1)
  await db.threads!.notify(board)
  const reader = new ReaderDatabase(path, board, 0)
  const following = reader.follow()
  let acknowledged = 0
  let seen = 0
  const writing = (async () => {
    for (let n = 1; n <= 300; n++) {
      await db.run(sql`INSERT INTO tally (n) VALUES (${n})`)
      acknowledged = n
      // A thread of its own would have begun anew meanwhile.
      await nextTurn()
      await nextTurn()
    }
  })()
  while (acknowledged < 300) {
    if (reader.isCurrent()) {
      const least = acknowledged
      const [there, here] = await Promise.all([
        reader.asDatabase().get<{ n: number }>(total),
        db.get<{ n: number }>(total),
      ])
      expect(there!.n).toBe(here!.n)
      expect(there!.n).toBeGreaterThanOrEqual(least)
      seen++
    }
    await nextTurn()
  }
  await writing
  expect(seen).toBeGreaterThan(10)
  reader.close()
  board.renewReaders()
  await following
  await db.threads!.notify(null)
  await db.close()
})

test('readers do not keep the log from starting over', async () => {
  const db = openSqlite({ path })
  await db.run(sql`CREATE TABLE page (bytes BLOB)`)
  const board = new CommitBoard(1)
  await db.threads!.notify(board)
  const reader = new ReaderDatabase(path, board, 0)
  void reader.follow()
  const bytes = new Uint8Array(4_000_000)
  for (let i = 0; i < 40; i++) {
    await db.run(sql`DELETE FROM page`)
    await db.run(sql`INSERT INTO page (bytes) VALUES (${bytes})`)
    expect(reader.isCurrent()).toBe(true)
  }
  // Without starting over, the log would have 160 MB.
  expect(Bun.file(`${path}-wal`).size).toBeLessThan(120_000_000)
  reader.close()
  await db.threads!.notify(null)
  await db.close()
})

const source = (path: string) => JSON.stringify(join(import.meta.dir, '../../..', path))

/** In a process of its own, for its disk reports errors for good. Prints what is seen after a failed commit. */
const failedFlush = `
  import { sql } from ${source('src/platform/database/database.ts')}
  import { ReaderDatabase } from ${source('src/platform/database/reader-database.ts')}
  import { openSqlite } from ${source('src/platform/database/sqlite.ts')}
  import { CommitBoard } from ${source('src/platform/readers/commit-board.ts')}
  import { EIO, refuseCalls, systemCalls } from ${source('tests/support/faults/refused-calls.ts')}
  const path = process.argv.at(-1)
  const db = openSqlite({ path })
  const board = new CommitBoard(1)
  await db.threads.notify(board)
  const reader = new ReaderDatabase(path, board, 0)
  // So much that a checkpoint begins.
  await db.run(sql\`CREATE TABLE tally AS SELECT 1 AS n, zeroblob(40000000) AS value\`)
  reader.isCurrent()
  refuseCalls(systemCalls.fdatasync, EIO)
  const outcome = await db.run(sql\`INSERT INTO tally (n) VALUES (2)\`).then(() => 'made', () => 'refused')
  // Waits until the checkpoint has ended.
  await db.logFollowing.rewind(() => {}).catch(() => {})
  const isCurrent = reader.isCurrent()
  const seen = await Promise.all([reader.asDatabase(), db].map((each) => each.get(sql\`SELECT max(n) AS n FROM tally\`)))
  console.log(JSON.stringify({ outcome, isCurrent, seen }))
  process.exit()`

test('a commit that could not be flushed is not seen when a checkpoint ends after it', async () => {
  const child = Bun.spawn([process.execPath, '-e', failedFlush, path], { stdout: 'pipe' })
  const printed: unknown = JSON.parse(await child.stdout.text())
  expect(printed).toEqual({ outcome: 'refused', isCurrent: true, seen: [{ n: 1 }, { n: 1 }] })
})
