/**
 * ECDSA signatures in DER, as authenticators make them. `build.ts` puts this module into the executable in place of the
 * ASN.1 libraries that the WebAuthn library depends on.
 */

/** Bytes of each number, by the curve in COSE (RFC 9053, section 7.1). */
const numberBytes: Readonly<Record<number, number>> = { 1: 32, 2: 48, 3: 66 }

/**
 * Returns the two numbers of a signature, each as long as the curve requires, one after the other. Throws `RangeError`
 * unless `der` is exactly the DER of a sequence of two positive integers. X.690, 8.3 and 10.1.
 */
export function unwrapSignature(der: Uint8Array, curve: number): Uint8Array {
  const bytes = numberBytes[curve]
  if (bytes === undefined) throw new RangeError('unknown curve')
  const [body, rest] = elementOf(der, SEQUENCE)
  const [r, afterR] = elementOf(body, INTEGER)
  const [s, afterS] = elementOf(afterR, INTEGER)
  if (rest.byteLength > 0 || afterS.byteLength > 0) throw malformed()
  const raw = new Uint8Array(2 * bytes)
  for (const [i, number] of [positive(r, bytes), positive(s, bytes)].entries())
    raw.set(number, (i + 1) * bytes - number.byteLength)
  return raw
}

const SEQUENCE = 0x30
const INTEGER = 0x02
/** Lengths from here on take a second byte. No signature is long enough to need a third. */
const LONG = 0x80

/** Returns the content of an element and what follows it. */
function elementOf(bytes: Uint8Array, tag: number): [content: Uint8Array, rest: Uint8Array] {
  const [found, first = LONG, second = 0] = bytes
  const isLong = first === LONG + 1 && second >= LONG
  const start = isLong ? 3 : 2
  const length = isLong ? second : first
  const end = start + length
  if (found !== tag || (first >= LONG && !isLong) || end > bytes.byteLength) throw malformed()
  return [bytes.subarray(start, end), bytes.subarray(end)]
}

/** Returns the number without the leading zero byte that marks it as positive. */
function positive(content: Uint8Array, maxBytes: number): Uint8Array {
  const [first, second = 0] = content
  if (first === undefined || first >= LONG || (first === 0 && content.byteLength > 1 && second < LONG))
    throw malformed()
  const number = first === 0 ? content.subarray(1) : content
  if (number.byteLength > maxBytes) throw malformed()
  return number
}

const malformed = () => new RangeError('malformed signature')
