import { expect, test } from 'bun:test'
import { isRegistered, isRegistrable, withParameters } from './redirect-uris.ts'

test('what a client may register depends on its kind', () => {
  const rows: [uri: string, web: boolean, native: boolean][] = [
    ['https://app.example.com/callback', true, true],
    ['https://127.0.0.1/callback', false, false],
    ['https://localhost/callback', false, false],
    ['https://intranet/callback', false, false],
    ['https://printer.local/callback', false, false],
    ['https://user:secret@app.example.com/callback', false, false],
    ['http://127.0.0.1/callback', false, true],
    ['http://127.0.0.1:8080/callback', false, true],
    ['http://[::1]/callback', false, true],
    ['http://localhost/callback', false, false],
    ['http://app.example.com/callback', false, false],
    ['com.example.app:/callback', false, true],
    ['com.example.app://callback', false, false],
    ['com.example.other:/callback', false, false],
    ['myapp:/callback', false, false],
    ['javascript:alert(1)', false, false],
    ['data:text/html,hello', false, false],
    ['not a url', false, false],
  ]
  for (const [uri, web, native] of rows)
    expect([
      uri,
      isRegistrable(uri, 'web', 'app.example.com'),
      isRegistrable(uri, 'native', 'app.example.com'),
    ]).toEqual([uri, web, native])
  expect(isRegistrable('com.example.app:/callback', 'native', null)).toBe(false)
})

test('a request names a registered URI, and only a loopback one without a port may be on any port', () => {
  const registered = [
    'https://app.example.com/callback',
    'http://127.0.0.1/callback',
    'http://[::1]:4000/fixed',
    'com.example.app:/callback',
  ]
  const rows: [uri: string, matches: boolean][] = [
    ['https://app.example.com/callback', true],
    ['https://app.example.com/callback/', false],
    ['https://app.example.com:444/callback', false],
    ['https://app.example.com/callback?more=1', false],
    ['HTTPS://app.example.com/callback', false],
    ['http://127.0.0.1:53123/callback', true],
    ['http://127.0.0.1:53123/callback?more=1', false],
    ['http://127.0.0.1:53123/callback#more', false],
    ['http://127.0.0.1:53123/', false],
    ['https://127.0.0.1:53123/callback', false],
    ['http://user@127.0.0.1:53123/callback', false],
    ['http://127.0.0.2:53123/callback', false],
    ['http://localhost:53123/callback', false],
    ['http://[::1]:4001/fixed', false],
    ['com.example.app:/callback', true],
  ]
  for (const [uri, matches] of rows) expect([uri, isRegistered(uri, registered)]).toEqual([uri, matches])
})

test('parameters are added without touching the rest', () => {
  expect(withParameters('com.Example.app:/Back', 'query', { code: 'a b' })).toBe('com.Example.app:/Back?code=a+b')
  expect(withParameters('https://app.example/?x=1', 'query', { iss: 'https://pds.example' })).toBe(
    'https://app.example/?x=1&iss=https%3A%2F%2Fpds.example',
  )
  expect(withParameters('https://app.example/?x=1', 'fragment', { code: 'c' })).toBe('https://app.example/?x=1#code=c')
})
