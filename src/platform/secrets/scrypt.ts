/** Scrypt (RFC 7914), which verifies passwords that another server has hashed, and its text form. */
import { scrypt, timingSafeEqual } from 'node:crypto'
import { unpaddedBase64 } from '../../protocol/base64url.ts'

/** The cost in the text form: 2 to the power of `ln` is the memory cost, `r` the block size, `p` the lanes. */
const FORM = '$scrypt$ln=14,r=8,p=1$'
const cost = { N: 2 ** 14, r: 8, p: 1 }
const HASH_BYTES = 64

/** Whether a stored hash has the form of this module. */
export const isScryptHash = (hash: string): boolean => hash.startsWith(FORM)

/** Returns the text form of a hash that was computed elsewhere, at the only cost that is read here. */
export const scryptText = (salt: Uint8Array, hash: Uint8Array): string =>
  `${FORM}${unpaddedBase64(salt)}$${unpaddedBase64(hash)}`

/** Returns the hash of a password in text form. */
export const hashScrypt = async (password: string, salt: Uint8Array): Promise<string> =>
  scryptText(salt, await compute(password, salt))

/** Returns whether the hash is one of this password. Throws if the text has another form. */
export async function verifyScrypt(password: string, hash: string): Promise<boolean> {
  const [salt, expected] = isScryptHash(hash) ? hash.slice(FORM.length).split('$') : []
  if (salt === undefined || expected === undefined) throw new Error('unknown format of a password hash')
  const known = Buffer.from(expected, 'base64')
  const computed = await compute(password, Buffer.from(salt, 'base64'))
  return known.length === computed.length && timingSafeEqual(known, computed)
}

const compute = (password: string, salt: Uint8Array): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(password, salt, HASH_BYTES, cost, (error, hash) => (error ? reject(error) : resolve(hash))),
  )
