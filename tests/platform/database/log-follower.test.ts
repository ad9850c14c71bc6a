/** What a follower of the log reads, put together again, is the database: whatever checkpoints do in between. */
import { Database as File } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { DatabaseUnavailable, sql, type Database } from '../../../src/platform/database/database.ts'
import { DatabaseFiles } from '../../../src/platform/database/database-files.ts'
import {
  FRAME_BYTES,
  type LogFollower,
  type LogPosition,
  type Pages,
} from '../../../src/platform/database/log-follower.ts'
import { PAGE_BYTES, pagesIn } from '../../../src/platform/database/page-list.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import { Random } from '../../support/random.ts'
import { testConfig } from '../../support/servers/config.ts'
import { thrownBy } from '../../support/thrown.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-follower-'))
afterAll(() => rmSync(scratch, { recursive: true }))

/** A copy that a restore would build. */
class Copy {
  bytes: Buffer

  constructor(path: string) {
    this.bytes = readFileSync(path)
  }

  apply(taken: Pages | null): void {
    if (taken === null) return
    const whole = Buffer.alloc(taken.databasePages * PAGE_BYTES)
    this.bytes.copy(whole)
    for (const { number, page } of pagesIn(taken.pages))
      if (number <= taken.databasePages) whole.set(page, (number - 1) * PAGE_BYTES)
    this.bytes = whole
  }
}

const open = async (name: string) => {
  const path = join(scratch, name)
  const db = openSqlite({ path })
  await db.run(sql`CREATE TABLE thing (id INTEGER PRIMARY KEY, value BLOB NOT NULL)`)
  return { path, db }
}

const follow = async (db: Database): Promise<LogFollower> => (await db.logFollowing!.begin(null))!

/** The database's file once all of the log is in it. */
function contentOf(path: string): Buffer {
  const copy = `${path}.whole`
  copyFileSync(path, copy)
  copyFileSync(`${path}-wal`, `${copy}-wal`)
  const file = new File(copy)
  file.run('PRAGMA wal_checkpoint(TRUNCATE)')
  file.close()
  return readFileSync(copy)
}

/** With all of it in the file, the next write begins the log again. */
function copyLog(path: string): void {
  const other = new File(path)
  other.run('PRAGMA wal_checkpoint(PASSIVE)')
  other.close()
}

/** One transaction of up to `maxPages`, among a few hundred rows that come and go. */
function write(db: Database, random: Random, maxPages: number): Promise<unknown> {
  const id = random.below(300)
  const value = Buffer.alloc(1 + random.below(maxPages * PAGE_BYTES), random.below(256))
  const isDeleted = random.below(5) === 0
  const fails = random.below(20) === 0
  return db
    .transaction(async (tx) => {
      await tx.run(
        isDeleted
          ? sql`DELETE FROM thing WHERE id = ${id}`
          : sql`INSERT INTO thing (id, value) VALUES (${id}, ${value})
                ON CONFLICT (id) DO UPDATE SET value = excluded.value`,
      )
      if (fails) throw new Error('rolled back')
    })
    .catch((error: Error) => expect(error.message).toBe('rolled back'))
}

test('pages that are taken at any time follow a copy through checkpoints, open snapshots and rolled back groups', async () => {
  const { path, db } = await open('storm.db')
  const random = new Random(7)
  const follower = await follow(db)
  const copy = new Copy(path)
  let salts = new Set<string>()
  // Until the log has started over more than once.
  for (let round = 0; round < 220 || (salts.size < 3 && round < 2000); round++) {
    const writing = Promise.all(Array.from({ length: 1 + random.below(8) }, () => write(db, random, 60)))
    const reading =
      random.below(4) === 0
        ? db.snapshot(async (reader) => {
            await writing
            return reader.get(sql`SELECT count(*) AS count FROM thing`)
          })
        : writing
    // In the middle of a group too.
    if (random.below(3) === 0) copy.apply(follower.take())
    await Promise.all([writing, reading])
    if (random.below(10) === 0) {
      const taken = follower.take()
      if (taken !== null) salts = salts.add(taken.position.salts)
      copy.apply(taken)
    }
  }
  await db.logFollowing!.settle()
  copy.apply(follower.take())
  expect(follower.isBroken).toBe(false)
  expect(salts.size).toBeGreaterThan(2)
  expect(copy.bytes.equals(contentOf(path))).toBe(true)
  await db.close()
})

let fills = 0
/** Returns the pages of a commit of one row of this size. Its content differs each time: else it would be no change. */
async function pagesOf(db: Database, follower: LogFollower, bytes: number): Promise<Pages> {
  await db.run(sql`
    INSERT INTO thing (id, value) VALUES (1, ${Buffer.alloc(bytes, ++fills % 256)}) ON CONFLICT (id) DO UPDATE SET value = excluded.value`)
  await db.logFollowing!.settle()
  return follower.take()!
}

test('pages are read into memory of earlier ones, also while others are in use and after a commit of few pages', async () => {
  const { db } = await open('memory.db')
  const follower = await follow(db)
  const buffers = new Set<ArrayBuffer>()
  for (let round = 0; round < 20; round++)
    for (const bytes of [100 * PAGE_BYTES, 1]) {
      const taken = [await pagesOf(db, follower, bytes), await pagesOf(db, follower, bytes)]
      for (const { pages } of taken) buffers.add(pages.buffer)
      for (const each of taken) follower.giveBack(each)
    }
  // Some are of the first pages, and have grown since.
  expect(buffers.size).toBeLessThan(10)
  await db.close()
})

test('memory for many pages is given up once all commits are of few', async () => {
  const { db } = await open('fewer.db')
  const follower = await follow(db)
  const roomOf = async (bytes: number): Promise<number> => {
    const taken = await pagesOf(db, follower, bytes)
    follower.giveBack(taken)
    return taken.pages.buffer.byteLength
  }
  expect(await roomOf(1000 * PAGE_BYTES)).toBeGreaterThan(1000 * PAGE_BYTES)
  let room = 0
  for (let round = 0; round < 100; round++) room = await roomOf(1)
  expect(room).toBeLessThan(100 * PAGE_BYTES)
  await db.close()
})

test('a file that is read in pieces while it is written to is whole with the pages of that time', async () => {
  const { path, db } = await open('pieces.db')
  const random = new Random(11)
  await follow(db)
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 40; i++) await Promise.all([write(db, random, 60), write(db, random, 60)])
    const follower = await db.logFollowing!.begin(null)
    const pieces: Buffer[] = []
    const size = readFileSync(path).byteLength
    for (let at = 0; at < size; at += 64 * PAGE_BYTES) {
      pieces.push(readFileSync(path).subarray(at, Math.min(at + 64 * PAGE_BYTES, size)))
      await Promise.all(Array.from({ length: 4 }, () => write(db, random, 60)))
    }
    await db.logFollowing!.settle()
    const copy = new Copy(path)
    copy.bytes = Buffer.concat(pieces)
    copy.apply(follower!.take())
    expect(follower!.isBroken).toBe(false)
    expect(copy.bytes.equals(contentOf(path))).toBe(true)
  }
  await db.close()
})

test('what was written before a copy is begun anew is in that copy, and in one that goes on', async () => {
  const { path, db } = await open('anew.db')
  // Each row fills a page of its own.
  const put = (id: number, word: string) =>
    db.run(sql`
      INSERT INTO thing (id, value) VALUES (${id}, ${Buffer.from(word.padEnd(3500))})
      ON CONFLICT (id) DO UPDATE SET value = excluded.value`)
  for (const id of [1, 2, 3]) await put(id, 'first')
  const follower = await follow(db)
  const copies = [new Copy(path)]
  for (const word of ['second', 'third']) {
    await put(1, word)
    // A reader keeps what comes next in the log.
    const reader = new File(path, { readonly: true })
    reader.run('BEGIN')
    reader.query('SELECT count(*) FROM thing').get()
    await put(2, word)
    copies.push(await db.logFollowing!.rewind(() => new Copy(path)))
    reader.close()
    const taken = follower.take()
    for (const copy of copies) {
      copy.apply(taken)
      expect(copy.bytes.equals(contentOf(path))).toBe(true)
    }
  }
  expect(follower.isBroken).toBe(false)
  await db.close()
})

test('a transaction that is larger than memory, and is rolled back once it has begun the log again, leaves no trace', async () => {
  const { path, db } = await open('spilled.db')
  const follower = await follow(db)
  const copy = new Copy(path)
  const put = async () => {
    await db.run(sql`
      INSERT INTO thing (id, value) VALUES (1, ${Buffer.from(crypto.randomUUID())})
      ON CONFLICT (id) DO UPDATE SET value = excluded.value`)
    await db.logFollowing!.settle()
  }
  for (const isKept of [false, true, false]) {
    await put()
    const before = follower.take()!
    copy.apply(before)
    await put()
    copyLog(path)
    const large = db.transaction(async (tx) => {
      // More than the page cache holds, so that pages are in the log before the end.
      for (let id = 1000; id < 1020; id++)
        await tx.run(sql`
          INSERT INTO thing (id, value) VALUES (${id}, ${new Uint8Array(1024 ** 2)})
          ON CONFLICT (id) DO UPDATE SET value = excluded.value`)
      await tx.turn()
      copy.apply(follower.take())
      if (!isKept) throw new Error('rolled back')
    })
    expect(await large.catch((error: Error) => error.message)).toBe(isKept ? undefined : 'rolled back')
    await db.logFollowing!.settle()
    copy.apply(follower.take())
    expect(follower.isBroken).toBe(false)
    expect(copy.bytes.equals(contentOf(path))).toBe(true)
    await put()
    const after = follower.take()!
    copy.apply(after)
    expect(after.position.salts).not.toBe(before.position.salts)
    expect(copy.bytes.equals(contentOf(path))).toBe(true)
  }
  expect(follower.isBroken).toBe(false)
  await db.close()
})

test('a follower goes on where another one ended, and says if the log has no such place any more', async () => {
  const { path, db } = await open('resumed.db')
  const random = new Random(3)
  const copy = new Copy(path)
  const first = await follow(db)
  await write(db, random, 5)
  const taken = first.take()!
  copy.apply(taken)
  await write(db, random, 5)
  const second = await db.logFollowing!.begin(taken.position)
  copy.apply(second!.take())
  expect(copy.bytes.equals(contentOf(path))).toBe(true)
  const elsewhere: LogPosition[] = [
    { ...taken.position, salts: '0000000000000000' },
    { ...taken.position, checksum: '0000000000000000' },
    { ...taken.position, frames: 1000 },
  ]
  for (const position of elsewhere) expect(await db.logFollowing!.begin(position)).toBe(null)
  await db.close()
})

async function put(db: Database, id: number): Promise<void> {
  await db.run(sql`
    INSERT INTO thing (id, value) VALUES (${id}, ${Buffer.alloc(3500, crypto.randomUUID())})
    ON CONFLICT (id) DO UPDATE SET value = excluded.value`)
  await db.logFollowing!.settle()
}

test('a follower goes on where another one ended before the log started over', async () => {
  const { path, db } = await open('started-over.db')
  const first = await follow(db)
  const copy = new Copy(path)
  for (let id = 0; id < 20; id++) await put(db, id)
  const taken = first.take()!
  copy.apply(taken)
  // Nobody takes these: one page each that changes again, one that does not, and one that becomes free.
  for (const id of [1, 2, 3]) await put(db, id)
  await db.run(sql`DELETE FROM thing WHERE id = 4`)
  copyLog(path)
  await put(db, 2)
  const second = (await db.logFollowing!.begin(taken.position))!
  const more = second.take()!
  expect(more.position.salts).not.toBe(taken.position.salts)
  copy.apply(more)
  expect(copy.bytes.equals(contentOf(path))).toBe(true)

  await put(db, 5)
  copy.apply(second.take())
  expect(copy.bytes.equals(contentOf(path))).toBe(true)
  copyLog(path)
  await put(db, 6)
  // Twice since then.
  expect(await db.logFollowing!.begin(taken.position)).toBe(null)
  await db.close()
})

test('a follower goes on only if it is certain where the former log ended', async () => {
  const { path, db } = await open('uncertain.db')
  const first = await follow(db)
  for (let id = 0; id < 20; id++) await put(db, id)
  const { position } = first.take()!
  await put(db, 1)
  const end = first.take()!.position
  copyLog(path)
  await put(db, 2)
  const log = openSync(`${path}-wal`, 'r+')
  const at = (frame: number) => 32 + frame * FRAME_BYTES
  const [header, frame] = [Buffer.alloc(32), Buffer.alloc(FRAME_BYTES)]
  readSync(log, header, 0, 32, 0)
  const written = (place: number, bytes: Uint8Array) => writeSync(log, bytes, 0, bytes.byteLength, place)
  const resumes = async () => (await db.logFollowing!.begin(position)) !== null
  expect(await resumes()).toBe(true)
  readSync(log, frame, 0, FRAME_BYTES, at(end.frames))
  const isZero = frame.every((byte) => byte === 0)
  expect(isZero).toBe(true)
  // A part of the present log that was never flushed; one of the former log that does not follow; an older one.
  const salts: [Uint8Array, boolean][] = [
    [header.subarray(16, 24), false],
    [Buffer.concat([header.subarray(16, 20), Buffer.from('abcd')]), false],
    [Buffer.from(position.salts, 'hex'), false],
    [Buffer.from('older...'), true],
  ]
  for (const [each, isCertain] of salts) {
    written(at(end.frames) + 8, each)
    expect(await resumes()).toBe(isCertain)
  }
  // The present log has reached the place itself.
  const there = Buffer.alloc(8)
  readSync(log, there, 0, 8, at(position.frames - 1) + 8)
  written(at(position.frames - 1) + 8, header.subarray(16, 24))
  expect(await resumes()).toBe(false)
  written(at(position.frames - 1) + 8, there)
  expect(await resumes()).toBe(true)
  // A byte of what followed the place.
  written(at(position.frames) + 100, Buffer.from([frame[100]! ^ 1, 255, 254, 253]))
  expect(await resumes()).toBe(false)
  closeSync(log)
  await db.close()
})

test('whatever place a follower goes on from, it has all that changed since, or says that it has not', async () => {
  const { path, db } = await open('any-place.db')
  const random = new Random(19)
  let follower = await follow(db)
  const copy = new Copy(path)
  const places: { position: LogPosition; bytes: Buffer }[] = []
  let [resumed, over] = [0, 0]
  for (let round = 0; round < 150; round++) {
    for (let i = random.below(6); i >= 0; i--) await write(db, random, 12)
    await db.logFollowing!.settle()
    const taken = follower.take()
    copy.apply(taken)
    expect(follower.isBroken).toBe(false)
    if (taken !== null) places.push({ position: taken.position, bytes: copy.bytes })
    if (random.below(8) === 0) {
      for (let i = random.below(4); i >= 0; i--) await write(db, random, 12)
      await db.logFollowing!.settle()
      copyLog(path)
      for (let i = random.below(3); i >= 0; i--) await write(db, random, 4)
    }
    if (random.below(3) !== 0 || places.length === 0) continue
    const { position, bytes } = places.at(-1 - random.below(Math.min(4, places.length)))!
    const again = await db.logFollowing!.begin(position)
    if (again === null) {
      follower = await follow(db)
      copy.bytes = readFileSync(path)
      places.length = 0
    } else {
      resumed++
      follower = again
      copy.bytes = bytes
    }
    const more = follower.take()
    copy.apply(more)
    if (again !== null && more !== null && more.position.salts !== position.salts) over++
    expect(copy.bytes.equals(contentOf(path))).toBe(true)
    if (more !== null) places.push({ position: more.position, bytes: copy.bytes })
  }
  expect(resumed).toBeGreaterThan(20)
  expect(over).toBeGreaterThan(5)
  await db.close()
})

test('a follower that ends leaves the locks of the process alone', async () => {
  const { path, db } = await open('locked.db')
  /** What keeps other processes from taking the database for one that nobody uses. */
  const locked = () => {
    const locks = readFileSync('/proc/locks', 'utf8').split('\n')
    return [path, `${path}-shm`].map((file) => locks.some((lock) => lock.includes(`:${statSync(file).ino} `)))
  }
  expect(locked()).toEqual([true, true])
  const { position } = (await follow(db)).take()!
  await db.logFollowing!.file.read(new Uint8Array(PAGE_BYTES), 0)
  db.logFollowing!.end()
  expect(await db.logFollowing!.begin({ ...position, checksum: '0000000000000000' })).toBe(null)
  expect(locked()).toEqual([true, true])
  await db.close()
})

test('what is committed while the database is being closed can be read before the log is emptied', async () => {
  const { path, db } = await open('closing.db')
  const follower = await follow(db)
  const copy = new Copy(path)
  copy.apply(follower.take())
  const events: string[] = []
  follower.onClosing = async () => {
    expect(follower.take()).toBe(null)
    await db.run(sql`INSERT INTO thing (id, value) VALUES (1, ${Buffer.from('late')})`)
    events.push('committed')
  }
  follower.onLastCommit = async () => {
    expect(await thrownBy(db.run(sql`DELETE FROM thing`))).toThrow(DatabaseUnavailable)
    copy.apply(follower.take())
    events.push('read')
  }
  follower.onClosed = () => void events.push('closed')
  await db.close()
  expect(events).toEqual(['committed', 'read', 'closed'])
  expect(copy.bytes.equals(readFileSync(path))).toBe(true)
})

test('what was to be done between commits, and was refused, is not done later', async () => {
  const { db } = await open('refused.db')
  const follower = await follow(db)
  follower.gate = { refusal: { error: new Error('refused'), at: 0 }, pass: async () => {} }
  let times = 0
  const add = () => void times++
  expect(await thrownBy(db.logFollowing!.rewind(add))).toThrow('refused')
  follower.gate = null
  await write(db, new Random(3), 1)
  expect(times).toBe(0)
  await db.logFollowing!.rewind(add)
  expect(times).toBe(1)
  await db.close()
})

test('a file that is being closed is not read again, and what reads it ends first', async () => {
  const { path, db } = await open('read.db')
  await db.close()
  const files = new DatabaseFiles(path)
  const first = files.read(new Uint8Array(PAGE_BYTES), 0)
  const closed = files.close()
  expect(await thrownBy(files.read(new Uint8Array(PAGE_BYTES), 0))).toThrow('is closed')
  expect(await first).toBe(PAGE_BYTES)
  await closed
})

test('a follower notices that something else has emptied the log', async () => {
  const { path, db } = await open('emptied.db')
  const random = new Random(5)
  const follower = await follow(db)
  for (let i = 0; i < 3; i++) await write(db, random, 5)
  follower.take()
  // Behind its back, with nothing that it knows of in between.
  for (let i = 0; i < 3; i++) await write(db, random, 5)
  const other = new File(path)
  other.run('PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  await write(db, random, 5)
  follower.take()
  expect(follower.isBroken).toBe(true)
  await db.close()
})

test('a database whose pages have another size is not followed', async () => {
  const dataDir = join(scratch, 'large')
  mkdirSync(dataDir)
  const file = new File(join(dataDir, 'holdfast.db'), { create: true })
  file.run('PRAGMA page_size = 8192')
  file.run('VACUUM')
  file.close()
  const backup = { continuous: join(scratch, 'destination') }
  const config = testConfig({ dataDir, port: 1, publicUrl: 'http://localhost:1' }, { backup, development: true })
  expect(await thrownBy(startApp(config))).toThrow('needs a database with pages of 4096 bytes')
})
