/**
 * Splits a 32-byte secret into three shares, any two of which restore it, and each of which alone says nothing about
 * it.
 *
 * Each byte is the value at 0 of a line over GF(2^8) with the polynomial 0x11b; the shares are the values at the points
 * 1, 2 and 3, on which other wallets rely. The library `shamir-secret-sharing` draws random points, and looks products
 * up in tables, so its timing may depend on the secret.
 *
 * Source: Shamir, "How to Share a Secret" (1979).
 */
import {
  shareEnvelope,
  shareIndexes,
  SHARE_PAYLOAD_BYTES,
  type EscrowShare,
  type ShareIndex,
} from '../protocol/escrow-share.ts'

const POLYNOMIAL = 0x11b

/** The product in the field. Takes the same steps for all values. */
function multiply(a: number, b: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ (-(product >> 7) & POLYNOMIAL)
    product ^= -((b >> bit) & 1) & a
  }
  return product
}

/** The inverse in the field: `a` to the power of 254. */
function inverse(a: number): number {
  let power = a
  for (let i = 0; i < 6; i++) power = multiply(multiply(power, power), a)
  return multiply(power, power)
}

export interface SplitSecret {
  keychain: EscrowShare
  escrow: EscrowShare
  paper: EscrowShare
}

/**
 * `slopes` are 32 random bytes, used once; `setId` is a random unsigned integer of 32 bits that ties the three shares
 * together.
 */
export function splitSecret(secret: Uint8Array, slopes: Uint8Array, setId: number): SplitSecret {
  if (secret.length !== SHARE_PAYLOAD_BYTES || slopes.length !== SHARE_PAYLOAD_BYTES)
    throw new RangeError('a secret has 32 bytes')
  const shareAt = (index: ShareIndex) =>
    shareEnvelope({ setId, index, payload: secret.map((byte, i) => byte ^ multiply(slopes[i]!, index)) })
  return {
    keychain: shareAt(shareIndexes.keychain),
    escrow: shareAt(shareIndexes.escrow),
    paper: shareAt(shareIndexes.paper),
  }
}

export type CombineOutcome = { ok: true; secret: Uint8Array } | { ok: false; fault: 'same-share' | 'different-sets' }

/** Restores the secret from two different shares of one split. */
export function combineShares(a: EscrowShare, b: EscrowShare): CombineOutcome {
  if (a.setId !== b.setId) return { ok: false, fault: 'different-sets' }
  if (a.index === b.index) return { ok: false, fault: 'same-share' }
  const difference = inverse(a.index ^ b.index)
  const [weightOfA, weightOfB] = [multiply(b.index, difference), multiply(a.index, difference)]
  return {
    ok: true,
    secret: a.payload.map((byte, i) => multiply(byte, weightOfA) ^ multiply(b.payload[i]!, weightOfB)),
  }
}
