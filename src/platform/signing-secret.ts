import { generateKeyPairSync } from 'node:crypto'

/** The secret of a new P-256 key: its scalar, 32 bytes. */
export function newSigningSecret(): Uint8Array {
  const { d } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  return Buffer.from(d!, 'base64url')
}
