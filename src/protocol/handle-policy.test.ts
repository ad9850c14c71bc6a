import { expect, test } from 'bun:test'
import { checkHandle, servedDomain, type HandlePolicy } from './handle-policy.ts'

const policy: HandlePolicy = {
  serviceDomains: ['pds.test', 'second.example.com'],
  reservedLabels: new Set(['admin', 'about']),
  ownNames: new Set(['host.pds.test', 'pds.test']),
  blockedWords: ['badword'],
}

const good: [string, string, 'served' | 'external'][] = [
  ['alice.pds.test', 'alice.pds.test', 'served'],
  ['ALICE.Pds.Test', 'alice.pds.test', 'served'],
  ['bob-1.second.example.com', 'bob-1.second.example.com', 'served'],
  [`${'a'.repeat(63)}.pds.test`, `${'a'.repeat(63)}.pds.test`, 'served'],
  ['abc.pds.test', 'abc.pds.test', 'served'],
  ['alice.com', 'alice.com', 'external'],
  ['pds.test', 'pds.test', 'external'],
  ['host.second.example.com', 'host.second.example.com', 'served'],
  ['alicepds.test', 'alicepds.test', 'external'],
  ['admin.elsewhere.com', 'admin.elsewhere.com', 'external'],
]
for (const [text, handle, kind] of good) {
  test(`${text} is a handle somebody may have`, () => {
    expect(checkHandle(text, policy)).toEqual({ ok: true, handle: handle as never, kind })
  })
}

const bad: [string, string, string][] = [
  ['alice', 'InvalidHandle', 'Input/handle must be a valid handle'],
  [' alice.pds.test', 'InvalidHandle', 'Input/handle must be a valid handle'],
  ['-alice.pds.test', 'InvalidHandle', 'Input/handle must be a valid handle'],
  ['al_ice.pds.test', 'InvalidHandle', 'Input/handle must be a valid handle'],
  ['alice.1com', 'InvalidHandle', 'Input/handle must be a valid handle'],
  [`${'a'.repeat(250)}.pds.test`, 'InvalidHandle', 'Handle too long'],
  [`${'a.'.repeat(130)}com`, 'InvalidHandle', 'Handle too long'],
  ['alice.local', 'InvalidHandle', 'Handle TLD is invalid or disallowed'],
  ['alice.internal', 'InvalidHandle', 'Handle TLD is invalid or disallowed'],
  ['my-b4dw0rd.com', 'InvalidHandle', 'Inappropriate language in handle'],
  ['bad-word.pds.test', 'InvalidHandle', 'Inappropriate language in handle'],
  ['a.alice.pds.test', 'InvalidHandle', 'Invalid characters in handle'],
  ['al.pds.test', 'InvalidHandle', 'Handle too short'],
  [`${'a'.repeat(64)}.pds.test`, 'InvalidHandle', 'Handle too long'],
  ['admin.pds.test', 'HandleNotAvailable', 'Reserved handle'],
  ['About.second.example.com', 'HandleNotAvailable', 'Reserved handle'],
  ['HOST.pds.test', 'HandleNotAvailable', 'Reserved handle'],
]
for (const [text, error, message] of bad) {
  test(`${text.slice(0, 40)} is refused: ${message}`, () => {
    expect(checkHandle(text, policy)).toEqual({ ok: false, error: error as never, message })
  })
}

test('an operator hands out reserved names, but no malformed ones', () => {
  for (const name of ['admin.pds.test', 'host.pds.test'])
    expect(checkHandle(name, policy, { allowReserved: true })).toMatchObject({ ok: true })
  expect(checkHandle('badword.pds.test', policy, { allowReserved: true })).toMatchObject({ ok: true })
  expect(checkHandle('al.pds.test', policy, { allowReserved: true })).toMatchObject({
    ok: false,
    message: 'Handle too short',
  })
})

test('of a domain and one below it, the one that follows the first label decides', () => {
  for (const domains of [
    ['example.com', 'pds.example.com'],
    ['pds.example.com', 'example.com'],
  ]) {
    expect(servedDomain('alice.pds.example.com', domains)).toBe('pds.example.com')
    expect(servedDomain('alice.example.com', domains)).toBe('example.com')
    const nested = { ...policy, serviceDomains: domains }
    expect(checkHandle('alice.pds.example.com', nested)).toMatchObject({ ok: true, kind: 'served' })
    expect(checkHandle('alice.other.example.com', nested)).toMatchObject({ ok: false, error: 'InvalidHandle' })
  }
  expect(servedDomain('pds.test', ['pds.test'])).toBeNull()
})
