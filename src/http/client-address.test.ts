import { expect, test } from 'bun:test'
import { clientAddress, budgetsOf, clientOf, proxyList } from './client-address.ts'

const PROXY = '127.0.0.1'
const forwardedFor = (value: string, peer = PROXY, proxies = proxyList([])) =>
  clientAddress(peer, new Headers({ 'X-Forwarded-For': value }), proxies)
const forwarded = (value: string) => clientAddress(PROXY, new Headers({ Forwarded: value }))

test('the client is the peer unless the peer is a proxy nearby', () => {
  expect(forwardedFor('198.51.100.1', '::ffff:203.0.113.9')).toBe('203.0.113.9')
  expect(forwardedFor('198.51.100.1')).toBe('198.51.100.1')
  expect(forwardedFor('198.51.100.1', '::1')).toBe('198.51.100.1')
  expect(clientAddress('203.0.113.9', new Headers({ Forwarded: 'for=198.51.100.1' }))).toBe('203.0.113.9')
  expect(clientAddress(PROXY, new Headers())).toBe(PROXY)
})

test('over a connection that the server encrypts, only the proxies of the operator are believed', () => {
  const claimed = new Headers({ 'X-Forwarded-For': '198.51.100.1, 10.0.0.9' })
  for (const peer of ['127.0.0.1', '172.17.0.1', 'fd00::1', '203.0.113.9'])
    expect(clientAddress(peer, claimed, null, true)).toBe(peer)
  expect(clientAddress('10.0.0.1', claimed, proxyList(['10.0.0.0/24']), true)).toBe('198.51.100.1')
  expect(clientAddress('10.0.0.1', claimed, proxyList(['10.0.0.1']), true)).toBe('10.0.0.9')
})

test.each([
  ['198.51.100.1', '198.51.100.1'],
  ['198.51.100.1:4711', '198.51.100.1'],
  ['::ffff:198.51.100.1', '198.51.100.1'],
  ['[::ffff:198.51.100.1]:4711', '198.51.100.1'],
  ['2001:DB8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:4711', '2001:db8::1'],
  ['"[2001:db8::1]:4711"', '2001:db8::1'],
  // The rightmost that is no proxy.
  ['192.0.2.66, 198.51.100.1', '198.51.100.1'],
  ['192.0.2.66, 198.51.100.1:4711, 10.1.1.1:80, [fd00::1]:80', '198.51.100.1'],
  ['192.0.2.66,198.51.100.1,,  ,', '198.51.100.1'],
  // Nobody but proxies.
  ['10.0.0.1', PROXY],
  ['', PROXY],
  [' , ', PROXY],
  // What cannot be read is not skipped.
  ['192.0.2.66, rubbish', 'unknown'],
  ['192.0.2.66, rubbish, 10.0.0.1', 'unknown'],
  ['192.0.2.66, unknown', 'unknown'],
  ['192.0.2.66, _hidden', 'unknown'],
  ['192.0.2.66, 198.51.100.1:', 'unknown'],
  ['192.0.2.66, 198.51.100.1:port', 'unknown'],
  ['192.0.2.66, 198.51.100.256', 'unknown'],
  ['192.0.2.66, [198.51.100.1', 'unknown'],
  ['192.0.2.66, [2001:db8::1', 'unknown'],
  ['192.0.2.66, [2001:db8::1]x', 'unknown'],
  ['192.0.2.66, 2001:db8::1%eth0', 'unknown'],
  ['192.0.2.66, localhost', 'unknown'],
  ['rubbish, 198.51.100.1', '198.51.100.1'],
])('X-Forwarded-For: %s is %s', (header, address) => {
  expect(forwardedFor(header)).toBe(address)
})

test.each([
  ['for=198.51.100.1', '198.51.100.1'],
  ['For="198.51.100.1:4711"', '198.51.100.1'],
  ['for=198.51.100.1:4711', '198.51.100.1'],
  ['for="198.51.100.1:_port"', '198.51.100.1'],
  ['for="[2001:db8::1]:4711"', '2001:db8::1'],
  ['for="[2001:db8::1]"', '2001:db8::1'],
  ['for=[2001:db8::1]:4711', '2001:db8::1'],
  ['by=10.0.0.1;FOR="\\[2001:db8::1\\]:4711" ; proto=https;host="a, b; for=192.0.2.66"', '2001:db8::1'],
  ['for=192.0.2.66, for=198.51.100.1;by="[fd00::1]:1", for=10.0.0.1', '198.51.100.1'],
  ['for=10.0.0.1', PROXY],
  ['', PROXY],
  // Identifiers that hide the client, and elements that do not name it.
  ['for=192.0.2.66, for=unknown', 'unknown'],
  ['for=192.0.2.66, for=_hidden, for=10.0.0.1', 'unknown'],
  ['for=192.0.2.66, for="_SEVKISEK:4711"', 'unknown'],
  ['for=192.0.2.66, proto=https', 'unknown'],
  ['for=192.0.2.66, for=""', 'unknown'],
  // A quote left open by the client does not swallow what the proxy adds.
  ['for="192.0.2.66, for=198.51.100.1', 'unknown'],
  ['for=192.0.2.66;x=", for="[2001:db8::1]:4711"', 'unknown'],
  ['for=192.0.2.66;x="\\", for=198.51.100.1', 'unknown'],
  ['for=192.0.2.66;for=192.0.2.67', 'unknown'],
  ['192.0.2.66, for=198.51.100.1', 'unknown'],
  ['for = 192.0.2.66', 'unknown'],
])('Forwarded: %s is %s', (header, address) => {
  expect(forwarded(header)).toBe(address)
})

test('of both headers the one counts that nearly every proxy writes', () => {
  expect(clientAddress(PROXY, new Headers({ 'X-Forwarded-For': '198.51.100.1', Forwarded: 'for=192.0.2.66' }))).toBe(
    '198.51.100.1',
  )
  expect(clientAddress(PROXY, new Headers({ 'X-Forwarded-For': 'rubbish', Forwarded: 'for=192.0.2.66' }))).toBe(
    'unknown',
  )
})

test('a header that is sent twice is one list', () => {
  const headers = new Headers({ 'X-Forwarded-For': '192.0.2.66' })
  headers.append('X-Forwarded-For', '198.51.100.1')
  expect(clientAddress(PROXY, headers)).toBe('198.51.100.1')
})

test('an IPv6 client counts by its /64 and its /48, an IPv4 client by its address', () => {
  expect(clientOf('2001:db8:1:2:aaaa::1')).toEqual(clientOf('2001:0db8:0001:0002::ffff'))
  expect(clientOf('2001:db8:1:2::1')).toEqual({
    address: '2001:db8:1:2::/64',
    network: '2001:db8:1::/48',
    provider: '2001:db8::/32',
  })
  expect(clientOf('2001:db8::1')).toEqual({
    address: '2001:db8:0:0::/64',
    network: '2001:db8:0::/48',
    provider: '2001:db8::/32',
  })
  expect(clientOf('192.0.2.1')).toEqual({ address: '192.0.2.1', network: '192.0.2.0/24', provider: '192.0.0.0/16' })
  expect(clientOf('unknown')).toEqual({ address: 'unknown', network: 'unknown', provider: 'unknown' })
  const budgets = (ip: string) => budgetsOf(clientOf(ip)).map(({ key, times }) => [key, times])
  expect(budgets('2001:db8::1')).toEqual([
    ['2001:db8:0:0::/64', 1],
    ['2001:db8:0::/48', 10],
  ])
  expect(budgets('192.0.2.1')).toEqual([['192.0.2.1', 1]])
  expect(budgets('unknown')).toEqual([['unknown', 1]])
})

test('a public proxy counts when the operator names its network', () => {
  const proxies = proxyList(['203.0.113.0/24', '2001:db8::/32'])
  expect(forwardedFor('198.51.100.1', '203.0.113.9', proxies)).toBe('198.51.100.1')
  expect(forwardedFor('198.51.100.1:1, 203.0.113.10:2', '2001:db8::5', proxies)).toBe('198.51.100.1')
  expect(forwardedFor('192.0.2.1', '198.51.100.7', proxies)).toBe('198.51.100.7')
})
