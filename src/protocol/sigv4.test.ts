import { expect, test } from 'bun:test'
import { EMPTY_SHA256, encodeKey, signedHeaders } from './sigv4.ts'

// The credentials and the day of AWS's published examples.
const credentials = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', region: 'us-east-1' }
const at = Date.UTC(2013, 4, 24)
const signatureOf = (method: string, url: string, bodySha256 = EMPTY_SHA256) =>
  signedHeaders({ method, url: new URL(url), bodySha256 }, credentials, at)['authorization']

test('the published examples with these headers are signed as published', () => {
  expect(signatureOf('GET', 'https://examplebucket.s3.amazonaws.com/?lifecycle')).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  )
  expect(signatureOf('GET', 'https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J')).toEndWith(
    'Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  )
})

test('the order of a query does not matter, everything else does', () => {
  const url = 'https://bucket.example/a?x=1&y=2'
  expect(signatureOf('GET', 'https://bucket.example/a?y=2&x=1')).toBe(signatureOf('GET', url))
  const others = [signatureOf('PUT', url), signatureOf('GET', url, 'a'.repeat(64)), signatureOf('GET', 'https://bucket.example/b?x=1&y=2')]
  for (const other of others) expect(other).not.toBe(signatureOf('GET', url))
})

test('a key keeps its slashes, and nothing else that a URL could take for its own', () => {
  expect(encodeKey("blobs/a b+c'(d)*?#é")).toBe('blobs/a%20b%2Bc%27%28d%29%2A%3F%23%C3%A9')
})
