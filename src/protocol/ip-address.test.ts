import { expect, test } from 'bun:test'
import { isIpAddress, isLoopbackAddress, isPublicAddress, networkOf } from './ip-address.ts'

const reserved = `
  0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254
  172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255
  198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 ::7f00:1 ::127.0.0.1 fc00::1 fdff:ffff::1 fe80::1 febf::1 fec0::1 ff02::1 2001:db8::1 2001::1 2001:2::1
  2001:10::1 2001:1ff:ffff::1 3fff::1 64:ff9b::8.8.8.8 64:ff9b:1::808:808 100::1 5f00::1 4000::1
  ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a9fe:a9fe 2002:7f00:1::1 2002:a00:1::1 2002:c0a8:101::
`
  .trim()
  .split(/\s+/)

const open = `
  1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
  172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
  2606:4700:4700::1111 2001:4860:4860::8888 2a00::1 2001:200::1 ::ffff:8.8.8.8 ::ffff:808:808 2002:808:808::1
  2606:4700:0:0:0:0:0:1
`
  .trim()
  .split(/\s+/)

const noAddress = `
  1.2.3 1.2.3.4.5 01.2.3.4 256.1.1.1 1.2.3.4/8 0x7f.1 2130706433 fe80::1%eth0 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9
  1:2:3:4:5:6:7::8:9 12345::1 ::g ::1.2.3 ::1.2.3.256 [::1] localhost : ::: 1:2:3:4:5:6:7:1.2.3.4
`
  .trim()
  .split(/\s+/)

test('no special-purpose address is public', () => {
  for (const address of reserved)
    expect([address, isIpAddress(address), isPublicAddress(address)]).toEqual([address, true, false])
})

test('the neighbours of special-purpose addresses are public', () => {
  for (const address of open) expect([address, isPublicAddress(address)]).toEqual([address, true])
})

test('what is no plain address is not public', () => {
  for (const text of ['', ...noAddress])
    expect([text, isIpAddress(text), isPublicAddress(text)]).toEqual([text, false, false])
})

test('loopback has three spellings', () => {
  expect(
    ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:0:0:1'].filter(
      (address) => !isLoopbackAddress(address),
    ),
  ).toEqual([])
  expect(['0.0.0.0', '::', '10.0.0.1', '8.8.8.8', '::2', 'localhost'].filter(isLoopbackAddress)).toEqual([])
})

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2::3', '2001:db8:1::/48'],
  ['::1', '::/48'],
  ['', null],
  ['unknown', null],
])('the network of %s', (address, network) => expect(networkOf(address)).toBe(network))
