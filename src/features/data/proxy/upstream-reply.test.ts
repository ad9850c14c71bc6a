import { expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { Refusal } from '../../../http/errors.ts'
import { parseJson, relayed } from './upstream-reply.ts'

const asking = (authorization: string) =>
  new Request('http://localhost/xrpc/app.bsky.feed.getTimeline', { headers: { authorization } })

async function refusal(request: Request, response: Response): Promise<Refusal> {
  const thrown = await relayed(request, response).catch((error: unknown) => error)
  if (!(thrown instanceof Refusal)) throw new Error('it was not refused')
  return thrown
}

test.each(['DPoP token', 'dpop token'])(
  'a client with "%s" never sees the 401 of another service',
  async (authorization) => {
    const response = Response.json(
      { error: 'ExpiredToken', message: 'over' },
      { status: 401, headers: { 'www-authenticate': 'DPoP error="invalid_token"', 'dpop-nonce': 'n' } },
    )
    const { status, name, message, options } = await refusal(asking(authorization), response)
    expect({ status, name, message, headers: options.headers }).toEqual({
      status: 502,
      name: 'UpstreamFailure',
      message: 'over',
      headers: {},
    })
  },
)

test('a client with a bearer token sees it', async () => {
  const { status, name } = await refusal(
    asking('Bearer token'),
    Response.json({ error: 'ExpiredToken' }, { status: 401 }),
  )
  expect({ status, name }).toEqual({ status: 401, name: 'ExpiredToken' })
})

test('codings are undone in their order, and not beyond the bound', () => {
  const json = Buffer.from('{"a":1}')
  expect(parseJson(zstdCompressSync(gzipSync(json)), 'gzip, zstd', 100)).toEqual({ a: 1 })
  expect(parseJson(json, 'identity', 100)).toEqual({ a: 1 })
  expect(parseJson(gzipSync(json), 'rot13', 100)).toBeUndefined()
  expect(parseJson(json, 'gzip', 100)).toBeUndefined()
  expect(parseJson(gzipSync(Buffer.from(`"${'x'.repeat(10_000)}"`)), 'gzip', 100)).toBeUndefined()
})
