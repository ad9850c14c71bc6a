import { expect, test } from 'bun:test'
import { parseHost } from './host.ts'

test('a host is a name or an address, and perhaps a port', () => {
  expect(parseHost('Alice.Example.com')).toEqual({ name: 'alice.example.com', port: '' })
  expect(parseHost('alice.example.com.')).toEqual({ name: 'alice.example.com', port: '' })
  expect(parseHost('alice.example.com.:8080')).toEqual({ name: 'alice.example.com', port: ':8080' })
  expect(parseHost('pds')).toEqual({ name: 'pds', port: '' })
  expect(parseHost('a_b-c.internal:443')).toEqual({ name: 'a_b-c.internal', port: '' })
  expect(parseHost('127.0.0.1:3000')).toEqual({ name: '127.0.0.1', port: ':3000' })
  expect(parseHost('[2001:DB8::1]:3000')).toEqual({ name: '[2001:db8::1]', port: ':3000' })
})

test.each([
  '',
  ' ',
  '.',
  '..',
  'a..b',
  '.a',
  'a.b..',
  ':80',
  'a:',
  'a:b',
  'a:80:80',
  'a:99999',
  'a:123456',
  '1.2.3.999',
  '[::1',
  '::1',
  '[zz]',
  '[]',
  '[::1]x',
  'a@b',
  'a#b',
  'a?b',
  'a/b',
  'a\\b',
  'a<b',
  'a>b',
  'a b',
  'a\tb',
  'a"b',
  'a^b',
  'a|b',
  'a{b}',
  'a%62',
  'a,b',
  'a, a',
  'a;b',
  'a=b',
  'a!b',
  "a'b",
  'a*b',
  'a(b)',
  'a&b',
  'a$b',
  'a+b',
  'münchen.de',
  'a\u0000b',
  'a\u007fb',
  'user:pw@host',
  'http://a',
  'xn--a',
  `${'a'.repeat(64)}.com`,
])('%j is no host', (header) => {
  expect(parseHost(header)).toBeNull()
})
