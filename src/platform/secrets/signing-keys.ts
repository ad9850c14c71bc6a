/**
 * Signing keys of the service: creates their secrets, and makes keys of them.
 *
 * The runtime does not support secp256k1. A native library signs four times as fast as the script in
 * `protocol/keys.ts`, and verifies ten times as fast, so that signatures from strangers do not slow down other
 * requests. If the library has no build for the platform or cannot be loaded, the script does both, with the same
 * results.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { madeOnce } from '../../base/made-once.ts'
import {
  k256InScript,
  signingKey,
  type Curve,
  type K256,
  type PublicKey,
  type SigningKey,
} from '../../protocol/keys.ts'
import { nativeBuildOrNull, type NativeBuilds } from './native-library.ts'

/** A key pair as stored: the private key wrapped under the master key, the public key as a did:key. */
export interface WrappedKey {
  signingKey: string
  wrapped: string
}

/** Returns the secret of a new key: its scalar, 32 bytes. */
export const newSigningSecret = (curve: Curve): Uint8Array => makers[curve]()

const makers: Record<Curve, () => Uint8Array> = {
  p256: () =>
    Buffer.from(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }).d!,
      'base64url',
    ),
  // One value in 2^128 is not below the order of the curve. It is refused when its public key is computed.
  k256: () => randomBytes(32),
}

/** Returns the signing key of a secret. Throws if the secret is not a scalar of the curve. */
export const openSigningKey = (curve: Curve, secret: Uint8Array): SigningKey =>
  signingKey(curve, secret, curve === 'k256' ? k256() : undefined)

/** The functions of the `secp256k1` package that are used here. */
interface Library {
  contextRandomize(seed: Uint8Array): void
  publicKeyCreate(secret: Uint8Array): Uint8Array
  ecdsaSign(digest: Uint8Array, secret: Uint8Array): { signature: Uint8Array }
  /** Replaces a high S, in place. Throws on numbers outside the group. */
  signatureNormalize(signature: Uint8Array): Uint8Array
  /** Returns false for a high S. Throws on numbers outside the group. */
  ecdsaVerify(signature: Uint8Array, digest: Uint8Array, point: Uint8Array): boolean
}

const k256 = madeOnce(() => loadNativeK256() ?? k256InScript)

/** What verifies with a key fastest. The library is loaded when a key of its curve first needs it. */
export const verifierOf = ({ curve }: PublicKey): K256 | undefined => (curve === 'k256' ? k256() : undefined)

/** Returns null if there is no build for the platform, or if none can be loaded. */
export function loadNativeK256(): K256 | null {
  const build = nativeBuildOrNull(builds)
  if (build === null) return null
  // Assembled here, because the package looks for its build at run time, and an executable has no folder to look in.
  const library = require('secp256k1/lib/index.js')(new build.Secp256k1()) as Library
  library.contextRandomize(randomBytes(32))
  return {
    pointOf: (secret) => library.publicKeyCreate(secret),
    sign: (digest, secret) => library.ecdsaSign(digest, secret).signature,
    verify(digest, signature, point, allowHighS) {
      try {
        return library.ecdsaVerify(
          allowHighS ? library.signatureNormalize(Uint8Array.from(signature)) : signature,
          digest,
          point,
        )
      } catch {
        return false // numbers outside the group
      }
    },
  }
}

interface Build {
  Secp256k1: new () => object
}

const builds: NativeBuilds<Build> = {
  'linux-x64': [
    () => require('secp256k1/prebuilds/linux-x64/secp256k1.glibc.node'),
    () => require('secp256k1/prebuilds/linux-x64/secp256k1.musl.node'),
  ],
  'darwin-arm64': [() => require('secp256k1/prebuilds/darwin-arm64/secp256k1.node')],
  'win32-x64': [() => require('secp256k1/prebuilds/win32-x64/secp256k1.node')],
}
