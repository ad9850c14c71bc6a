/**
 * A second reading of permissioned data's formats, written for plainness from the same text: one expression for an
 * address, BLAKE3 of one chunk, signatures by other libraries than the server's. The tests compare both.
 */
import { expand } from '@noble/hashes/hkdf'
import { hmac } from '@noble/hashes/hmac'
import { sha256 } from '@noble/hashes/sha2'
import type { SpaceCommit } from '../../src/protocol/space-commit.ts'
import type { PublicKey } from '../../src/protocol/keys.ts'

// Addresses

export const didPattern = '(?<did>did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-])'
const nsid =
  '[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)+\\.[a-zA-Z][a-zA-Z0-9]{0,62}'
const key = '(?!\\.{1,2}(?:/|$))[a-zA-Z0-9_~.:-]{1,512}'
const space = new RegExp(`^at://${didPattern}/space/(?<type>${nsid})/${key}$`)
const spaceRecord = new RegExp(
  `^at://${didPattern}/space/(?<type>${nsid})/${key}/(?<author>${didPattern.replace('?<did>', '')})/(?<collection>${nsid})/${key}$`,
)
const fits = (name = '') => name.length <= 317
export const isShortDid = (name = '') => name.length <= 2048

/** The authority of a space that the text names; null if it names none. */
export function spaceAuthority(text: string): string | null {
  const { did, type } = space.exec(text)?.groups ?? {}
  return did !== undefined && isShortDid(did) && fits(type) ? did : null
}

export function isSpaceRecord(text: string): boolean {
  const groups = spaceRecord.exec(text)?.groups
  return (
    groups !== undefined &&
    isShortDid(groups['did']) &&
    isShortDid(groups['author']) &&
    fits(groups['type']) &&
    fits(groups['collection'])
  )
}

// The set hash

const initial = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
] as const
const permutation = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
const [CHUNK_START, CHUNK_END, ROOT] = [1, 2, 8] as const

function compress(
  chaining: readonly number[],
  block: readonly number[],
  counter: number,
  length: number,
  flags: number,
) {
  const v = [...chaining, ...initial.slice(0, 4), counter, 0, length, flags].map((word) => word >>> 0)
  let m = [...block]
  const rotate = (word: number, by: number) => ((word >>> by) | (word << (32 - by))) >>> 0
  const mix = (a: number, b: number, c: number, d: number, x: number, y: number) => {
    for (const [word, first, second] of [
      [x, 16, 12],
      [y, 8, 7],
    ] as const) {
      v[a] = (v[a]! + v[b]! + word) >>> 0
      v[d] = rotate(v[d]! ^ v[a]!, first)
      v[c] = (v[c]! + v[d]!) >>> 0
      v[b] = rotate(v[b]! ^ v[c]!, second)
    }
  }
  for (let round = 0; round < 7; round++) {
    for (let i = 0; i < 4; i++) mix(i, 4 + i, 8 + i, 12 + i, m[2 * i]!, m[2 * i + 1]!)
    for (let i = 0; i < 4; i++)
      mix(i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4), m[8 + 2 * i]!, m[9 + 2 * i]!)
    m = permutation.map((place) => m[place]!)
  }
  return v.map((word, i) => (i < 8 ? word ^ v[i + 8]! : word ^ chaining[i - 8]!) >>> 0)
}

/** The first 2048 bytes of BLAKE3's output as 1024 numbers. An element is shorter than a chunk of 1024 bytes. */
export function lanesOf(element: string): number[] {
  const bytes = Buffer.from(element)
  const blocks = Array.from({ length: Math.max(1, Math.ceil(bytes.length / 64)) }, (_, i) => {
    const block = Buffer.alloc(64)
    bytes.copy(block, 0, i * 64, (i + 1) * 64)
    return Array.from({ length: 16 }, (__, word) => block.readUInt32LE(word * 4))
  })
  const last = blocks.length - 1
  let chaining: readonly number[] = initial
  for (let i = 0; i < last; i++) chaining = compress(chaining, blocks[i]!, 0, 64, i === 0 ? CHUNK_START : 0).slice(0, 8)
  const flags = (last === 0 ? CHUNK_START : 0) | CHUNK_END | ROOT
  return Array.from({ length: 32 }, (_, i) => compress(chaining, blocks[last]!, i, bytes.length - last * 64, flags))
    .flat()
    .flatMap((word) => [word & 0xffff, word >>> 16])
}

/** The set hash of all elements at once. */
export function hashOfSet(elements: readonly string[]): string {
  const sums = elements.map(lanesOf).reduce((sum, lanes) => sum.map((lane, i) => lane + lanes[i]!), Array(1024).fill(0))
  const state = Buffer.alloc(2048)
  sums.forEach((sum, i) => state.writeUInt16LE(sum % 65_536, 2 * i))
  return Buffer.from(sha256(state)).toString('hex')
}

// Signatures

/** The part of the native library that is used here. It throws on numbers outside the group, and refuses a high S. */
const { ecdsaVerify } = require('secp256k1') as {
  ecdsaVerify(signature: Uint8Array, digest: Uint8Array, point: Uint8Array): boolean
}

const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

export async function isSigned(
  message: Uint8Array,
  signature: Uint8Array,
  by: PublicKey,
  highS: boolean,
): Promise<boolean> {
  if (signature.length !== 64) return false
  if (by.curve === 'k256') {
    try {
      return ecdsaVerify(new Uint8Array(signature), sha256(message), by.bytes)
    } catch {
      return false
    }
  }
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`)
  if (!highS && s > P256_ORDER / 2n) return false
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', new Uint8Array(by.bytes), algorithm, false, ['verify'])
  return crypto.subtle.verify(algorithm, imported, new Uint8Array(signature), new Uint8Array(message))
}

// Commits

/** `commit` has the right types. */
export async function isCommitOf(
  { ver, hash, ikm, sig, mac, rev }: SpaceCommit,
  spaceUri: string,
  author: string,
  by: PublicKey,
): Promise<boolean> {
  const prefixed = [spaceUri, author, rev, ikm].map((part) => {
    const bytes = Buffer.from(part as string)
    return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes])
  })
  const context = Buffer.concat([Buffer.from('atproto-space-v1'), ...prefixed])
  const expected = hmac(sha256, expand(sha256, ikm, context, 32), hash)
  return (
    ver === 1 &&
    [hash, ikm, mac].every(({ length }) => length === 32) &&
    Buffer.from(expected).equals(mac) &&
    isSigned(context, sig, by, false)
  )
}
