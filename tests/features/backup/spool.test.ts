/** The files in which segments wait for the destination, as a kill at any moment leaves them. */
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sealObject, digestOf } from '../../../src/features/operations/backup/continuous-format.ts'
import { Spool, type ChainState } from '../../../src/features/operations/backup/continuous-spool.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { thrownBy } from '../../support/thrown.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-spool-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const COUNT = 60

const first: ChainState = {
  destination: 'there',
  chain: 'chain',
  key: '',
  number: 0,
  next: 1,
  digest: digestOf('chain'),
  at: 0,
  position: { salts: '', frames: 0, checksum: '' },
  baseAt: null,
  sinceBase: 0,
  closed: null,
}

/** The segment that follows, and the state with it. */
async function segmentAfter(state: ChainState): Promise<{ state: ChainState; content: Uint8Array }> {
  const number = state.next
  const header = { kind: 'segment', chain: 'chain', number, previous: state.digest, at: number, seq: 0 } as const
  const content = await sealObject(new Uint8Array(32), { ...header, databasePages: 1 }, new Uint8Array(4))
  return { state: { ...state, number, next: number + 1, digest: digestOf(content), at: number }, content }
}

/** A spool of segments that wait. */
async function filled(folder: string) {
  const spool = new Spool(folder, systemClock)
  await spool.open('there')
  let state = first
  for (let number = 1; number <= COUNT; number++) {
    const segment = await segmentAfter(state)
    state = segment.state
    await spool.add(state, segment.content, 0)
  }
  return spool
}

const numbers = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.segment'))
    .map(Number.parseFloat)
    .toSorted((a, b) => a - b)

test('segments that are deleted at the same time leave the last ones of the chain, at any moment', async () => {
  const folder = join(scratch, 'deleted')
  const spool = await filled(folder)
  let isOver = false
  const deleted = Promise.all(Array.from({ length: COUNT }, () => spool.shift(0))).then(() => (isOver = true))
  while (!isOver) {
    const left = numbers(folder)
    expect(left).toEqual(left.map((_, index) => COUNT - left.length + 1 + index))
    await nextTurn()
  }
  await deleted
  expect(numbers(folder)).toEqual([])
})

/** What the next start finds. */
async function found(folder: string): Promise<{ number: number; waiting: number[] }> {
  const spool = new Spool(folder, systemClock)
  const state = await spool.open('there')
  return { number: state?.number ?? 0, waiting: spool.waiting.map(({ number }) => number) }
}

/** An empty spool, and three segments for it. */
async function emptyIn(name: string) {
  const folder = join(scratch, name)
  const spool = new Spool(folder, systemClock)
  await spool.open('there')
  const one = await segmentAfter(first)
  const two = await segmentAfter(one.state)
  const three = await segmentAfter(two.state)
  return { folder, spool, one, two, three }
}

test('segments that are held in memory are written before what follows them, and before a state that counts on them', async () => {
  const { folder, spool, one, two, three } = await emptyIn('held')
  expect(spool.hold(one.state, one.content, 0)).toBe(null)
  expect(spool.hold(two.state, two.content, 0)).toBe(null)
  expect(await found(folder)).toEqual({ number: 0, waiting: [] })
  await spool.save(two.state)
  expect(await found(folder)).toEqual({ number: 2, waiting: [1, 2] })
  await spool.add(three.state, three.content, 0)
  expect(await found(folder)).toEqual({ number: 3, waiting: [1, 2, 3] })
  await Promise.all([spool.shift(0), spool.shift(0)])
  expect(await found(folder)).toEqual({ number: 3, waiting: [3] })
})

test('what was sent from memory is noted now and then, and never replaces a later state', async () => {
  const { folder, spool, one, two, three } = await emptyIn('noted')
  spool.hold(one.state, one.content, 0)
  spool.hold(two.state, two.content, 0)
  await spool.shift(1000)
  expect(await found(folder)).toEqual({ number: 1, waiting: [] })
  expect(spool.shift(1001)).toBe(null)
  await spool.add(three.state, three.content, 0)
  expect(await found(folder)).toEqual({ number: 3, waiting: [3] })
})

test('a segment that cannot be written waits in memory, and is written before the next one', async () => {
  const { folder, spool, one, two } = await emptyIn('unwritable')
  // Nothing can be written under this name.
  const obstacle = join(folder, '1.segment')
  mkdirSync(join(obstacle, 'in the way'), { recursive: true })
  expect(await thrownBy(spool.add(one.state, one.content, 0))).toThrow()
  expect(spool.keeps(1)).toBe(true)
  expect(await thrownBy(spool.add(two.state, two.content, 0))).toThrow()
  expect(spool.waiting.map(({ number }) => number)).toEqual([1, 2])
  expect(await spool.read(spool.waiting[0]!)).toEqual(one.content)
  expect(numbers(folder)).toEqual([1])
  rmSync(obstacle, { recursive: true })
  await spool.flush()
  expect(await found(folder)).toEqual({ number: 2, waiting: [1, 2] })
})

test('a state that could not be written names no segments that were in memory alone', async () => {
  const { folder, spool, one, two } = await emptyIn('unnamed')
  const obstacle = join(folder, 'state.json')
  mkdirSync(join(obstacle, 'in the way'), { recursive: true })
  expect(await thrownBy(spool.add(one.state, one.content, 0))).toThrow()
  expect(await thrownBy(spool.add(two.state, two.content, 0))).toThrow()
  rmSync(obstacle, { recursive: true })
  await spool.shift(1000)
  expect(await found(folder)).toEqual({ number: 1, waiting: [] })
})

test('what has waited for no time yet is not taken for old', async () => {
  const clock = { now: () => 1_000_000, monotonic: () => 50 }
  const folder = join(scratch, 'new')
  const spool = new Spool(folder, clock)
  await spool.open('there')
  const { state, content } = await segmentAfter(first)
  await spool.add(state, content, clock.monotonic())
  const next = new Spool(folder, clock)
  await next.open('there')
  expect(next.waiting.map(({ since }) => since)).toEqual([50])
})
