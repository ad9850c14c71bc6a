/**
 * Argon2id (RFC 9106) with one lane, and its text form.
 *
 * A native library computes it in less than half the time that the runtime needs. If the library has no build for the
 * platform or cannot be loaded, the runtime computes it, with the same result.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { madeOnce } from '../../base/made-once.ts'
import { unpaddedBase64 } from '../../protocol/base64url.ts'
import { nativeBuildOrNull, type NativeBuilds } from './native-library.ts'

export interface Argon2Cost {
  memoryKib: number
  passes: number
}

/** What a hash of a password costs: 19 MiB and tens of milliseconds. */
export const standardPasswordCost: Argon2Cost = { memoryKib: 19_456, passes: 2 }

export const SALT_BYTES = 16
const HASH_BYTES = 32

type Compute = (password: string, salt: Uint8Array, cost: Argon2Cost) => Promise<Uint8Array>

const runtimes = promisify(argon2)

const computeInRuntime: Compute = (password, salt, { memoryKib, passes }) =>
  runtimes('argon2id', {
    message: password,
    nonce: salt,
    parallelism: 1,
    tagLength: HASH_BYTES,
    memory: memoryKib,
    passes,
  })

type Library = Pick<typeof import('@node-rs/argon2'), 'hashRaw'>

const builds: NativeBuilds<Library> = {
  'linux-x64': [() => require('@node-rs/argon2-linux-x64-gnu'), () => require('@node-rs/argon2-linux-x64-musl')],
  'linux-arm64': [() => require('@node-rs/argon2-linux-arm64-gnu'), () => require('@node-rs/argon2-linux-arm64-musl')],
  'darwin-x64': [() => require('@node-rs/argon2-darwin-x64')],
  'darwin-arm64': [() => require('@node-rs/argon2-darwin-arm64')],
  'win32-x64': [() => require('@node-rs/argon2-win32-x64-msvc')],
}

function load(): Compute {
  const library = nativeBuildOrNull(builds)
  if (library === null) return computeInRuntime
  return (password, salt, { memoryKib, passes }) =>
    library.hashRaw(password, { salt, memoryCost: memoryKib, timeCost: passes, parallelism: 1, outputLen: HASH_BYTES })
}

const loaded = madeOnce(load)

const compute: Compute = (password, salt, cost) => loaded()(password, salt, cost)

/** Returns the hash as a PHC string, `$argon2id$v=19$m=…,t=…,p=1$salt$hash`. The salt is random unless it is given. */
export const hashArgon2 = async (
  password: string,
  cost: Argon2Cost,
  salt: Uint8Array = randomBytes(SALT_BYTES),
): Promise<string> => argon2Text(cost, salt, await compute(password, salt, cost))

/** Returns a hash that no password verifies. Trying it costs as much as any other hash. */
export const unmatchedArgon2 = (cost: Argon2Cost): string =>
  argon2Text(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES))

const argon2Text = ({ memoryKib, passes }: Argon2Cost, salt: Uint8Array, hash: Uint8Array): string =>
  `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$${unpaddedBase64(salt)}$${unpaddedBase64(hash)}`

const form = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** Returns whether `hashArgon2` made the hash from this password, at any cost. Throws if the text has another form. */
export async function verifyArgon2(password: string, hash: string): Promise<boolean> {
  const [, memoryKib, passes, salt, expected] = form.exec(hash) ?? []
  if (expected === undefined) throw new Error('unknown format of a password hash')
  const computed = await compute(password, Buffer.from(salt!, 'base64'), {
    memoryKib: Number(memoryKib),
    passes: Number(passes),
  })
  return timingSafeEqual(computed, Buffer.from(expected, 'base64'))
}
