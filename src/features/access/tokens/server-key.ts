/** The P-256 key with which the server signs OAuth access tokens. Its public key is published at `/oauth/jwks`. */
import { perContext, type Context } from '../../../platform/context.ts'
import { newSigningSecret } from '../../../platform/secrets/signing-keys.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { thumbprint, type P256Jwk } from '../../../protocol/jwk.ts'
import { convertP256, signingKey, type SigningKey } from '../../../protocol/keys.ts'

export interface ServerKey extends SigningKey {
  /** Thumbprint of the public key. RFC 7638. */
  kid: string
  jwk: P256Jwk
}

/** Loads the key once, at startup, and creates it at the first startup. */
export const serverKey: (ctx: Context) => Promise<ServerKey> = perContext(async ({ db, vault }) => {
  const key = signingKey('p256', await serverSecret(db, vault, 'oauth-signing-key', () => newSigningSecret('p256')))
  const point = Buffer.from(convertP256(key.publicKey.bytes, 'uncompressed'))
  const jwk: P256Jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.toString('base64url', 1, 33),
    y: point.toString('base64url', 33, 65),
  }
  return { ...key, jwk, kid: thumbprint(jwk)! }
})
