/** The files in which segments wait for the destination, as a kill at any moment leaves them. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sealObject, digestOf } from '../../../src/features/operations/backup/continuous-format.ts'
import { Spool, type ChainState } from '../../../src/features/operations/backup/continuous-spool.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-spool-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const COUNT = 60

/** A spool of segments that wait. */
async function filled(folder: string) {
  const spool = new Spool(folder)
  await spool.open('there', 0)
  let state: ChainState = {
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
  for (let number = 1; number <= COUNT; number++) {
    const header = { kind: 'segment', chain: 'chain', number, previous: state.digest, at: number, seq: 0 } as const
    const content = await sealObject(new Uint8Array(32), { ...header, databasePages: 1 }, new Uint8Array(4))
    state = { ...state, number, next: number + 1, digest: digestOf(content), at: number }
    await spool.add(state, content, 0)
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
  const deleted = Promise.all(Array.from({ length: COUNT }, () => spool.shift())).then(() => (isOver = true))
  while (!isOver) {
    const left = numbers(folder)
    expect(left).toEqual(left.map((_, index) => COUNT - left.length + 1 + index))
    await nextTurn()
  }
  await deleted
  expect(numbers(folder)).toEqual([])
})
