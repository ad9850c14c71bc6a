import { expect, test } from 'bun:test'
import { isRegistered, withParameters } from './redirect-uris.ts'

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
    ['http://127.0.0.1:53123/\ncallback', false],
    ['http://127.0.0.1:53123/callback\t', false],
    ['http://①27.0.0.1:53123/callback', false],
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
