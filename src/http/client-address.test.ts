import { expect, test } from 'bun:test'
import { clientAddress, limitKey, proxyList } from './client-address.ts'

test('the client is the peer unless the peer is a proxy nearby', () => {
  expect(clientAddress('::ffff:203.0.113.9', '198.51.100.1')).toBe('203.0.113.9')
  expect(clientAddress('127.0.0.1', '198.51.100.1')).toBe('198.51.100.1')
  expect(clientAddress('::ffff:10.0.0.2', '192.0.2.66, 198.51.100.1, 10.1.1.1')).toBe('198.51.100.1')
  expect(clientAddress('127.0.0.1', 'rubbish, 10.0.0.1')).toBe('127.0.0.1')
  expect(clientAddress('127.0.0.1', null)).toBe('127.0.0.1')
})

test('an IPv6 client counts by its /64', () => {
  expect(limitKey('2001:db8:1:2:aaaa::1')).toBe(limitKey('2001:0db8:0001:0002::ffff'))
  expect(limitKey('2001:db8:1:2::1')).not.toBe(limitKey('2001:db8:1:3::1'))
  expect(limitKey('2001:db8::1')).toBe('2001:db8:0:0::/64')
  expect(limitKey('192.0.2.1')).toBe('192.0.2.1')
})

test('a public proxy counts when the operator names its network', () => {
  const proxies = proxyList(['203.0.113.0/24', '2001:db8::/32'])
  expect(clientAddress('203.0.113.9', '198.51.100.1', proxies)).toBe('198.51.100.1')
  expect(clientAddress('2001:db8::5', '198.51.100.1, 203.0.113.10', proxies)).toBe('198.51.100.1')
  expect(clientAddress('198.51.100.7', '192.0.2.1', proxies)).toBe('198.51.100.7')
})
