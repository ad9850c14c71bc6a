/**
 * Codes sent by mail: who can read the account's mail may do one thing, once, within a quarter of an hour.
 *
 * One code of each purpose is alive; asking again replaces it. A code that was guessed at too often is dead.
 */
import { createHash, randomBytes } from 'node:crypto'
import { expiredToken, invalidToken, type Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { base32 } from '../../protocol/cid.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import { countFailure, deleteMailedCode, findMailedCode, findMailedCodeByHash, putMailedCode, type CodePurpose, type MailedCode } from './mailed-code-store.ts'

export const CODE_TTL_SECS = 15 * 60
const MAX_FAILURES = 5
const CODE_CHARS = 10

/** Make a code and store its hash, in the caller's transaction. Returns the code as `XXXXX-XXXXX`. */
export async function issueCode({ clock }: Pick<Context, 'clock'>, tx: Tx, did: Did, purpose: CodePurpose): Promise<string> {
  const letters = base32(randomBytes(CODE_CHARS)).slice(0, CODE_CHARS).toUpperCase()
  const code = `${letters.slice(0, 5)}-${letters.slice(5)}`
  await putMailedCode(tx, did, purpose, hashOf(code), clock.now())
  return code
}

export type CodeFault = 'invalid' | 'expired'

/**
 * Use a code up. Null when it was right; otherwise what is wrong with it, and then nothing else must happen in the
 * transaction, which has to be committed all the same: it counts the failure.
 */
export async function redeemCode({ clock }: Pick<Context, 'clock'>, tx: Tx, { did, purpose, code }: { did: Did; purpose: CodePurpose; code: string }): Promise<CodeFault | null> {
  const known = await findMailedCode(tx, did, purpose)
  if (!known || known.failures >= MAX_FAILURES) return 'invalid'
  if (known.codeHash !== hashOf(code)) {
    await countFailure(tx, did, purpose)
    return 'invalid'
  }
  if (isOver(known, clock.now())) return 'expired'
  await deleteMailedCode(tx, did, purpose)
  return null
}

/** The account that a code was sent to, for whoever shows nothing but the code. Uses it up like `redeemCode`. */
export async function redeemAnonymousCode({ clock }: Pick<Context, 'clock'>, tx: Tx, purpose: CodePurpose, code: string): Promise<{ ok: true; did: Did } | { ok: false; fault: CodeFault }> {
  const known = await findMailedCodeByHash(tx, purpose, hashOf(code))
  if (!known) return { ok: false, fault: 'invalid' }
  if (isOver(known, clock.now())) return { ok: false, fault: 'expired' }
  await deleteMailedCode(tx, known.did, purpose)
  return { ok: true, did: known.did }
}

/** Whether the code would still be taken. */
export async function isCodeAlive({ db, clock }: Pick<Context, 'db' | 'clock'>, { did, purpose, code }: { did: Did; purpose: CodePurpose; code: string }): Promise<boolean> {
  const known = await findMailedCode(db, did, purpose)
  return known !== null && known.codeHash === hashOf(code) && known.failures < MAX_FAILURES && !isOver(known, clock.now())
}

export const codeRefused = (fault: CodeFault): Refusal => (fault === 'expired' ? expiredToken('Token is expired') : invalidToken('Token is invalid'))

const isOver = ({ requestedAt }: MailedCode, now: Millis) => now > requestedAt + CODE_TTL_SECS * 1000

/** People type codes in either case, and with spaces around them. */
const hashOf = (code: string) => createHash('sha256').update(code.trim().toUpperCase()).digest('hex')
