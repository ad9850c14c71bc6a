/**
 * Signatures of requests to an S3-compatible store.
 *
 * Source: AWS Signature Version 4, as the Amazon S3 API Reference has it: "Signature Calculations for the Authorization
 * Header: Transferring Payload in a Single Chunk".
 */
import { createHash, createHmac } from 'node:crypto'

const ALGORITHM = 'AWS4-HMAC-SHA256'
const DAY_DIGITS = 8

export interface SigningScope {
  accessKeyId: string
  region: string
  /** Of `bucketSigningKey`, for the day of the request and this region. */
  key: Uint8Array
}

export interface UnsignedRequest {
  method: string
  /** As it is sent. In the query, a space is `%20`, a slash `%2F`, and each name occurs once. */
  url: URL
  /** Headers to be signed, with lower-case names; not `host`, which is the URL's. */
  headers: Readonly<Record<string, string>>
  /** SHA-256 of the body, in hexadecimal. */
  sha256: string
  at: Date
}

/** The day of a signing key, as it stands in signatures: `20130524`. */
export const signingDay = (at: Date): string => timeOf(at).slice(0, DAY_DIGITS)

/** Returns the key that signs the requests of a day (`signingDay`) in a region. */
export const bucketSigningKey = (secret: string, { day, region }: { day: string; region: string }): Uint8Array =>
  [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${secret}`, day))

/** Returns the headers to send: those that were given, and the ones that prove that the owner of the key sent them. */
export function signedHeaders(
  { method, url, headers, sha256, at }: UnsignedRequest,
  { accessKeyId, region, key }: SigningScope,
): Record<string, string> {
  const time = timeOf(at)
  const sent: Record<string, string> = { ...headers, 'x-amz-content-sha256': sha256, 'x-amz-date': time }
  const fields = new Map([['host', url.host], ...Object.entries(sent)])
  const names = Array.from(fields.keys()).toSorted()
  const canonical = [
    method,
    canonicalText(url.pathname),
    canonicalQuery(url.search.slice(1)),
    ...names.map((name) => `${name}:${fields.get(name)!.trim().replaceAll(/\s+/g, ' ')}`),
    '',
    names.join(';'),
    sha256,
  ].join('\n')
  const scope = [time.slice(0, DAY_DIGITS), region, 's3', 'aws4_request'].join('/')
  const digest = createHash('sha256').update(canonical).digest('hex')
  const signature = hmac(key, [ALGORITHM, time, scope, digest].join('\n')).toString('hex')
  return {
    ...sent,
    authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  }
}

/** `20130524T000000Z` */
const timeOf = (at: Date): string => at.toISOString().replaceAll(/[:-]|\.\d+/g, '')

const hmac = (key: Uint8Array | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs = query.split('&').map((pair): [string, string] => {
    const [name = '', ...value] = pair.split('=')
    return [canonicalText(name), canonicalText(value.join('='))]
  })
  return pairs
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&')
}

/** Escapes more than a URL does. */
const canonicalText = (text: string): string =>
  text.replaceAll(/%..|[^\w.~/-]/g, (each) =>
    each.length > 1 ? each.toUpperCase() : `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
