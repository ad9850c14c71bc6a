/** How often SQLite copies its log into the database under steady writes, and that the log starts over. */
import { Database as Connection } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sql, type Database } from '../../../src/platform/database/database.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-checkpoints-'))
afterAll(() => rmSync(scratch, { recursive: true }))

/** Frames of one commit, about. */
const COMMIT_PAGES = 3
const value = new Uint8Array(COMMIT_PAGES * 4096)
/** As in `sqlite.ts`: from here on, writers wait. */
const MAX_LOG_FRAMES = 24_000

/** Commits until the log has been written `frames` of. Returns what another connection sees of it. */
async function writeFrames(db: Database, observer: Connection, frames: number) {
  const look = observer.query<{ log: number; checkpointed: number }, []>('PRAGMA wal_checkpoint(NOOP)')
  const seen = { restarts: 0, checkpoints: 0, longest: 0 }
  let before = look.get()!
  for (let written = 0; written < frames;) {
    await db.run(sql`INSERT INTO thing (value) VALUES (${value})`)
    const now = look.get()!
    if (now.log < before.log) seen.restarts++
    else if (now.checkpointed > before.checkpointed) seen.checkpoints++
    written += now.log < before.log ? now.log : now.log - before.log
    seen.longest = Math.max(seen.longest, now.log)
    before = now
  }
  return seen
}

async function open(name: string) {
  const path = join(scratch, name)
  const db = openSqlite({ path })
  await db.run(sql`CREATE TABLE thing (id INTEGER PRIMARY KEY, value BLOB NOT NULL)`)
  return { db, observer: new Connection(path, { readonly: true }) }
}

test('under a writer that never pauses, the log starts over after a few checkpoints', async () => {
  const { db, observer } = await open('busy.db')
  const { restarts, checkpoints, longest } = await writeFrames(db, observer, 3 * MAX_LOG_FRAMES)
  expect(restarts).toBeGreaterThanOrEqual(2)
  expect(longest).toBeLessThan(MAX_LOG_FRAMES + 10 * COMMIT_PAGES)
  // Each copies what was written during the one before, and writers wait for the last.
  expect(checkpoints).toBeLessThanOrEqual(6 * (restarts + 1))
  observer.close()
  await db.close()
})

test('the log grows while a reader needs its state of it, and starts over after that', async () => {
  const { db, observer } = await open('held.db')
  await writeFrames(db, observer, 100)
  const { promise: isDone, resolve: end } = Promise.withResolvers<void>()
  const held = db.snapshot(async (reader) => {
    const before = await reader.get(sql`SELECT count(*) AS count FROM thing`)
    await isDone
    expect(await reader.get(sql`SELECT count(*) AS count FROM thing`)).toEqual(before)
  })
  const frames = 20_000
  const { restarts, checkpoints } = await writeFrames(db, observer, frames)
  expect(restarts).toBe(0)
  expect(checkpoints).toBeLessThanOrEqual(2)
  end()
  await held
  const after = await writeFrames(db, observer, 2 * MAX_LOG_FRAMES)
  expect(after.restarts).toBeGreaterThanOrEqual(1)
  observer.close()
  await db.close()
})

test('the log starts over while one snapshot follows another', async () => {
  const { db, observer } = await open('chained.db')
  await writeFrames(db, observer, 100)
  const held = 4000
  const countOf = (reader: Pick<Database, 'get'>) =>
    reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM thing`).then((row) => row!.count)
  let isOver = false
  let snapshots = 0
  /** Each ends once so much more has been written, and the next begins at once. */
  const chain = (async () => {
    while (!isOver)
      await db.snapshot(async (reader) => {
        snapshots++
        const before = await countOf(reader)
        while (!isOver && ((await countOf(db)) - before) * COMMIT_PAGES < held) await nextTurn()
        expect(await countOf(reader)).toBe(before)
      })
  })()
  const { restarts, longest } = await writeFrames(db, observer, 2 * MAX_LOG_FRAMES)
  isOver = true
  await chain
  expect(snapshots).toBeGreaterThan(4)
  expect(restarts).toBeGreaterThanOrEqual(1)
  expect(longest).toBeLessThan(MAX_LOG_FRAMES + 2 * held)
  observer.close()
  await db.close()
})

test('a snapshot of a long log begins although nothing is written any more', async () => {
  const { db, observer } = await open('long.db')
  const { promise: isDone, resolve: end } = Promise.withResolvers<void>()
  const held = db.snapshot(() => isDone)
  await writeFrames(db, observer, MAX_LOG_FRAMES + 100)
  end()
  await held
  const count = await db.snapshot((reader) => reader.get(sql`SELECT count(*) AS count FROM thing`))
  expect(count).toEqual(await db.get(sql`SELECT count(*) AS count FROM thing`))
  await writeFrames(db, observer, 100)
  expect(observer.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log).toBeLessThan(1000)
  observer.close()
  await db.close()
})

/** How nice each thread of this process is. Where there is no such list, a thread has no priority of its own. */
const nicenesses = (): number[] =>
  process.platform !== 'linux'
    ? [getPriority()]
    : readdirSync('/proc/self/task').map((thread) => {
        const [, afterName] = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')
        return Number(afterName!.split(' ')[16])
      })

test('checkpoints leave processors to everything else, where a thread can have a priority, and change no other', async () => {
  const before = getPriority()
  const { db, observer } = await open('nice.db')
  await writeFrames(db, observer, MAX_LOG_FRAMES / 2)
  expect(getPriority()).toBe(before)
  const own = process.platform === 'linux' ? Math.max(10, before) : before
  // The thread is still starting on a busy machine.
  await until(() => nicenesses().includes(own))
  expect(new Set(nicenesses())).toEqual(new Set([before, own]))
  observer.close()
  await db.close()
})
