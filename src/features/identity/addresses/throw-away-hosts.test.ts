import { expect, test } from 'bun:test'
import { isThrowAway } from './throw-away-hosts.ts'

test('addresses for minutes are known by their host, or by one above it', async () => {
  for (const address of ['a@mailinator.com', 'A@MAILINATOR.COM', 'a@any.name.mailinator.com', 'a@guerrillamail.com'])
    expect([address, await isThrowAway(address)]).toEqual([address, true])
  for (const address of [
    'a@gmail.com',
    'a@example.com',
    'a@mailinator.com.example.com',
    'mailinator.com@example.com',
    'a@com',
    'a@mailinator.example',
    'a@__proto__',
  ]) {
    expect([address, await isThrowAway(address)]).toEqual([address, false])
  }
})
