/** SQL of the `name_claim` table. */
import { sql, type Database, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import { isHolderGone } from '../../../platform/database/row-holders.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { parseOperation, type LogOperation } from '../../../protocol/plc.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'

/**
 * The identity of an account that does not exist yet: its genesis operation, and the signing key that the operation
 * names.
 */
export interface PreparedIdentity {
  genesis: LogOperation
  /** Null if the key was not kept, in which case no account can use the identity. */
  key: WrappedKey | null
}

/** The identity that is to get the handle. */
export interface Claimant {
  did: Did
  /** Null if the identity existed before the attempt. */
  prepared: PreparedIdentity | null
}

export interface Claim extends Claimant {
  handle: Handle
  /** Whether the account is to get the handle in addition to its present ones, and not in place of them. */
  isFurther: boolean
  /** Id of the attempt under way; null if there is none. */
  attempt: string | null
  heldUntil: Millis
}

interface Row extends Pick<Claim, 'handle' | 'did' | 'attempt' | 'heldUntil'> {
  isFurther: number
  genesis: string | null
  signingKey: string | null
  wrapped: string | null
}

const columns = sql`handle, did, is_further AS "isFurther", attempt, held_until AS "heldUntil", genesis, signing_key AS "signingKey", signing_key_wrapped AS wrapped`

function fromRow({ genesis, signingKey, wrapped, isFurther, ...row }: Row): Claim {
  const key = signingKey === null || wrapped === null ? null : { signingKey, wrapped }
  return {
    ...row,
    isFurther: isFurther === 1,
    prepared: genesis === null ? null : { genesis: parseOperation(JSON.parse(genesis))!, key },
  }
}

/** Returns null if the handle is not claimed. */
export async function findClaim(reader: Reader, handle: Handle): Promise<Claim | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM name_claim WHERE handle = ${handle}`)
  return row && fromRow(row)
}

/**
 * Claims whose hold ended by `now`, or by `restingSince` for an identity that a sign-up prepared. Also claims that no
 * attempt has and whose hold ends after `latest`.
 */
export const listUnheldClaims = (
  reader: Reader,
  { now, restingSince, latest, limit }: { now: Millis; restingSince: Millis; latest: Millis; limit: number },
): Promise<Pick<Claim, 'handle' | 'heldUntil'>[]> =>
  reader.all(sql`
    SELECT handle, held_until AS "heldUntil" FROM name_claim
    WHERE held_until <= ${restingSince} OR (held_until <= ${now} AND genesis IS NULL) OR (held_until > ${latest} AND attempt IS NULL)
    ORDER BY held_until LIMIT ${limit}`)

const values = ({ did, prepared }: Claimant) => ({
  did,
  genesis: prepared && JSON.stringify(prepared.genesis),
  signingKey: prepared?.key?.signingKey ?? null,
  wrapped: prepared?.key?.wrapped ?? null,
})

/** What an attempt holds until `heldUntil`. A null email address or invite code is not held. */
export interface Hold extends Pick<Claim, 'isFurther'> {
  handle: Handle
  attempt: string
  heldUntil: Millis
  email: string | null
  inviteCode: string | null
  /** The process that makes the attempt, as `holderOf` names it. */
  holder: string | null
}

export async function insertClaim(
  tx: Tx,
  { handle, isFurther, attempt, heldUntil, email, inviteCode, holder }: Hold,
  claimant: Claimant,
): Promise<void> {
  const { did, genesis, signingKey, wrapped } = values(claimant)
  await tx.run(sql`
    INSERT INTO name_claim (handle, is_further, did, genesis, signing_key, signing_key_wrapped, attempt, held_until, email, invite_code, attempt_by)
    VALUES (${handle}, ${isFurther ? 1 : 0}, ${did}, ${genesis}, ${signingKey}, ${wrapped}, ${attempt}, ${heldUntil}, ${email}, ${inviteCode}, ${holder})`)
}

/** Let another attempt take over an existing claim. The claimant does not change. */
export const takeUpClaim = (
  tx: Tx,
  { handle, isFurther, attempt, heldUntil, email, inviteCode, holder }: Hold,
): Promise<number> =>
  tx.run(sql`
    UPDATE name_claim SET is_further = ${isFurther ? 1 : 0}, attempt = ${attempt}, held_until = ${heldUntil}, email = ${email}, invite_code = ${inviteCode}, attempt_by = ${holder}
    WHERE handle = ${handle}`)

/** Returns 0 if another attempt has the claim. */
export function replaceClaimant(
  tx: Tx,
  { handle, attempt, isFurther }: Pick<Hold, 'handle' | 'attempt' | 'isFurther'>,
  claimant: Claimant,
): Promise<number> {
  const { did, genesis, signingKey, wrapped } = values(claimant)
  return tx.run(sql`
    UPDATE name_claim SET is_further = ${isFurther ? 1 : 0}, did = ${did}, genesis = ${genesis}, signing_key = ${signingKey}, signing_key_wrapped = ${wrapped}
    WHERE handle = ${handle} AND attempt = ${attempt}`)
}

/** Returns 0 if another attempt has the claim. */
export const deleteClaim = (tx: Tx, { handle, attempt }: Pick<Hold, 'handle' | 'attempt'>): Promise<number> =>
  tx.run(sql`DELETE FROM name_claim WHERE handle = ${handle} AND attempt = ${attempt}`)

export const endAttempt = (
  writer: Writer,
  { handle, attempt, heldUntil }: Pick<Hold, 'handle' | 'attempt' | 'heldUntil'>,
): Promise<number> =>
  writer.run(sql`
    UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil}
    WHERE handle = ${handle} AND attempt = ${attempt}`)

/**
 * End the attempt of the same sign-up: same handle, address, invite code and DID. `did` is null if the sign-up makes
 * the identity.
 */
export const endAttemptOf = (
  writer: Writer,
  { handle, did, email, inviteCode, heldUntil }: Omit<Hold, 'attempt' | 'holder' | 'isFurther'> & { did: Did | null },
): Promise<number> =>
  writer.run(sql`
    UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil}
    WHERE handle = ${handle} AND email = ${email} AND COALESCE(invite_code, '') = ${inviteCode ?? ''} AND attempt IS NOT NULL
      AND ${did === null ? sql`genesis IS NOT NULL` : sql`genesis IS NULL AND did = ${did}`}`)

/** End the attempts of processes that no longer run. */
export async function endAttempts(db: Database, heldUntil: Millis): Promise<void> {
  const left = sql`attempt IS NOT NULL AND ${isHolderGone(db, sql`attempt_by`)}`
  if ((await db.get(sql`SELECT 1 FROM name_claim WHERE ${left} LIMIT 1`)) === null) return
  await db.run(
    sql`UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil} WHERE ${left}`,
  )
}

/** Release the email address from attempts that have timed out. */
export const releaseOverdueEmail = (tx: Tx, email: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE name_claim SET email = NULL WHERE email = ${email} AND held_until <= ${now}`)

export const deleteAllClaims = (tx: Tx): Promise<number> => tx.run(sql`DELETE FROM name_claim`)

export const isHandleUnderWay = async (reader: Reader, handle: Handle, now: Millis): Promise<boolean> =>
  (await reader.get(
    sql`SELECT 1 FROM name_claim WHERE handle = ${handle} AND attempt IS NOT NULL AND held_until > ${now}`,
  )) !== null

export const isEmailUnderWay = async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM name_claim WHERE email = ${email} AND held_until > ${now}`)) !== null
