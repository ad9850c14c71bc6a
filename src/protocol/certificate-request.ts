/**
 * Certificate requests, and the identifier of a certificate in requests for renewal information. Source: RFC 2986; RFC
 * 5280, 4.2; RFC 9773, 4.1.
 */
import { createPublicKey, sign, type KeyObject } from 'node:crypto'
import { base64url } from './base64url.ts'
import { bitString, objectIdentifier, octetString, sequence, set, smallInteger, tagged, valuesIn } from './der.ts'

const EXTENSION_REQUEST = objectIdentifier(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e)
const SUBJECT_ALT_NAME = objectIdentifier(0x55, 0x1d, 0x11)
const ECDSA_WITH_SHA256 = objectIdentifier(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)
/** Context-specific tags: `[0] attributes` of a request, and `[2] dNSName`. */
const ATTRIBUTES = 0xa0
const DNS_NAME = 0x82

/** Returns a signed request in DER: no subject, and the names as its alternative names. `key` is a P-256 key. */
export function certificateRequest(names: readonly string[], key: KeyObject): Uint8Array {
  const alternatives = sequence(...names.map((name) => tagged(DNS_NAME, Buffer.from(name, 'ascii'))))
  const extensions = sequence(sequence(SUBJECT_ALT_NAME, octetString(alternatives)))
  const information = sequence(
    smallInteger(0),
    sequence(),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
    tagged(ATTRIBUTES, sequence(EXTENSION_REQUEST, set(extensions))),
  )
  return sequence(information, sequence(ECDSA_WITH_SHA256), bitString(sign('sha256', information, key)))
}

const AUTHORITY_KEY_IDENTIFIER = '551d23'
const KEY_IDENTIFIER = 0x80

/**
 * Returns the identifier with which a client asks an authority when to renew a certificate, or null if the certificate
 * does not identify the key that signed it. `serialNumber` is in hexadecimal.
 */
export function renewalName(certificate: Uint8Array, serialNumber: string): string | null {
  const issuerKey = issuerKeyOf(certificate)
  if (issuerKey === null) return null
  const even = serialNumber.length % 2 === 0 ? serialNumber : `0${serialNumber}`
  const serial = Buffer.from(even, 'hex')
  // The bytes of the serial number are those of its DER form, where a leading one bit would mean a negative number.
  const signed = (serial[0] ?? 0) >= 0x80 ? Buffer.concat([Uint8Array.of(0), serial]) : serial
  return `${base64url(issuerKey)}.${base64url(signed)}`
}

/** The key identifier of the issuer is the first member of the extension, where it is present. */
function issuerKeyOf(certificate: Uint8Array): Uint8Array | null {
  const body = firstIn(firstIn(certificate)?.content)
  const extensions = firstIn(valuesIn(body?.content ?? nothing).at(-1)?.content)
  for (const extension of valuesIn(extensions?.content ?? nothing)) {
    const parts = valuesIn(extension.content)
    if (Buffer.from(parts[0]?.content ?? nothing).toString('hex') !== AUTHORITY_KEY_IDENTIFIER) continue
    const identifier = firstIn(firstIn(parts.at(-1)?.content)?.content)
    return identifier?.tag === KEY_IDENTIFIER ? identifier.content : null
  }
  return null
}

const nothing: Uint8Array = new Uint8Array()
const firstIn = (content = nothing) => valuesIn(content)[0]
