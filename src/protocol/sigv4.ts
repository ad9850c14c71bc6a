/**
 * AWS Signature Version 4 for S3: what every store that speaks S3 asks of a request.
 *
 * Source: AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
 */
import { createHash, createHmac } from 'node:crypto'

export interface SigningCredentials {
  accessKeyId: string
  secretAccessKey: string
  region: string
}

export interface SignableRequest {
  method: string
  /** Its path is encoded by `encodeKey`, its query may come in any order. */
  url: URL
  /** SHA-256 of the body in hexadecimal. The store refuses another body. */
  bodySha256: string
}

export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** The headers to add to the request. They hold for some minutes around `nowMillis`. */
export function signedHeaders({ method, url, bodySha256 }: SignableRequest, { accessKeyId, secretAccessKey, region }: SigningCredentials, nowMillis: number): Record<string, string> {
  const instant = new Date(nowMillis).toISOString().replace(/[-:]|\.\d+/g, '')
  const date = instant.slice(0, 8)
  const scope = `${date}/${region}/s3/aws4_request`
  const headers = { host: url.host, 'x-amz-content-sha256': bodySha256, 'x-amz-date': instant }
  const names = Object.keys(headers).join(';')
  const canonical = [
    method,
    url.pathname,
    canonicalQuery(url.searchParams),
    ...Object.entries(headers).map(([name, value]) => `${name}:${value}`),
    '',
    names,
    bodySha256,
  ].join('\n')
  const key = ['s3', 'aws4_request'].reduce(mac, mac(mac(Buffer.from(`AWS4${secretAccessKey}`), date), region))
  const signature = mac(key, ['AWS4-HMAC-SHA256', instant, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')).toString('hex')
  return {
    'x-amz-content-sha256': bodySha256,
    'x-amz-date': instant,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  }
}

const mac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** An object key as the path of a URL. */
export const encodeKey = (key: string): string => key.split('/').map(encodeStrictly).join('/')

const canonicalQuery = (query: URLSearchParams): string =>
  [...query]
    .map(([name, value]) => `${encodeStrictly(name)}=${encodeStrictly(value)}`)
    .toSorted()
    .join('&')

/** RFC 3986: everything but the unreserved characters. */
const encodeStrictly = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
