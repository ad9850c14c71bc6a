import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BlockFile } from '../../../src/platform/files/block-file.ts'
import { BatchFile } from '../../../src/platform/files/batch-file.ts'
import { SpillQueue, SpillRoom } from '../../../src/platform/files/spill-queue.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { openFiles } from '../../support/faults/open-files.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const dir = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
afterAll(() => rmSync(dir, { recursive: true }))

const room = new SpillRoom({ memoryBytes: 64 * 1024 ** 2, fileBytes: 64 * 1024 ** 2 })

const filled = (length: number, byte: number) => new Uint8Array(length).fill(byte)
/** The descriptors of files of queues. Those of other tests in the process may come and go. */
const queueFiles = () => [...openFiles()].filter(([, file]) => file.startsWith(dir)).map(([descriptor]) => descriptor)

const chunks = (count: number) => Array.from({ length: count }, (_, i) => filled(65_536, i))
const readAll = async (queue: SpillQueue) => Buffer.from(await new Response(queue.stream()).arrayBuffer())

const ended = (queue: SpillQueue): SpillQueue => {
  queue.end()
  return queue
}

test.each([0, 10, 100])(
  'what is pushed before anybody reads comes out in order, %p chunks of 64 KiB',
  async (count) => {
    const before = queueFiles().length
    const queue = new SpillQueue({ dir, room })
    for (const chunk of chunks(count)) queue.push(chunk)
    queue.end()
    expect(readdirSync(dir)).toEqual([])
    expect((await readAll(queue)).equals(Buffer.concat(chunks(count)))).toBe(true)
    expect(queueFiles().length).toBe(before)
  },
)

test('a reader that is now faster and now slower than the writer gets everything once', async () => {
  const before = queueFiles().length
  const queue = new SpillQueue({ dir, room })
  const reader = queue.stream().getReader()
  const written: Uint8Array[] = []
  const read: Uint8Array[] = []
  for (let round = 0; round < 12; round++) {
    for (let i = 0; i < (round % 3) * 60; i++) {
      const chunk = filled(65_536, round * 16 + i)
      written.push(chunk)
      queue.push(chunk)
    }
    const target = round % 2 ? written.length * 65_536 : (written.length * 65_536) / 2
    while (read.reduce((sum, { length }) => sum + length, 0) < target) read.push((await reader.read()).value!)
  }
  queue.end()
  for (let next = await reader.read(); !next.done; next = await reader.read()) read.push(next.value)
  expect(Buffer.concat(read).equals(Buffer.concat(written))).toBe(true)
  expect(queueFiles().length).toBe(before)
})

test('memory is given back once a reader that takes each piece asks for the next one, unless others share it', async () => {
  const both = filled(8, 7)
  for (const takesPieces of [true, false]) {
    const queue = new SpillQueue({ dir, room, takesPieces })
    for (const chunk of [filled(3, 1), both.subarray(4), filled(5, 2)]) queue.push(chunk)
    const reader = ended(queue).stream().getReader()
    const first = (await reader.read()).value!
    expect(first).toEqual(filled(3, 1))
    const second = (await reader.read()).value!
    expect(first.length).toBe(takesPieces ? 0 : 3)
    expect((await reader.read()).value).toEqual(filled(5, 2))
    expect([second, both]).toEqual([filled(4, 7), filled(8, 7)])
    expect((await reader.read()).done).toBe(true)
  }
})

test('a reader waits for the writer, and hears of its failure', async () => {
  const queue = new SpillQueue({ dir, room })
  const reader = queue.stream().getReader()
  const first = reader.read()
  queue.push(filled(3, 1))
  expect((await first).value).toEqual(filled(3, 1))
  const second = reader.read()
  queue.fail(new Error('no more'))
  expect(await thrownBy(second)).toThrow('no more')
})

test('a stream that is given up, or never begun, lets go of its file', async () => {
  const before = queueFiles().length
  for (const reads of [0, 1]) {
    const queue = new SpillQueue({ dir, room })
    for (const chunk of chunks(100)) queue.push(chunk)
    const reader = queue.stream().getReader()
    for (let i = 0; i < reads; i++) await reader.read()
    await reader.cancel()
    expect(queue.isCancelled).toBe(true)
    queue.push(filled(1, 1))
  }
  expect(queueFiles().length).toBe(before)
})

test.each([
  [
    'in memory that the writer gave away',
    3,
    (pushed: Uint8Array[]) => void structuredClone(pushed[1], { transfer: [pushed[1]!.buffer as ArrayBuffer] }),
  ],
  ['in a file that was cut', 100, () => truncateSync(`/proc/self/fd/${queueFiles()[0]}`, 10 * 65_536)],
] as const)(
  'bytes that are lost %s end the stream with an error, and nothing goes out behind them',
  async (_, count, lose) => {
    const before = queueFiles().length
    const queue = new SpillQueue({ dir, room })
    const pushed = chunks(count)
    for (const chunk of pushed) queue.push(chunk)
    lose(pushed)
    const reader = ended(queue).stream().getReader()
    const read: Uint8Array[] = []
    const failure = await (async () => {
      for (;;) read.push((await reader.read()).value!)
    })().catch(String)
    expect(failure).toContain('has lost bytes at offset')
    const whole = Buffer.concat(chunks(count))
    const got = Buffer.concat(read)
    expect(got.length).toBeLessThan(whole.length)
    expect(got.equals(whole.subarray(0, got.length))).toBe(true)
    expect(queue.isCancelled).toBe(true)
    expect(queueFiles().length).toBe(before)
    // The room is whole again.
    const next = new SpillQueue({ dir, room })
    for (const chunk of chunks(100)) next.push(chunk)
    expect((await readAll(ended(next))).equals(Buffer.concat(chunks(100)))).toBe(true)
  },
)

test('several queues share their room, and what one gives up others may take', async () => {
  const before = queueFiles().length
  const small = new SpillRoom({ memoryBytes: 50 * 65_536, fileBytes: 20 * 65_536 })
  const [one, other] = [new SpillQueue({ dir, room: small }), new SpillQueue({ dir, room: small })]
  for (const chunk of chunks(10)) one.push(chunk)
  expect(queueFiles().length).toBe(before)
  for (const chunk of chunks(28)) other.push(chunk)
  expect(queueFiles().length).toBe(before + 1)
  for (const queue of [one, other]) expect(() => queue.push(filled(65_536, 1))).toThrow('the queues of slow readers')
  expect((await readAll(ended(other))).equals(Buffer.concat(chunks(28)))).toBe(true)
  for (const chunk of chunks(20)) one.push(chunk)
  expect((await readAll(ended(one))).equals(Buffer.concat([...chunks(10), ...chunks(20)]))).toBe(true)
  expect(queueFiles().length).toBe(before)
})

test('whoever has most of the space makes room for others, its oldest queue first', async () => {
  const before = queueFiles().length
  const small = new SpillRoom({ memoryBytes: 0, fileBytes: 30 * 65_536 })
  const ended: string[] = []
  const queueOf = (owner: string, name: string) =>
    new SpillQueue({ dir, room: small, owner, onEnd: () => ended.push(name) })
  const queues = [queueOf('a', 'a1'), queueOf('a', 'a2'), queueOf('b', 'b1')]
  const readers = queues.map((queue) => {
    for (const chunk of chunks(10)) queue.push(chunk)
    return queue.stream().getReader()
  })
  const late = queueOf('c', 'c1')
  const lateReader = late.stream().getReader()
  for (const chunk of chunks(10)) late.push(chunk)
  expect(ended).toEqual(['a1'])
  expect(await thrownBy(readers[0]!.read())).toThrow('others need the space')
  // Now nobody has more than the others, and each is at its own expense.
  expect(() => late.push(filled(65_536, 1))).toThrow('the queues of slow readers')
  for (const reader of [...readers.slice(1), lateReader]) await reader.cancel()
  expect(ended).toEqual(['a1', 'a2', 'b1', 'c1'])
  expect(queueFiles().length).toBe(before)
})

test.each([10, 100])('a reader that takes nothing any more of %p chunks is given up', async (count) => {
  const before = queueFiles().length
  const queue = new SpillQueue({ dir, room, stallMillis: 20 })
  for (const chunk of chunks(count)) queue.push(chunk)
  const reader = queue.stream().getReader()
  await reader.read()
  await until(() => queue.isCancelled)
  expect(queueFiles().length).toBe(before)
  expect(await thrownBy(reader.read())).toThrow('the reader is idle')
})

test('a reader that takes nothing makes room for another, and one that reads does not', async () => {
  const before = queueFiles().length
  const small = new SpillRoom({ memoryBytes: 0, fileBytes: 20 * 65_536 }, 100)
  const [idle, reading, late] = [1, 2, 3].map(() => new SpillQueue({ dir, room: small })) as [
    SpillQueue,
    SpillQueue,
    SpillQueue,
  ]
  for (const queue of [idle, reading]) for (const chunk of chunks(10)) queue.push(chunk)
  const idleReader = idle.stream().getReader()
  const reader = reading.stream().getReader()
  await Bun.sleep(100)
  await reader.read()
  for (const chunk of chunks(10)) late.push(chunk)
  expect([idle.isCancelled, reading.isCancelled]).toEqual([true, false])
  expect(await thrownBy(idleReader.read())).toThrow('the reader is idle')
  expect(() => late.push(filled(65_536, 1))).toThrow('the queues of slow readers')
  await reader.cancel()
  expect((await readAll(ended(late))).equals(Buffer.concat(chunks(10)))).toBe(true)
  expect(queueFiles().length).toBe(before)
})

test('batches of rows come back as they were added', () => {
  const before = queueFiles().length
  const file = new BatchFile<{ n: number; text: string }>(dir)
  expect([...file.batches()]).toEqual([])
  const batches = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: i }, (_, n) => ({ n, text: `é${'x'.repeat(n)}` })),
  )
  for (const batch of batches) file.add(batch)
  expect([...file.batches()]).toEqual(batches.slice(1))
  file.close()
  expect(queueFiles().length).toBe(before)
})

test('blocks are found by their CID, whatever their number and size', () => {
  const file = new BlockFile(dir)
  const blocks = Array.from({ length: 20_000 }, (_, i) => {
    const bytes = Buffer.from(`block ${i} `.padEnd(i % 100 === 0 ? 5000 : 20 + (i % 300), 'x'))
    return { cid: cidOfCbor(bytes), bytes }
  })
  const large = filled(700_000, 7)
  blocks.push({ cid: cidOfCbor(large), bytes: Buffer.from(large) })
  for (const { cid, bytes } of [...blocks, ...blocks.slice(0, 100)]) file.add(Buffer.concat([cid.bytes, bytes]))
  expect(file.count).toBe(blocks.length)
  for (const { cid, bytes } of blocks) expect(bytes.equals(file.get(cid)!)).toBe(true)
  expect(file.get(cidOfCbor(filled(1, 1)))).toBeNull()
  expect(readdirSync(dir)).toEqual([])
  file.close()
})
