/** AWS Signature Version 4, as a store verifies it: the S3 server of the tests does not. */
import { createHash, createHmac } from 'node:crypto'

export interface SignedRequest {
  method: string
  /** As in the request line: the path and the query. */
  target: string
  /** By lower-case name. */
  headers: Record<string, string | string[] | undefined>
}

const HEADER =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const encoded = (text: string) =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)

/** Whether the request was signed with the secret, over all that has to be signed. */
export function isSigned({ method, target, headers }: SignedRequest, secret: string): boolean {
  const [, , day, region, names, signature] = HEADER.exec(String(headers.authorization)) ?? []
  if (day === undefined) return false
  const signed = names!.split(';')
  const needed = Object.keys(headers).filter((name) => name === 'host' || name.startsWith('x-amz-'))
  if (!needed.every((name) => signed.includes(name))) return false
  const [path = '', query = ''] = target.split('?')
  const canonical = [
    method,
    path
      .split('/')
      .map((part) => encoded(decodeURIComponent(part)))
      .join('/'),
    query
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const [name = '', value = ''] = pair.split('=').map(decodeURIComponent)
        return [encoded(name), encoded(value)] as const
      })
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map((pair) => pair.join('='))
      .join('&'),
    ...signed.map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    headers['x-amz-content-sha256'],
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const digest = createHash('sha256').update(canonical).digest('hex')
  const key = [region!, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${secret}`, day))
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, digest].join('\n')
  return hmac(key, text).toString('hex') === signature
}
