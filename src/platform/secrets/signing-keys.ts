/**
 * Keys that the service signs with: new secrets, and what is made of them.
 *
 * The runtime has no secp256k1. A native library signs on it four times as fast as the script of `protocol/keys.ts`, which
 * stands in where the library has no build for the platform, or cannot be loaded there: the signatures are the same.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { k256InScript, signingKey, type Curve, type K256, type SigningKey } from '../../protocol/keys.ts'
import { loadNative } from './native-library.ts'

/** The secret of a new key: its scalar, 32 bytes. */
export const newSigningSecret = (curve: Curve): Uint8Array => makers[curve]()

const makers: Record<Curve, () => Uint8Array> = {
  p256: () => Buffer.from(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }).d!, 'base64url'),
  // One in 2^128 is not below the order of the curve, and is refused when its public half is computed.
  k256: () => randomBytes(32),
}

/** Throws on a secret that is no scalar of the curve. */
export const openSigningKey = (curve: Curve, secret: Uint8Array): SigningKey =>
  signingKey(curve, secret, curve === 'k256' ? k256() : undefined)

/** What the `secp256k1` package makes of its library. */
interface Library {
  contextRandomize(seed: Uint8Array): void
  publicKeyCreate(secret: Uint8Array): Uint8Array
  ecdsaSign(digest: Uint8Array, secret: Uint8Array): { signature: Uint8Array }
}

let loaded: K256 | null = null

const k256 = (): K256 => (loaded ??= loadNativeK256() ?? k256InScript)

/** Null where there is no build for the platform, or it cannot be loaded. */
export function loadNativeK256(): K256 | null {
  const build = loadNative(builds())
  if (build === null) return null
  // By its parts: the package looks for its build at run time, and an executable has no folder to look in.
  const library = require('secp256k1/lib/index.js')(new build.Secp256k1()) as Library
  library.contextRandomize(randomBytes(32))
  return { pointOf: (secret) => library.publicKeyCreate(secret), sign: (digest, secret) => library.ecdsaSign(digest, secret).signature }
}

interface Build {
  Secp256k1: new () => object
}

/** Conditions that the bundler can decide: the executable holds builds for its own platform and no other. */
function* builds(): Iterable<Build | string> {
  if (process.platform === 'linux' && process.arch === 'x64') {
    try {
      yield require('secp256k1/prebuilds/linux-x64/secp256k1.glibc.node')
    } catch {
      /* does not load here */
    }
    try {
      yield require('secp256k1/prebuilds/linux-x64/secp256k1.musl.node')
    } catch {
      /* does not load here */
    }
  }
  if (process.platform === 'darwin' && process.arch === 'arm64') {
    try {
      yield require('secp256k1/prebuilds/darwin-arm64/secp256k1.node')
    } catch {
      /* does not load here */
    }
  }
  if (process.platform === 'win32' && process.arch === 'x64') {
    try {
      yield require('secp256k1/prebuilds/win32-x64/secp256k1.node')
    } catch {
      /* does not load here */
    }
  }
}
