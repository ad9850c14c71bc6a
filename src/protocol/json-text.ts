/**
 * Converts blocks directly to JSON text, without decoded values in between.
 *
 * The text equals `JSON.stringify(dataToJson(decode(block)))`. Works on module state, like `cbor.ts`.
 */
import { unpaddedBase64 } from './base64url.ts'
import { CID_BYTES_LENGTH, cidText } from './cid.ts'
import { Malformed } from './malformed.ts'

const INITIAL_BYTES = 64 * 1024
const KEPT_BYTES = 1024 * 1024

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

let out = Buffer.allocUnsafe(INITIAL_BYTES)
let end = 0
let source: Uint8Array = new Uint8Array(0)
let at = 0

/**
 * The JSON text of a block, between the texts `before` and `after`. Throws `Malformed` for whatever `decode` refuses.
 */
export function jsonText(block: Uint8Array, { before = '', after = '' } = {}): string {
  end = 0
  write(before)
  source = block
  at = 0
  writeValue()
  if (at !== block.length) throw new Malformed('Not one whole value')
  write(after)
  const text = out.toString('utf8', 0, end)
  if (out.length > KEPT_BYTES) out = Buffer.allocUnsafe(INITIAL_BYTES)
  return text
}

function reserve(length: number): void {
  if (end + length <= out.length) return
  const larger = Buffer.allocUnsafe(Math.max(out.length * 2, end + length))
  out.copy(larger, 0, 0, end)
  out = larger
}

const MAX_UTF8_BYTES = 3 // of one UTF-16 unit

function write(text: string): void {
  reserve(text.length * MAX_UTF8_BYTES)
  end += out.write(text, end)
}

const [quote, comma, colon, backslash] = Buffer.from('",:\\') as unknown as [number, number, number, number]
const [zero] = Buffer.from('0') as unknown as [number]
const [openList, closeList, openMap, closeMap] = Buffer.from('[]{}') as unknown as [number, number, number, number]

function writeByte(byte: number): void {
  reserve(1)
  out[end++] = byte
}

/** Writers by CBOR major type, the top three bits of a head. */
const writers: readonly ((argument: number) => void)[] = [
  writeNumber,
  (number) => write(String(-1 - number)),
  writeBytes,
  writeText,
  writeList,
  writeMap,
  writeLink,
  writeSimple,
]

function writeValue(): void {
  const head = source[at++] as number
  writers[head >>> 5]!(readArgument(head & 0x1f))
}

function readArgument(info: number): number {
  if (info < 24) return info
  if (info > 27) throw new Malformed('Indefinite or reserved length')
  let value = 0
  for (let width = 1 << (info - 24); width > 0; width--) value = value * 256 + (source[at++] as number)
  return value
}

/** Skip bytes. Returns where they start. */
function skip(length: number): number {
  const start = at
  at += length
  if (at > source.length) throw new Malformed('Value ends early')
  return start
}

function writeNumber(number: number): void {
  if (number < 10) writeByte(zero + number)
  else write(String(number))
}

/** Copies a few bytes. The caller has made room for them. */
function copy(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) out[end++] = bytes[i] as number
}

const [bytesHead, bytesEnd] = [Buffer.from('{"$bytes":"'), Buffer.from('"}')]
const digits = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')

/** Up to this many bytes, a loop is faster than a view of them and a call of the runtime. */
const SHORT_BYTES = 48

function writeBytes(length: number): void {
  const start = skip(length)
  if (length > SHORT_BYTES) return write(`{"$bytes":"${unpaddedBase64(source.subarray(start, at))}"}`)
  reserve(bytesHead.length + length * 2 + 1 + bytesEnd.length)
  copy(bytesHead)
  for (let i = start; i < at; i += 3) {
    const left = at - i
    const group =
      ((source[i] as number) << 16) |
      (left > 1 ? (source[i + 1] as number) << 8 : 0) |
      (left > 2 ? (source[i + 2] as number) : 0)
    out[end++] = digits[group >>> 18] as number
    out[end++] = digits[(group >>> 12) & 63] as number
    if (left > 1) out[end++] = digits[(group >>> 6) & 63] as number
    if (left > 2) out[end++] = digits[group & 63] as number
  }
  copy(bytesEnd)
}

const MAX_ESCAPE_BYTES = 6 // \u001f
/** The escape of each byte that must be escaped in JSON. */
const escapes: readonly Uint8Array[] = Array.from({ length: backslash + 1 }, (_, byte) =>
  Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1)),
)

/**
 * Longest text that the loop escapes. The runtime escapes longer ones: in the loop, a megabyte of escapes would take
 * 200 ms.
 */
const MAX_LOOP_BYTES = 256

function writeText(length: number): void {
  const start = skip(length)
  if (length > MAX_LOOP_BYTES) return writeLongText(start, at)
  reserve(length * MAX_ESCAPE_BYTES + 2)
  // Local variables for the loop: making a view of the text would cost more than copying its bytes.
  const from = source
  const target = out
  let to = end
  target[to++] = quote
  for (let i = start; i < at; i++) {
    const byte = from[i] as number
    if (byte >= 0x20 && byte !== quote && byte !== backslash) target[to++] = byte
    else for (const escaped of escapes[byte] as Uint8Array) target[to++] = escaped
  }
  target[to++] = quote
  end = to
}

function writeLongText(start: number, after: number): void {
  const text = JSON.stringify(utf8.decode(source.subarray(start, after)))
  const length = Buffer.byteLength(text)
  reserve(length)
  end += out.write(text, end, length)
}

function writeList(length: number): void {
  writeByte(openList)
  for (let i = 0; i < length; i++) {
    if (i > 0) writeByte(comma)
    writeValue()
  }
  writeByte(closeList)
}

function writeMap(length: number): void {
  writeByte(openMap)
  for (let i = 0; i < length; i++) {
    if (i > 0) writeByte(comma)
    writeValue()
    writeByte(colon)
    writeValue()
  }
  writeByte(closeMap)
}

/** Tag 42 around a byte string, whose first byte is a zero. */
function writeLink(): void {
  at += 3
  write(`{"$link":"${cidText(source.subarray(skip(CID_BYTES_LENGTH), at))}"}`)
}

const simples: Readonly<Record<number, string>> = { 20: 'false', 21: 'true', 22: 'null' }

function writeSimple(argument: number): void {
  const text = simples[argument]
  if (text === undefined) throw new Malformed('Floats and other simple values are not data')
  write(text)
}
