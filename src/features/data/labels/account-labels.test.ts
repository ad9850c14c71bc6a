import { expect, test } from 'bun:test'
import type { Did } from '../../../protocol/identifiers.ts'
import { LabelTally } from './account-labels.ts'

const labeler = 'did:plc:labeler' as Did
const alice = 'did:plc:alice' as Did
const at = (day: number) => `2026-01-0${day}T00:00:00.000Z`
const now = Date.parse(at(5))

function holding(labels: unknown[], values: string[] = []): string[] {
  const tally = new LabelTally({ labeler, values, dids: [alice] })
  for (const label of labels) tally.add(label)
  return tally.holding(now).map(({ val }) => val)
}
const label = (changes: object) => ({ src: labeler, uri: alice, val: 'spam', cts: at(1), ...changes })

test('a label about an account holds', () => {
  const tally = new LabelTally({ labeler, values: [], dids: [alice] })
  tally.add(label({ exp: at(6) }))
  expect(tally.holding(now)).toEqual([
    { did: alice, val: 'spam', labelledAt: Date.parse(at(1)), expiresAt: Date.parse(at(6)) },
  ])
})

test.each([
  ['of another labeler', label({ src: 'did:plc:other' })],
  ['on a record', label({ uri: `at://${alice}/app.bsky.feed.post/1` })],
  ['on an account that was not asked about', label({ uri: 'did:plc:bob' })],
  ['without a value', label({ val: undefined })],
  ['with a value beyond all bounds', label({ val: 'x'.repeat(200) })],
  ['that has run out', label({ exp: at(5) })],
  ['that is taken back', label({ neg: true })],
  ['that is no object', 'spam'],
  ['that is null', null],
])('a label %s does not', (_, one) => {
  expect(holding([one])).toEqual([])
})

test('the last statement counts, in whatever order they come', () => {
  expect(holding([label({ cts: at(3), neg: true }), label({ cts: at(2) })])).toEqual([])
  expect(holding([label({ cts: at(2) }), label({ cts: at(3), neg: true })])).toEqual([])
  expect(holding([label({ cts: at(3) }), label({ cts: at(2), neg: true })])).toEqual(['spam'])
  expect(holding([label({ cts: 'some day', neg: true }), label({ cts: at(1) })])).toEqual(['spam'])
  expect(holding([label({}), label({ neg: true })])).toEqual([])
})

test('an instant that cannot be read is no end', () => {
  expect(holding([label({ exp: 'never' })])).toEqual(['spam'])
})

test('a list of values leaves the others out', () => {
  expect(holding([label({}), label({ val: 'rude' })], ['rude'])).toEqual(['rude'])
})
