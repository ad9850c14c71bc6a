/**
 * Passwords: argon2id, with a bound on concurrent computations, because each takes 19 MiB and tens of milliseconds.
 *
 * Accounts from a reference server bring scrypt hashes, which the next sign-in replaces. An attempt on an account that
 * does not exist, or has no password, costs as much as a wrong password. While hashes of both kinds are stored, each
 * failed attempt computes both.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Refusal } from '../../../http/errors.ts'
import { hashArgon2, SALT_BYTES, unmatchedArgon2, verifyArgon2 } from '../../../platform/secrets/argon2.ts'
import { hashScrypt, isScryptHash, verifyScrypt } from '../../../platform/secrets/scrypt.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { NoPlace, Places } from '../../../base/places.ts'
import { clientHere, resumed } from '../../../platform/running/request-scope.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { hasForeignHash } from './foreign-hash-store.ts'

const MAX_CONCURRENT = Math.min(4, availableParallelism())
const MAX_WAITING = 512

/** Minimum length of a new password. Shorter ones that already exist keep working. */
export const MIN_PASSWORD_CHARS = 8
const MAX_PASSWORD_CHARS = 256
/** Longer input is never a valid password and is rejected without hashing. */
export const MAX_TRIED_PASSWORD_CHARS = 512

/** The hash to compare with if the account has no password. */
const nobodysHash = perContext(({ passwordCost }) => unmatchedArgon2(passwordCost))

const hashing = perContext(() => new Places({ size: MAX_CONCURRENT, maxWaiting: MAX_WAITING }))

async function withPermit<T>(ctx: Context, work: () => Promise<T>): Promise<T> {
  try {
    const result = await hashing(ctx).run(clientHere(), work)
    resumed()
    return result
  } catch (error) {
    if (error instanceof NoPlace) throw new Refusal(503, 'NotEnoughResources', 'Too many logins at the moment')
    throw error
  }
}

export type PasswordFault = { fault: 'short' | 'long'; message: string }

/** Returns why the password cannot be set, or null if it can. */
export function passwordFault(password: string): PasswordFault | null {
  if (password.length < MIN_PASSWORD_CHARS)
    return { fault: 'short', message: `Password too short. Minimum length is ${MIN_PASSWORD_CHARS} characters.` }
  if (password.length > MAX_PASSWORD_CHARS)
    return { fault: 'long', message: `Password too long. Maximum length is ${MAX_PASSWORD_CHARS} characters.` }
  return null
}

export const hashPassword = (ctx: Context, password: string): Promise<string> =>
  withPermit(ctx, () => hashArgon2(password, ctx.passwordCost))

const NOBODYS_SCRYPT =
  '$scrypt$ln=14,r=8,p=1$ESIY5SbNRjpH+nySQKp5og$Dvv/XFgsk2RUrVUN2tGCWZ2OnPFXtXvHBI5SKKAGGvRWFUGsrdyAB8RgvxUtGVVUnUpWRG3RUkTCXUsrkGjl2g'

/**
 * Whether a hash of another server may be stored. Only the move of a whole server brings such hashes, and the server is
 * stopped for that.
 */
const mayHaveForeign = perContext(() => ({ known: true }))

/** Returns whether a hash of another server is stored, for an account or an app password. */
export async function expectsForeignHashes(ctx: Context): Promise<boolean> {
  const state = mayHaveForeign(ctx)
  if (state.known) state.known = await hasForeignHash(ctx.db)
  return state.known
}

/**
 * Check a password. A null `hash` never matches, but takes the same work. Throws `NotEnoughResources` (503) if too many
 * attempts are waiting.
 */
export async function verifyPassword(ctx: Context, password: string, hash: string | null): Promise<boolean> {
  const isForeign = hash !== null && isScryptHash(hash)
  const matches = await withPermit(ctx, () =>
    isForeign ? verifyScrypt(password, hash) : verifyArgon2(password, hash ?? nobodysHash(ctx)),
  )
  if (!matches && (await expectsForeignHashes(ctx)))
    await withPermit(ctx, () =>
      isForeign ? verifyArgon2(password, nobodysHash(ctx)) : verifyScrypt(password, NOBODYS_SCRYPT),
    )
  return matches && hash !== null
}

/** Whether another server made the hash: it has another form than the hashes that this server makes. */
export const isForeignHash = (hash: string | null): hash is string => hash !== null && isScryptHash(hash)

/**
 * Hash a generated password with a salt that depends on the account only, so that one computation finds its row among
 * all app passwords of the account. For random passwords only; passwords that people choose get their own random salt.
 */
export function hashGeneratedPassword(ctx: Context, did: Did, password: string): Promise<string> {
  const salt = createHash('sha256').update(did).digest().subarray(0, SALT_BYTES)
  return withPermit(ctx, () => hashArgon2(password, ctx.passwordCost, salt))
}

/** Hash a generated password in the form in which the reference server hashes app passwords. */
export function hashGeneratedElsewhere(ctx: Context, did: Did, password: string): Promise<string> {
  const salt = createHash('sha256')
    .update(did)
    .digest('hex')
    .slice(0, 2 * SALT_BYTES)
  return withPermit(ctx, () => hashScrypt(password, Buffer.from(salt)))
}
