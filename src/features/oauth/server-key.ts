/** The service's own P-256 key. It signs the access tokens of apps and agents; its public half is published. */
import { p256 } from '@noble/curves/nist.js'
import { perContext, type Context } from '../../platform/context.ts'
import { newSigningSecret } from '../../platform/secrets/signing-keys.ts'
import { serverSecret } from '../../platform/secrets/vault.ts'
import { thumbprint, type P256Jwk } from '../../protocol/jwk.ts'
import { signingKey, type SigningKey } from '../../protocol/keys.ts'

export interface ServerKey extends SigningKey {
  /** Its thumbprint. */
  kid: string
  jwk: P256Jwk
}

/** Read once, when the server starts. */
export const serverKey: (ctx: Context) => Promise<ServerKey> = perContext(async ({ db, vault }) => {
  const key = signingKey('p256', await serverSecret(db, vault, 'oauth-signing-key', () => newSigningSecret('p256')))
  const point = Buffer.from(p256.Point.fromBytes(key.publicKey.bytes).toBytes(false))
  const jwk: P256Jwk = { kty: 'EC', crv: 'P-256', x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33, 65) }
  return { ...key, jwk, kid: thumbprint(jwk)! }
})
