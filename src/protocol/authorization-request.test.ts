import { expect, spyOn, test } from 'bun:test'
import { checkAuthorizationRequest } from './authorization-request.ts'
import { loopbackClient } from './client-validation.ts'

const REDIRECT_URI = 'http://127.0.0.1/callback'
const found = loopbackClient(`http://localhost?${new URLSearchParams({ redirect_uri: REDIRECT_URI })}`)
if (!found.ok) throw new Error(found.reason)
const { client } = found

const given = {
  response_type: 'code',
  redirect_uri: REDIRECT_URI,
  code_challenge: 'x'.repeat(43),
  code_challenge_method: 'S256',
  scope: 'atproto',
}

/** A list that counts how often its items are read. */
function counted<Item>(items: Item[]): { list: Item[]; reads: () => number } {
  let reads = 0
  const list = new Proxy(items, {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads++
      return Reflect.get(target, key, receiver)
    },
  })
  return { list, reads: () => reads }
}

/** Each is spelled as nobody declares it, so that it is found by its meaning. */
const spelled = (count: number) => Array.from({ length: count }, (_, i) => `repo?collection=com.example.r${i}`)
const canonical = (count: number) => Array.from({ length: count }, (_, i) => `repo:com.example.r${i}`)

test.each([10, 250])('declared scopes are read once, and not for each of %p that are requested', (count) => {
  const { list: scopes, reads } = counted(['atproto', ...canonical(count)])
  const scope = ['atproto', ...spelled(count)].join(' ')
  expect(checkAuthorizationRequest({ ...given, scope }, { ...client, scopes }, null)).toMatchObject({ ok: true })
  expect(reads()).toBe(count + 1)
})

test('a requested redirect URI is parsed once, and not for each that is registered', () => {
  const redirectUris = Array.from({ length: 200 }, (_, i) => `http://127.0.0.1/${i}`)
  const parse = spyOn(URL, 'parse')
  try {
    for (const [path, ok] of [
      ['199', true],
      ['200', false],
    ] as const) {
      const asked = `http://127.0.0.1:80/${path}`
      expect(checkAuthorizationRequest({ ...given, redirect_uri: asked }, { ...client, redirectUris }, null).ok).toBe(
        ok,
      )
      expect(parse.mock.calls.filter(([text]) => text === asked)).toHaveLength(1)
    }
  } finally {
    parse.mockRestore()
  }
})
