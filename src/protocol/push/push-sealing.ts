/**
 * Seals pushes for devices, so that only the device can read one and can tell that this service wrote it.
 *
 * HPKE in auth mode (RFC 9180, 5.1.3) with DHKEM(P-256, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM; without additional
 * authenticated data. The library is loaded with the first push.
 */
import { base64url } from '../base64url.ts'
import { convertP256, parseDidKey, signingKey, type PublicKey } from '../keys.ts'
import type { SealedPush } from './push-message.ts'

/** Separates these seals from other uses of the keys. */
const INFO = 'ezpds/notify/1'

export interface PushSenderSecret {
  kid: number
  /** The scalar of a P-256 key, 32 bytes. */
  secret: Uint8Array
}

/** Returns the key of a device from its did:key; null if that is not a point of P-256. */
export function parsePushKey(didKey: string): PublicKey | null {
  const key = parseDidKey(didKey)
  return key?.curve === 'p256' ? key : null
}

/**
 * Seal a plaintext for one device. `ephemeralSecret` is the scalar of a P-256 key that is made for this seal and used
 * for no other: two seals under one such key would share their keystream.
 */
export async function sealPush(
  { kid, secret }: PushSenderSecret,
  recipient: PublicKey,
  plaintext: Uint8Array,
  ephemeralSecret: Uint8Array,
): Promise<SealedPush> {
  const { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } = await import('@hpke/core')
  const suite = new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() })
  // HPKE hashes the point with both coordinates.
  const publicHalf = ({ bytes }: PublicKey) =>
    suite.kem.importKey('raw', bufferOf(convertP256(bytes, 'uncompressed')), true)
  const pairOf = async (scalar: Uint8Array): Promise<CryptoKeyPair> => ({
    privateKey: await suite.kem.importKey('raw', bufferOf(scalar), false),
    publicKey: await publicHalf(signingKey('p256', scalar).publicKey),
  })
  const context = await suite.createSenderContext({
    recipientPublicKey: await publicHalf(recipient),
    senderKey: await pairOf(secret),
    ekm: await pairOf(ephemeralSecret),
    info: bufferOf(Buffer.from(INFO)),
  })
  const ciphertext = await context.seal(bufferOf(plaintext))
  return { kid, enc: base64url(new Uint8Array(context.enc)), ct: base64url(new Uint8Array(ciphertext)) }
}

/** A copy, because a small `Buffer` shares its memory with others. */
const bufferOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer
