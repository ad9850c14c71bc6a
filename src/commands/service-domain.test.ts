import { expect, test } from 'bun:test'
import { parseServiceDomain } from './service-domain.ts'

test('a domain is a name of several labels, in lower case', () => {
  expect(parseServiceDomain('PDS.Example.com.')).toEqual({ ok: true, domain: 'pds.example.com' })
  expect(parseServiceDomain('xn--bcher-kva.example.org')).toEqual({ ok: true, domain: 'xn--bcher-kva.example.org' })
  expect(parseServiceDomain('pds.test', { allowsTest: true })).toEqual({ ok: true, domain: 'pds.test' })
})

test.each([
  ['', 'the domain is missing'],
  ['https://pds.example.com/', 'give the name alone, pds.example.com'],
  ['pds.example.com/account', 'give the name alone, pds.example.com'],
  ['me@example.com', 'give the name alone, example.com'],
  ['pds.example.com:8443', 'has a port'],
  ['203.0.113.7', 'is an IP address'],
  ['http://203.0.113.7:80', 'is an IP address'],
  ['0x7f.1', 'is an IP address'],
  ['2001:db8::1', 'is an IP address'],
  ['[2001:db8::1]', 'is an IP address'],
  ['*.example.com', 'give the name alone, example.com'],
  ['bücher.example.org', 'in ASCII: xn--bcher-kva.example.org'],
  ['pds', 'is a single label'],
  ['-pds.example.com', 'is not a domain'],
  ['pds..example.com', 'is not a domain'],
  ['pds_1.example.com', 'is not a domain'],
  [`${'a'.repeat(64)}.example.com`, 'is not a domain'],
  [`${'a.'.repeat(120)}com`, 'is not a domain'],
  ['pds.local', 'under which the network knows no handles'],
  ['pds.test', 'under which the network knows no handles'],
  ['pds.example.1st', 'under which the network knows no handles'],
  ['pds example.com', 'is not a domain'],
  ['pds.example.com\nSERVICE_PORT=1', 'is not a domain'],
])('%p is none', (text, fault) => {
  const parsed = parseServiceDomain(text)
  expect(parsed.ok || parsed.fault).toContain(fault)
})
