/** Recovery codes: each can be used once in place of a lost factor. They are shown once, and stored as hashes. */
import { createHash, randomBytes } from 'node:crypto'
import type { Tx } from '../../../platform/database/database.ts'
import { base32 } from '../../../protocol/cid.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { hasHeldFactor, type FactorSummary } from './factor-summary-store.ts'
import { replaceFactorRecoveryCodes, takeFactorRecoveryCode } from './factor-recovery-code-store.ts'

const CODES = 10
/** 80 bits: too many to guess a code from its hash. */
const CODE_BYTES = 10

/** Replace the codes of an account. Returns them as `xxxx-xxxx-xxxx-xxxx`. */
export async function makeFactorRecoveryCodes(tx: Tx, did: Did): Promise<string[]> {
  const codes = Array.from({ length: CODES }, () => base32(randomBytes(CODE_BYTES)).replace(/(.{4})(?=.)/g, '$1-'))
  await replaceFactorRecoveryCodes(
    tx,
    did,
    codes.map((code) => hashOf(did, plain(code))),
  )
  return codes
}

/**
 * Make the codes of an account that has just got a factor. Returns null, and keeps the codes, if it had both a factor
 * and codes `before`.
 */
export const recoveryCodesBeside = async (tx: Tx, did: Did, before: FactorSummary): Promise<string[] | null> =>
  hasHeldFactor(before) && before.recoveryCodes > 0 ? null : makeFactorRecoveryCodes(tx, did)

/** Spend a code. Returns false if the account has no such code. */
export async function spendFactorRecoveryCode(tx: Tx, did: Did, typed: string): Promise<boolean> {
  const code = plain(typed)
  return /^[a-z2-7]{16}$/.test(code) && (await takeFactorRecoveryCode(tx, did, hashOf(did, code))) > 0
}

/** Ignores case, spaces and hyphens. */
const plain = (typed: string): string => typed.replace(/[\s-]/g, '').toLowerCase()
const hashOf = (did: Did, code: string): string => createHash('sha256').update(`${did} ${code}`).digest('hex')
