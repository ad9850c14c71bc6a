/** The part of DER that requests for certificates need. Source: ITU-T X.690. */

const SEQUENCE = 0x30
const SET = 0x31
const OBJECT_IDENTIFIER = 0x06
const OCTET_STRING = 0x04
const BIT_STRING = 0x03
const INTEGER = 0x02

/** One value: its tag, its length and its content. */
export function tagged(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(contents)
  return Buffer.concat([Uint8Array.of(tag), lengthOf(content.length), content])
}

function lengthOf(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length)
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return Buffer.concat([Uint8Array.of(0x80 | bytes.length), bytes])
}

export const sequence = (...values: readonly Uint8Array[]) => tagged(SEQUENCE, ...values)
export const set = (...values: readonly Uint8Array[]) => tagged(SET, ...values)
export const octetString = (content: Uint8Array) => tagged(OCTET_STRING, content)
/** A bit string of whole bytes. */
export const bitString = (content: Uint8Array) => tagged(BIT_STRING, Uint8Array.of(0), content)
export const smallInteger = (value: number) => tagged(INTEGER, Uint8Array.of(value))
/** `content` is the encoded identifier, without its tag and length. */
export const objectIdentifier = (...content: readonly number[]) => tagged(OBJECT_IDENTIFIER, Uint8Array.from(content))

interface Value {
  tag: number
  content: Uint8Array
  /** Where the next value begins. */
  end: number
}

/** Returns the value at a place, or null if it is cut off or longer than 16 MiB. */
function valueAt(bytes: Uint8Array, at: number): Value | null {
  const tag = bytes[at]
  const first = bytes[at + 1]
  if (tag === undefined || first === undefined) return null
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  if (lengthBytes > 3) return null
  const start = at + 2 + lengthBytes
  const length = first < 0x80 ? first : bytes.subarray(at + 2, start).reduce((sum, byte) => sum * 256 + byte, 0)
  return start + length <= bytes.length
    ? { tag, content: bytes.subarray(start, start + length), end: start + length }
    : null
}

/** Returns the values that follow each other in `content`, up to the first one that is cut off. */
export function valuesIn(content: Uint8Array): Value[] {
  const values: Value[] = []
  for (let value = valueAt(content, 0); value !== null; value = valueAt(content, value.end)) values.push(value)
  return values
}
