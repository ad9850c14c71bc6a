import { describe, expect, test } from 'bun:test'
import { CID } from 'multiformats/cid'
import { base32, Cid, cidFromBytes, cidOfBlob, cidOfBlobDigest, cidOfCbor, isBlockOf, isCid, parseCid } from './cid.ts'

const text = 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a'

describe('a CID', () => {
  test('reads and prints the same text and bytes as multiformats', () => {
    for (let i = 0; i < 500; i++) {
      const cid = (i % 2 ? cidOfCbor : cidOfBlob)(crypto.getRandomValues(new Uint8Array(i)))
      const theirs = CID.decode(cid.bytes)
      expect(cid.toString()).toBe(theirs.toString())
      expect(parseCid(theirs.toString())?.bytes).toEqual(cid.bytes)
      expect(isCid(theirs.toString())).toBe(true)
      expect(cidFromBytes(theirs.bytes)?.equals(cid)).toBe(true)
    }
  })

  test('of a digest equals the CID of the bytes', () => {
    const bytes = new TextEncoder().encode('blob')
    expect(cidOfBlobDigest(Bun.SHA256.hash(bytes) as Uint8Array).equals(cidOfBlob(bytes))).toBe(true)
  })

  test('is taken by multiformats as one of its own', () => {
    const cid = parseCid(text) as Cid
    expect(CID.asCID(cid)?.toString()).toBe(text)
    expect(JSON.stringify({ cid })).toBe(`{"cid":{"$link":"${text}"}}`)
  })

  test('refuses every text but the canonical one', () => {
    const refused = [
      '',
      'b',
      text.toUpperCase(),
      `${text}=`,
      ` ${text}`,
      text.slice(0, -1),
      `${text}a`,
      `z${text.slice(1)}`,
      `${text.slice(0, -1)}b`, // unused bits set
      `${text.slice(0, 20)}é${text.slice(21)}`,
      `${text.slice(0, 20)}1${text.slice(21)}`,
      'QmbWqxBEKC3P8tqsKc98xmWNzrzDtRLMiMPL8wBuTGsMnR', // version 0
      'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi', // dag-pb
    ]
    for (const bad of refused) expect([bad, parseCid(bad), isCid(bad)]).toEqual([bad, null, false])
  })

  test('refuses other versions, codecs, hashes and lengths', () => {
    const good = (parseCid(text) as Cid).bytes
    for (let i = 0; i < 4; i++) {
      const bad = good.slice()
      bad[i]! ^= 0x80
      expect(cidFromBytes(bad)).toBeNull()
    }
    expect(cidFromBytes(good.subarray(0, 35))).toBeNull()
    expect(cidFromBytes(new Uint8Array([...good, 0]))).toBeNull()
  })

  test('is that of its own block and of no other, whatever its codec', () => {
    const block = new Uint8Array([1, 2, 3])
    for (const cid of [cidOfCbor(block), cidOfBlob(block)]) {
      expect(isBlockOf(cid.bytes, block)).toBe(true)
      expect(isBlockOf(cid.bytes, new Uint8Array([1, 2, 4]))).toBe(false)
    }
  })

  test('differs from a CID of other bytes, and from nothing', () => {
    const a = cidOfCbor(new Uint8Array([1]))
    expect(a.equals(cidOfCbor(new Uint8Array([2])))).toBe(false)
    expect(a.equals(cidOfBlob(new Uint8Array([1])))).toBe(false)
    expect(a.equals(null)).toBe(false)
  })
})

test('base32 follows RFC 4648', () => {
  const encoded = ['', 'f', 'fo', 'foo', 'foob', 'fooba', 'foobar'].map((text) =>
    base32(new TextEncoder().encode(text)),
  )
  expect(encoded).toEqual(['', 'my', 'mzxq', 'mzxw6', 'mzxw6yq', 'mzxw6ytb', 'mzxw6ytboi'])
})
