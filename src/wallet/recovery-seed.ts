/**
 * The recovery key of an identity, derived from a random seed of 32 bytes that is split into shares and then forgotten.
 *
 * Source: RFC 5869 (HKDF) with SHA-256.
 */
import { hkdfSync, randomBytes } from 'node:crypto'
import { formatDidKey, signingKey, type SigningKey } from '../protocol/keys.ts'
import { formatShare } from '../protocol/escrow-share.ts'
import { splitSecret } from './shamir.ts'

/** Fixed names: all wallets must derive the same key. */
const SALT = 'ezpds/recovery-seed/v1'
const INFO = 'ezpds recovery rotation key (P-256)'
const SECRET_BYTES = 32

/** Derives the key of a seed. Skips candidates that are not scalars of the curve, which are about one in 2^32. */
export function recoveryKeyOf(seed: Uint8Array): SigningKey {
  for (let counter = 0; ; counter++) {
    const suffix = Buffer.alloc(4)
    suffix.writeUInt32BE(counter)
    const secret = new Uint8Array(
      hkdfSync('sha256', seed, SALT, Buffer.concat([Buffer.from(INFO), suffix]), SECRET_BYTES),
    )
    const key = keyOf(secret)
    if (key !== null) return key
  }
}

function keyOf(secret: Uint8Array): SigningKey | null {
  try {
    return signingKey('p256', secret)
  } catch {
    return null // zero, or not below the order
  }
}

/** The shares of a new seed in base32, and the did:key of its recovery key. */
export interface NewShares {
  recoveryKey: string
  keychain: string
  escrow: string
  paper: string
}

/** Makes a seed, splits it, and erases it. */
export function newShares(): NewShares {
  const seed = new Uint8Array(randomBytes(SECRET_BYTES))
  const { keychain, escrow, paper } = splitSecret(
    seed,
    new Uint8Array(randomBytes(SECRET_BYTES)),
    randomBytes(4).readUInt32BE(),
  )
  const recoveryKey = formatDidKey(recoveryKeyOf(seed).publicKey)
  seed.fill(0)
  return {
    recoveryKey,
    keychain: formatShare(keychain.bytes),
    escrow: formatShare(escrow.bytes),
    paper: formatShare(paper.bytes),
  }
}
