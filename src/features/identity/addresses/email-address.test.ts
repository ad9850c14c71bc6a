import { expect, test } from 'bun:test'
import { parseEmailAddress } from './email-address.ts'

test('addresses as people write them are taken, in lower case', () => {
  for (const address of ['a@example.com', 'First.Last+tag@Sub.Example.CO.UK', "o'neill_42@xn--bcher-kva.example"])
    expect(parseEmailAddress(address)).toBe(address.toLowerCase())
})

test('what is none, and what could end up in a header or as another address, is not', () => {
  const none = [
    '',
    '@',
    'a',
    'a@',
    '@example.com',
    'a@localhost',
    'a@example',
    'a@.example.com',
    'a@example..com',
    'a@-example.com',
    'a@example.com.',
    'a@[127.0.0.1]',
    'a@127.0.0.1',
    '.a@example.com',
    'a..b@example.com',
    'a b@example.com',
    'a@b@example.com',
    '"a b"@example.com',
    'A <a@example.com>',
    'a@example.com, b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'a@example.com\n',
    'ä@example.com',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.${'e'.repeat(60)}.com`,
  ]
  for (const address of none) expect({ address, parsed: parseEmailAddress(address) }).toEqual({ address, parsed: null })
})
