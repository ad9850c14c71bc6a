import { expect, test } from 'bun:test'
import { P256Keypair, Secp256k1Keypair } from '@atproto/crypto'
import { base58btc } from 'multiformats/bases/base58'
import { formatDidKey } from './keys.ts'
import { formatSecretMultikey, parseSecretMultikey } from './secret-multikey.ts'

test('a secret key survives as text, and is the key that the library makes of it', async () => {
  for (const [curve, keypair] of [
    ['p256', P256Keypair],
    ['k256', Secp256k1Keypair],
  ] as const) {
    const made = await keypair.create({ exportable: true })
    const text = formatSecretMultikey(curve, await made.export())
    expect(text).toStartWith('z')
    expect(formatDidKey(parseSecretMultikey(text)!.publicKey)).toBe(made.did() as never)
  }
})

test('other text is no secret key', () => {
  const short = base58btc.encode(Buffer.from([0x86, 0x26, 1, 2, 3]))
  const zero = formatSecretMultikey('p256', new Uint8Array(32))
  for (const text of [
    '',
    'z',
    'z0',
    'zDnaeUKTWUXc1HDpGfKbEK31nKLN19yX5aunFd7VK1CUMeyJu',
    short,
    zero,
    'z'.repeat(5000),
  ])
    expect(parseSecretMultikey(text)).toBeNull()
})
