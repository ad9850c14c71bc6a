import { expect, test } from 'bun:test'
import { bucketSigningKey, signedHeaders, signingDay } from './bucket-signature.ts'
import { isSigned } from '../../tests/support/servers/bucket-signatures.ts'

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
const EMPTY = new Bun.CryptoHasher('sha256').digest('hex')

function signed(url: string, { method = 'GET', headers = {}, sha256 = EMPTY, at = new Date('2013-05-24T00:00:00Z') }) {
  const region = 'us-east-1'
  return signedHeaders(
    { method, url: new URL(url), headers, sha256, at },
    { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', region, key: bucketSigningKey(SECRET, { day: signingDay(at), region }) },
  )
}

// Source: Amazon S3 API Reference, "Examples: Signature Calculations".
test('requests are signed as Amazon describes it', () => {
  const published = [
    [
      '/test.txt',
      { headers: { range: 'bytes=0-9' } },
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      '/test$file.text',
      {
        method: 'PUT',
        headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
        sha256: '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      },
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
    ['/?lifecycle', {}, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['/?max-keys=2&prefix=J', {}, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ] as const
  for (const [target, request, signature] of published) {
    const { authorization } = signed(`https://examplebucket.s3.amazonaws.com${target}`, request)
    expect([target, authorization!.split('Signature=')[1]]).toEqual([target, signature])
  }
})

test('the signature covers every header, however a store writes the path, the query and the values', () => {
  for (const target of [
    `/a+b/${encodeURIComponent("c d'e(f)*!~.txt")}/%c3%bc`,
    '/?prefix=a%2Fb%20c&prefix-x=1&prefix1=',
    '/x?uploads',
  ])
    for (const method of ['GET', 'PUT']) {
      const headers = { 'if-none-match': '*', 'x-amz-copy-source': 'from/a%20b' }
      const url = new URL(`http://127.0.0.1:9000${target}`)
      const sent = { host: url.host, ...signed(url.href, { method, headers }) }
      const request = { method, target: url.pathname + url.search, headers: sent }
      expect([target, isSigned(request, SECRET)]).toEqual([target, true])
      for (const name of Object.keys(headers))
        expect(isSigned({ ...request, headers: { ...sent, [name]: 'another' } }, SECRET)).toBe(false)
    }
})

test('a key signs the requests of its day and its region', () => {
  const day = signingDay(new Date('2013-05-24T23:59:59.999Z'))
  expect(day).toBe('20130524')
  const key = bucketSigningKey(SECRET, { day, region: 'us-east-1' })
  expect(
    bucketSigningKey(SECRET, { day: signingDay(new Date('2013-05-25T00:00:00Z')), region: 'us-east-1' }),
  ).not.toEqual(key)
  expect(bucketSigningKey(SECRET, { day, region: 'auto' })).not.toEqual(key)
})
