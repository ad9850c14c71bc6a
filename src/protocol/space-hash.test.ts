import { expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/permissioned-data-v1.json' with { type: 'json' }
import { Random } from '../../tests/support/random.ts'
import { hashOfSet } from '../../tests/support/space-oracle.ts'
import { parseCid } from './cid.ts'
import { addToSet, emptySetState, removeFromSet, SET_STATE_BYTES, setElement, setHash } from './space-hash.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

function stateOf(...elements: readonly string[]): Uint8Array {
  const state = emptySetState()
  for (const element of elements) addToSet(state, element)
  return state
}
const hashOf = (...elements: readonly string[]): string => hex(setHash(stateOf(...elements)))

test('the hashes are those of the vectors', () => {
  expect(hashOf()).toBe(vectors.lthash_empty)
  expect(hashOf('one')).toBe(vectors.lthash_one)
  expect(hashOf('one', 'one')).toBe(vectors.lthash_one_one)
  expect(hashOf('one', 'two')).toBe(vectors.lthash_one_two)
  expect(hashOf('two', 'one')).toBe(vectors.lthash_one_two)
  expect(hashOf(...vectors.elements)).toBe(vectors.repo_hash)
  const less = stateOf('one', 'two')
  removeFromSet(less, 'one')
  expect(hex(setHash(less))).toBe(hashOf('two'))
  expect(hex(setHash(less))).toBe(vectors.lthash_one_two_less_one)
})

test('a record is expanded to the bytes of the vector', () => {
  expect(hex(stateOf('one').subarray(0, 32))).toBe(vectors.blake3_one_first32)
})

test('an element is the path and the CID of a record', () => {
  const elements = Object.entries(vectors.record_cids).map(([path, cid]) => setElement(path, parseCid(cid)!))
  expect(elements.toSorted()).toEqual(vectors.elements.toSorted())
})

test('a second implementation comes to the same hash for elements of every length', () => {
  const random = new Random(1602)
  for (let length = 0; length < 900; length += 1 + random.below(20)) {
    const element = Array.from({ length }, () => random.of([...'abc/.é0'])).join('')
    expect([length, hashOf(element)]).toEqual([length, hashOfSet([element])])
  }
})

test('10,000 writes in any order end at the hash of what is left', () => {
  const random = new Random(1603)
  const state = emptySetState()
  const present: string[] = []
  for (let i = 0; i < 10_000; i++) {
    if (present.length < 40 || (present.length < 80 && random.below(2) === 0)) {
      const element = `com.example.note/${random.below(50)}/${i}`
      present.push(element)
      addToSet(state, element)
    } else removeFromSet(state, present.splice(random.below(present.length), 1)[0]!)
    if (i % 1000 === 999) expect([i, hex(setHash(state))]).toEqual([i, hashOfSet(present)])
  }
  for (const element of present) removeFromSet(state, element)
  expect(state).toEqual(emptySetState())
})

test('a state of another length is a bug of the caller', () => {
  for (const length of [0, 32, SET_STATE_BYTES - 1, SET_STATE_BYTES + 1])
    expect(() => addToSet(new Uint8Array(length), 'one')).toThrow(TypeError)
})
