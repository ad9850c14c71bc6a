import { describe, expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/permissioned-data-v1.json' with { type: 'json' }
import { flipped } from '../../tests/support/mutations.ts'
import { Random } from '../../tests/support/random.ts'
import { isCommitOf } from '../../tests/support/space-oracle.ts'
import { type Data, type DataObject, decode, encode } from './cbor.ts'
import { cidOfCbor } from './cid.ts'
import { dataToJson, jsonToData } from './data-model.ts'
import type { Did, SpaceUri, Tid } from './identifiers.ts'
import { parseDidKey, signingKey, type Curve } from './keys.ts'
import { Malformed } from './malformed.ts'
import {
  commitContext,
  commitMacKey,
  parseSpaceCommit,
  signSpaceCommit,
  verifySpaceCommit,
  type SpaceCommit,
} from './space-commit.ts'

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))
const hex = (value: Uint8Array): string => Buffer.from(value).toString('hex')

const space = 'at://did:example:space/space/app.bsky.group/test' as SpaceUri
const author = 'did:example:alice' as Did
const ikm = new Uint8Array(32).fill(7)
/** The revision of the vectors has zeros, which no TID has. */
const place = { space, author, rev: '3kbcq3p7ad400' as Tid, ikm }
const laterPlace = { ...place, rev: '3kbcq3p7ad422' as Tid }
const hash = bytes(vectors.repo_hash)
const keyOf = (curve: Curve) =>
  signingKey(curve, new Bun.SHA256().update(`holdfast spaces ${curve}`).digest() as Uint8Array)
const known = { p256: vectors.commit_ES256, k256: vectors.commit_ES256K } as const

test('context, MAC and its key are those of the vectors', () => {
  const context = commitContext(place)
  expect(hex(context)).toBe(vectors.ctx)
  expect(hex(commitMacKey(place.ikm, context))).toBe(vectors.mac_key)
  expect(hex(signSpaceCommit(place, hash, keyOf('k256')).mac)).toBe(vectors.mac)
})

test('a signature of secp256k1 is the one of the vectors, and so is the CID of the commit', () => {
  const commit = signSpaceCommit(place, hash, keyOf('k256'))
  expect(hex(commit.sig)).toBe(vectors.commit_ES256K.sig)
  expect(cidOfCbor(encode(commit as unknown as DataObject)).toString()).toBe(vectors.commit_ES256K.cid)
})

describe.each(['p256', 'k256'] as const)('a commit signed with a key of %s', (curve) => {
  const key = parseDidKey(known[curve].did_key)!
  const commit = signSpaceCommit(laterPlace, hash, keyOf(curve))

  test('is verified with the published key, for its own repository only', () => {
    const ofVectors: SpaceCommit = { ...signSpaceCommit(place, hash, keyOf(curve)), sig: bytes(known[curve].sig) }
    expect(verifySpaceCommit(ofVectors, space, author, key)).toBe(true)
    expect(verifySpaceCommit(commit, space, author, key)).toBe(true)
    expect(verifySpaceCommit(commit, `${space}2` as SpaceUri, author, key)).toBe(false)
    expect(verifySpaceCommit(commit, space, 'did:example:bob' as Did, key)).toBe(false)
    expect(verifySpaceCommit({ ...commit, rev: '3kbcq3p7ad423' as Tid }, space, author, key)).toBe(false)
  })

  test('survives CBOR and JSON', () => {
    expect(parseSpaceCommit(decode(encode(commit as unknown as DataObject)))).toEqual(commit)
    const json = JSON.stringify(dataToJson(commit as unknown as Data))
    expect(json).toContain('"hash":{"$bytes":"')
    expect(parseSpaceCommit(jsonToData(JSON.parse(json)))).toEqual(commit)
  })

  test('is refused with a high s, which a second verifier would have to accept too', () => {
    const order = {
      p256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
      k256: 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n,
    }[curve]
    const s = order - BigInt(`0x${hex(commit.sig.subarray(32))}`)
    const sig = bytes(hex(commit.sig.subarray(0, 32)) + s.toString(16).padStart(64, '0'))
    expect(verifySpaceCommit({ ...commit, sig }, space, author, key)).toBe(false)
    expect(key.verify(commitContext(laterPlace), sig, { allowHighS: true })).toBe(true)
  })

  test('is refused with any bit of its block changed, as a second reader has it', async () => {
    const random = new Random(1604)
    const block = encode(commit as unknown as DataObject)
    let read = 0
    for (let i = 0; i < 10_000; i++) {
      let changed: SpaceCommit
      try {
        changed = parseSpaceCommit(decode(flipped(block, random)))
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed)
        continue
      }
      read++
      expect(verifySpaceCommit(changed, space, author, key)).toBe(false)
      if (read % 10 === 0) expect(await isCommitOf(changed, space, author, key)).toBe(false)
    }
    expect(read).toBeGreaterThan(5000)
    expect(await isCommitOf(commit, space, author, key)).toBe(true)
  })
})

test('a commit with members missing, added or of another form is malformed', () => {
  const commit = signSpaceCommit(laterPlace, hash, keyOf('k256')) as unknown as DataObject
  const forms: Data[] = [null, 0, 2, '', 'x', [], {}, new Uint8Array(0), new Uint8Array(33), new Uint8Array(65)]
  for (const name of Object.keys(commit)) {
    const { [name]: _, ...rest } = commit
    expect(() => parseSpaceCommit(rest)).toThrow(Malformed)
    for (const form of forms) expect(() => parseSpaceCommit({ ...commit, [name]: form })).toThrow(Malformed)
  }
  expect(() => parseSpaceCommit({ ...commit, more: 1 })).toThrow(Malformed)
  for (const form of [...forms, cidOfCbor(new Uint8Array(1))]) expect(() => parseSpaceCommit(form)).toThrow(Malformed)
})
