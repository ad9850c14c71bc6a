/**
 * The key that signs a release, in minisign's format. It comes from a file or a variable and is never part of the tree.
 *
 *   minisign -G -p holdfast.pub -s holdfast.key
 *   bun release/release-key.ts holdfast            the same without minisign: holdfast.key without a passphrase
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  scryptSync,
} from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { OperatorError } from '../src/base/operator-error.ts'
import { minisignKeyText } from '../src/protocol/minisign.ts'

const ALGORITHM = 'Ed'
const CHECKSUM = 'B2'
const SCRYPT = 'Sc'
const SALT_BYTES = 32
const ID_BYTES = 8
const SEED_BYTES = 32
/** Seed and public key. */
const SECRET_BYTES = 64
const SEALED_AT = 54
const FILE_BYTES = SEALED_AT + ID_BYTES + SECRET_BYTES + 32
const MEBIBYTE = 1024 * 1024
/** minisign derives the key of a sealed file with 1 GiB of memory. */
const MAX_SCRYPT_BYTES = 1200 * MEBIBYTE
/** The bytes before the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

export interface ReleaseKey {
  id: Buffer
  key: KeyObject
  /** The line with which users verify, and which is compiled in. */
  publicKey: string
}

/** Parse the text of a secret key. Throws OperatorError if it is not one, or if the passphrase does not open it. */
export function parseReleaseKey(text: string, passphrase: string | null): ReleaseKey {
  const bytes = Buffer.from(text.trim().split(/\r?\n/).at(-1)!, 'base64')
  if (bytes.length !== FILE_BYTES || bytes.toString('latin1', 0, 2) !== ALGORITHM)
    throw new OperatorError('the release key is not a secret key of minisign')
  const isSealed = bytes.toString('latin1', 2, 4) === SCRYPT
  if (isSealed && passphrase === null)
    throw new OperatorError('the release key is encrypted: set HOLDFAST_RELEASE_PASSPHRASE')
  const contents = isSealed ? opened(bytes, passphrase!) : bytes.subarray(SEALED_AT)
  const [id, secret, checksum] = [
    contents.subarray(0, ID_BYTES),
    contents.subarray(ID_BYTES, -32),
    contents.subarray(-32),
  ]
  // minisign leaves the checksum empty if the key has no passphrase.
  if (isSealed && !checksum.equals(checksumOf(id, secret)))
    throw new OperatorError('the passphrase does not open the release key')
  return releaseKey(id, secret)
}

function releaseKey(id: Buffer, secret: Buffer): ReleaseKey {
  const [seed, point] = [secret.subarray(0, SEED_BYTES), secret.subarray(SEED_BYTES)]
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
  if (!pointOf(createPublicKey(key)).equals(point)) throw new OperatorError('the release key is damaged')
  return { id, key, publicKey: minisignKeyText(id, point) }
}

const pointOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32)

function opened(bytes: Buffer, passphrase: string): Buffer {
  const salt = bytes.subarray(6, 6 + SALT_BYTES)
  const [operations, memory] = [bytes.readBigUInt64LE(38), bytes.readBigUInt64LE(46)]
  const sealed = bytes.subarray(SEALED_AT)
  const stream = scryptSync(passphrase, salt, sealed.length, {
    ...scryptCost(Number(operations), Number(memory)),
    maxmem: MAX_SCRYPT_BYTES,
  })
  return Buffer.from(sealed.map((byte, index) => byte ^ stream[index]!))
}

/** The parameters that libsodium derives from limits. Source: `pickparams` of crypto_pwhash_scryptsalsa208sha256. */
function scryptCost(operations: number, memory: number): { N: number; r: number; p: number } {
  const r = 8
  const isShort = operations < memory / 32
  const N = 2 ** Math.floor(Math.log2(isShort ? operations / (r * 4) : memory / (r * 128)))
  const p = isShort ? 1 : Math.floor(Math.min(operations / 4 / N, 0x3fffffff) / r)
  return { N, r, p }
}

const checksumOf = (id: Uint8Array, secret: Uint8Array): Buffer =>
  Buffer.from(new Bun.CryptoHasher('blake2b256').update(ALGORITHM).update(id).update(secret).digest())

/** Make a key. Returns the texts of its two files. */
export function newReleaseKey(): { secretFile: string; publicFile: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-SEED_BYTES)
  const point = pointOf(publicKey)
  const [id, secret] = [randomBytes(ID_BYTES), Buffer.concat([seed, point])]
  const contents = Buffer.concat([
    Buffer.from(ALGORITHM),
    Buffer.alloc(2),
    Buffer.from(CHECKSUM),
    Buffer.alloc(SALT_BYTES + 16),
    id,
    secret,
    checksumOf(id, secret),
  ])
  const name = Buffer.from(id).reverse().toString('hex').toUpperCase()
  return {
    secretFile: `untrusted comment: minisign secret key ${name}\n${contents.toString('base64')}\n`,
    publicFile: `untrusted comment: minisign public key ${name}\n${minisignKeyText(id, point)}\n`,
  }
}

if (import.meta.main) {
  const [name = 'holdfast'] = process.argv.slice(2)
  const { secretFile, publicFile } = newReleaseKey()
  writeFileSync(`${name}.key`, secretFile, { mode: 0o600, flag: 'wx' })
  writeFileSync(`${name}.pub`, publicFile, { flag: 'wx' })
  console.log(`${name}.key, which is not encrypted, and ${name}.pub`)
}
