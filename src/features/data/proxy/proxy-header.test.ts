import { expect, test } from 'bun:test'
import { parseProxyHeader, serviceText } from './proxy-header.ts'

test('a service is a DID and a fragment', () => {
  const parsed = parseProxyHeader('did:web:api.bsky.chat#bsky_chat')
  expect(parsed).toEqual({ ok: true, service: { did: 'did:web:api.bsky.chat' as never, fragment: 'bsky_chat' } })
  expect(parsed.ok && serviceText(parsed.service)).toBe('did:web:api.bsky.chat#bsky_chat')
})

test.each([
  ['#bsky_chat', 'no did specified in proxy header'],
  ['#', 'no did specified in proxy header'],
  ['did:web:api.bsky.chat', 'no service id specified in proxy header'],
  ['did:web:api.bsky.chat#', 'no service id specified in proxy header'],
  ['did:web:api.bsky.chat#a#b', 'invalid proxy header format'],
  ['did:web:api.bsky.chat#a, did:web:b#c', 'invalid proxy header format'],
  ['did:web:api.bsky.chat #a', 'proxy header cannot contain spaces'],
  ['did:web:api.bsky.chat#a b', 'proxy header cannot contain spaces'],
  ['api.bsky.chat#a', 'could not resolve proxy did'],
])('%p is refused: %s', (text, fault) => {
  expect(parseProxyHeader(text)).toEqual({ ok: false, fault })
})
