/**
 * Codes sent by mail. A code permits one action, once, within a quarter of an hour.
 *
 * An account has one valid code per purpose, and a new code replaces it. Too many wrong guesses void a code. Anyone can
 * have a code for a password reset mailed, so an account may have several of these: a stranger's request does not void
 * the code that the holder is about to type.
 */
import { createHash, randomBytes } from 'node:crypto'
import { expiredToken, invalidToken, type Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { base32 } from '../../../protocol/cid.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import {
  countFailure,
  deleteMailedCodes,
  findMailedCode,
  findMailedCodeByHash,
  mailedCodesOf,
  placesOf,
  putMailedCode,
  type CodePurpose,
  type MailedCode,
} from './mailed-code-store.ts'

export const CODE_TTL_SECS = 15 * 60
const MAX_FAILURES = 5
const CODE_CHARS = 10

/**
 * Generate a code and store its hash in the caller's transaction. If the account already has its maximum of codes, the
 * oldest becomes void. Returns the code as `XXXXX-XXXXX`.
 */
export async function issueCode(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  did: Did,
  purpose: CodePurpose,
): Promise<string> {
  const letters = base32(randomBytes(CODE_CHARS)).slice(0, CODE_CHARS).toUpperCase()
  const code = `${letters.slice(0, 5)}-${letters.slice(5)}`
  const now = clock.now()
  const known = await mailedCodesOf(tx, did, purpose)
  const working = new Set(known.filter((one) => works(one, now)).map(({ place }) => place))
  const place = placesOf(purpose).find((one) => !working.has(one)) ?? known[0]!.place
  await putMailedCode(tx, did, place, hashOf(code), now)
  return code
}

/** Returns how many codes of an account can be redeemed now. */
export const countWorkingCodes = async (
  { clock }: Pick<Context, 'clock'>,
  reader: Reader,
  did: Did,
  purpose: CodePurpose,
): Promise<number> => (await mailedCodesOf(reader, did, purpose)).filter((one) => works(one, clock.now())).length

export type CodeFault = 'invalid' | 'expired'

/**
 * Redeem a code. Returns null if it was valid, else the fault. After a fault the transaction must do nothing else, but
 * must still commit, because it counts the failure.
 */
export async function redeemCode(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  { did, purpose, code }: { did: Did; purpose: CodePurpose; code: string },
): Promise<CodeFault | null> {
  const known = await findMailedCode(tx, did, purpose)
  if (!known || known.failures >= MAX_FAILURES) return 'invalid'
  if (known.codeHash !== hashOf(code)) {
    await countFailure(tx, did, purpose)
    return 'invalid'
  }
  if (isOver(known, clock.now())) return 'expired'
  await deleteMailedCodes(tx, did, purpose)
  return null
}

/**
 * Redeem a code from a caller who names no account. Returns the DID of the account that it was sent to, or the fault.
 */
export async function redeemAnonymousCode(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  purpose: CodePurpose,
  code: string,
): Promise<{ ok: true; did: Did } | { ok: false; fault: CodeFault }> {
  const known = await findMailedCodeByHash(tx, purpose, hashOf(code))
  if (!known) return { ok: false, fault: 'invalid' }
  if (isOver(known, clock.now())) return { ok: false, fault: 'expired' }
  await deleteMailedCodes(tx, known.did, purpose)
  return { ok: true, did: known.did }
}

/** Whether the code could still be redeemed. */
export async function isCodeAlive(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  { did, purpose, code }: { did: Did; purpose: CodePurpose; code: string },
): Promise<boolean> {
  const hash = hashOf(code)
  return (await mailedCodesOf(db, did, purpose)).some((one) => one.codeHash === hash && works(one, clock.now()))
}

/** Returns `ExpiredToken` or `InvalidToken`. */
export const codeRefused = (fault: CodeFault): Refusal =>
  fault === 'expired' ? expiredToken('Token is expired') : invalidToken('Token is invalid')

const works = (code: MailedCode, now: Millis): boolean => code.failures < MAX_FAILURES && !isOver(code, now)

/** The absolute difference, because a time in the future was written before the clock was set back. */
const isOver = ({ requestedAt }: MailedCode, now: Millis) => Math.abs(now - requestedAt) > CODE_TTL_SECS * 1000

/** Ignores case and surrounding spaces, because people type codes by hand. */
const hashOf = (code: string) => createHash('sha256').update(code.trim().toUpperCase()).digest('hex')
