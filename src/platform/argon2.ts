/**
 * Argon2id (RFC 9106), one lane, and its text form.
 *
 * A native library computes it in less than half the time of the runtime's own, which stands in where the library has
 * no build for the platform, or cannot be loaded there: the result is the same.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

export interface Argon2Cost {
  memoryKib: number
  passes: number
}

export const SALT_BYTES = 16
const HASH_BYTES = 32

type Compute = (password: string, salt: Uint8Array, cost: Argon2Cost) => Promise<Uint8Array>

const runtimes = promisify(argon2)

const computeInRuntime: Compute = (password, salt, { memoryKib, passes }) =>
  runtimes('argon2id', { message: password, nonce: salt, parallelism: 1, tagLength: HASH_BYTES, memory: memoryKib, passes })

async function load(): Promise<Compute> {
  try {
    const { hashRaw } = await import('@node-rs/argon2')
    return (password, salt, { memoryKib, passes }) => hashRaw(password, { salt, memoryCost: memoryKib, timeCost: passes, parallelism: 1, outputLen: HASH_BYTES })
  } catch {
    return computeInRuntime
  }
}

let loading: Promise<Compute> | null = null

const compute: Compute = async (password, salt, cost) => (await (loading ??= load()))(password, salt, cost)

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replace(/=+$/, '')

/** `$argon2id$v=19$m=…,t=…,p=1$salt$hash`, the form in which the field writes it down. The salt is random unless it is given. */
export async function hashArgon2(password: string, cost: Argon2Cost, salt: Uint8Array = randomBytes(SALT_BYTES)): Promise<string> {
  return `$argon2id$v=19$m=${cost.memoryKib},t=${cost.passes},p=1$${text(salt)}$${text(await compute(password, salt, cost))}`
}

const form = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** Whether `hashArgon2` made this of the password, at whatever cost. Throws on any other text. */
export async function verifyArgon2(password: string, hash: string): Promise<boolean> {
  const [, memoryKib, passes, salt, expected] = form.exec(hash) ?? []
  if (expected === undefined) throw new Error('a password hash of an unknown form')
  const computed = await compute(password, Buffer.from(salt!, 'base64'), { memoryKib: Number(memoryKib), passes: Number(passes) })
  return timingSafeEqual(computed, Buffer.from(expected, 'base64'))
}
