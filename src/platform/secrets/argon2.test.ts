import { argon2Sync } from 'node:crypto'
import { expect, test } from 'bun:test'
import { hashArgon2, unmatchedArgon2, verifyArgon2 } from './argon2.ts'
import { thrownBy } from '../../../tests/support/thrown.ts'

const cheap = { memoryKib: 64, passes: 1 }

test('a hash is the one of the runtime, under a salt of its own or a given one', async () => {
  const salt = Buffer.alloc(16, 7)
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replace(/=+$/, '')
  const expected = argon2Sync('argon2id', {
    message: 'pässword',
    nonce: salt,
    parallelism: 1,
    tagLength: 32,
    memory: 64,
    passes: 1,
  })
  expect(await hashArgon2('pässword', cheap, salt)).toBe(`$argon2id$v=19$m=64,t=1,p=1$${text(salt)}$${text(expected)}`)
  expect(await hashArgon2('pässword', cheap)).not.toBe(await hashArgon2('pässword', cheap))
})

test('only the password verifies, at the cost that the hash names', async () => {
  const hash = await hashArgon2('right', { memoryKib: 128, passes: 3 })
  expect(await Bun.password.verify('right', hash)).toBe(true)
  expect(await verifyArgon2('right', hash)).toBe(true)
  expect(await verifyArgon2('wrong', hash)).toBe(false)
  expect(
    await verifyArgon2(
      'right',
      await Bun.password.hash('right', { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }),
    ),
  ).toBe(true)
})

test('a hash that no password verifies has the same cost and length', async () => {
  const unmatched = unmatchedArgon2(cheap)
  const known = await hashArgon2('right', cheap)
  const costOf = (hash: string) => hash.split('$').slice(0, 4)
  expect(costOf(unmatched)).toEqual(costOf(known))
  expect(unmatched.length).toBe(known.length)
  for (const password of ['right', '']) expect(await verifyArgon2(password, unmatched)).toBe(false)
})

test('a text of another form is a fault, and no wrong password', async () => {
  for (const hash of ['', '$argon2i$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA', '$2b$10$abc'])
    expect(await thrownBy(verifyArgon2('right', hash))).toThrow('unknown form')
})
