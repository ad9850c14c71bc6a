/**
 * The set hash of a permissioned repository: 32 bytes that stand for all its records, whatever their order.
 *
 * The state has 1024 lanes of 16 bits, little-endian. BLAKE3 expands a record to the same number of lanes, which are
 * added to the state when the record is written and subtracted when it is deleted. So a write costs the same however
 * large the repository is. The state is that of a multiset: a record that is added twice counts twice.
 *
 * Source: atproto proposal 0016, "Set hash" (LtHash); BLAKE3, 2.6 (extendable output).
 */
import { blake3 } from '@noble/hashes/blake3'
import type { Cid } from './cid.ts'

const LANES = 1024
export const SET_STATE_BYTES = 2 * LANES

/** The state of an empty repository. */
export const emptySetState = (): Uint8Array => new Uint8Array(SET_STATE_BYTES)

/** The element of the set that stands for a record. `path` is `collection/rkey`. */
export const setElement = (path: string, cid: Cid): string => `${path}/${cid}`

/** The lanes of an element, which take 50 µs. */
export const setLanes = (element: string): Uint8Array => blake3(Buffer.from(element), { dkLen: SET_STATE_BYTES })

/** Adds an element, or its lanes, to a state, in place. */
export const addToSet = (state: Uint8Array, element: string | Uint8Array): void => fold(state, element, 1)

/** Removes an element, or its lanes, from a state that contains it, in place. */
export const removeFromSet = (state: Uint8Array, element: string | Uint8Array): void => fold(state, element, -1)

function fold(state: Uint8Array, element: string | Uint8Array, sign: 1 | -1): void {
  if (state.length !== SET_STATE_BYTES) throw new TypeError(`The state of a set has ${SET_STATE_BYTES} bytes`)
  const lanes = typeof element === 'string' ? setLanes(element) : element
  for (let i = 0; i < SET_STATE_BYTES; i += 2) {
    const sum = lane(state, i) + sign * lane(lanes, i)
    state[i] = sum
    state[i + 1] = sum >> 8
  }
}

const lane = (bytes: Uint8Array, at: number): number => (bytes[at] as number) | ((bytes[at + 1] as number) << 8)

/** The hash in commits: SHA-256 of the state. */
export function setHash(state: Uint8Array): Uint8Array {
  const hash = new Uint8Array(32)
  Bun.SHA256.hash(state, hash)
  return hash
}
