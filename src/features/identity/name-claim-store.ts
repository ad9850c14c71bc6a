/** SQL of the `name_claim` table. */
import { sql, type Reader, type Tx, type Writer } from '../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../protocol/identifiers.ts'
import { parseOperation, type LogOperation } from '../../protocol/plc.ts'
import type { WrappedKey } from '../accounts/accounts.ts'

/** The identity of an account that is still to be made: its first operation, and the key that it names. */
export interface PreparedIdentity {
  genesis: LogOperation
  /** Null: it was not kept, and the identity is good for nothing. */
  key: WrappedKey | null
}

/** Who is to have a handle. */
export interface Claimant {
  did: Did
  /** Null: the identity was there before. */
  prepared: PreparedIdentity | null
}

export interface Claim extends Claimant {
  handle: Handle
  /** Null: none is under way. */
  attempt: string | null
  heldUntil: Millis
}

interface Row extends Pick<Claim, 'handle' | 'did' | 'attempt' | 'heldUntil'> {
  genesis: string | null
  signingKey: string | null
  wrapped: string | null
}

const columns = sql`handle, did, attempt, held_until AS "heldUntil", genesis, signing_key AS "signingKey", signing_key_wrapped AS wrapped`

function fromRow({ genesis, signingKey, wrapped, ...row }: Row): Claim {
  const key = signingKey === null || wrapped === null ? null : { signingKey, wrapped }
  return { ...row, prepared: genesis === null ? null : { genesis: parseOperation(JSON.parse(genesis))!, key } }
}

export async function findClaim(reader: Reader, handle: Handle): Promise<Claim | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM name_claim WHERE handle = ${handle}`)
  return row && fromRow(row)
}

/** Claims that nobody holds any more: of accounts that are here, and of sign-ups that were left at rest until an instant. */
export const listUnheldClaims = (
  reader: Reader,
  { now, restingSince, limit }: { now: Millis; restingSince: Millis; limit: number },
): Promise<Pick<Claim, 'handle' | 'heldUntil'>[]> =>
  reader.all(sql`
    SELECT handle, held_until AS "heldUntil" FROM name_claim
    WHERE held_until <= ${restingSince} OR (held_until <= ${now} AND genesis IS NULL) ORDER BY held_until LIMIT ${limit}`)

const values = ({ did, prepared }: Claimant) => ({
  did,
  genesis: prepared && JSON.stringify(prepared.genesis),
  signingKey: prepared?.key?.signingKey ?? null,
  wrapped: prepared?.key?.wrapped ?? null,
})

/** What an attempt holds. */
export interface Hold {
  handle: Handle
  attempt: string
  heldUntil: Millis
  email: string | null
  inviteCode: string | null
}

export async function insertClaim(tx: Tx, { handle, attempt, heldUntil, email, inviteCode }: Hold, claimant: Claimant): Promise<void> {
  const { did, genesis, signingKey, wrapped } = values(claimant)
  await tx.run(sql`
    INSERT INTO name_claim (handle, did, genesis, signing_key, signing_key_wrapped, attempt, held_until, email, invite_code)
    VALUES (${handle}, ${did}, ${genesis}, ${signingKey}, ${wrapped}, ${attempt}, ${heldUntil}, ${email}, ${inviteCode})`)
}

/** Another attempt at a handle that is claimed already. Who is to have it stays as it is. */
export const takeUpClaim = (tx: Tx, { handle, attempt, heldUntil, email, inviteCode }: Hold): Promise<number> =>
  tx.run(
    sql`UPDATE name_claim SET attempt = ${attempt}, held_until = ${heldUntil}, email = ${email}, invite_code = ${inviteCode} WHERE handle = ${handle}`,
  )

/** 0 rows: another attempt has the handle. */
export function replaceClaimant(tx: Tx, { handle, attempt }: Pick<Hold, 'handle' | 'attempt'>, claimant: Claimant): Promise<number> {
  const { did, genesis, signingKey, wrapped } = values(claimant)
  return tx.run(sql`
    UPDATE name_claim SET did = ${did}, genesis = ${genesis}, signing_key = ${signingKey}, signing_key_wrapped = ${wrapped}
    WHERE handle = ${handle} AND attempt = ${attempt}`)
}

/** 0 rows: another attempt has the handle. */
export const deleteClaim = (tx: Tx, { handle, attempt }: Pick<Hold, 'handle' | 'attempt'>): Promise<number> =>
  tx.run(sql`DELETE FROM name_claim WHERE handle = ${handle} AND attempt = ${attempt}`)

export const endAttempt = (
  writer: Writer,
  { handle, attempt, heldUntil }: Pick<Hold, 'handle' | 'attempt' | 'heldUntil'>,
): Promise<number> =>
  writer.run(sql`
    UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil}
    WHERE handle = ${handle} AND attempt = ${attempt}`)

/** Whose: of the same sign-up, as far as it tells. `did`: null where the identity is made along with the account. */
export const endAttemptOf = (
  writer: Writer,
  { handle, did, email, inviteCode, heldUntil }: Omit<Hold, 'attempt'> & { did: Did | null },
): Promise<number> =>
  writer.run(sql`
    UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil}
    WHERE handle = ${handle} AND email = ${email} AND COALESCE(invite_code, '') = ${inviteCode ?? ''} AND attempt IS NOT NULL
      AND ${did === null ? sql`genesis IS NOT NULL` : sql`genesis IS NULL AND did = ${did}`}`)

export const endAttempts = (writer: Writer, heldUntil: Millis): Promise<number> =>
  writer.run(
    sql`UPDATE name_claim SET attempt = NULL, email = NULL, invite_code = NULL, held_until = ${heldUntil} WHERE attempt IS NOT NULL`,
  )

/** Of attempts that took longer than any may. */
export const releaseOverdueEmail = (tx: Tx, email: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE name_claim SET email = NULL WHERE email = ${email} AND held_until <= ${now}`)

export const deleteAllClaims = (tx: Tx): Promise<number> => tx.run(sql`DELETE FROM name_claim`)

export const isHandleUnderWay = async (reader: Reader, handle: Handle, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM name_claim WHERE handle = ${handle} AND attempt IS NOT NULL AND held_until > ${now}`)) !== null

export const isEmailUnderWay = async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM name_claim WHERE email = ${email} AND held_until > ${now}`)) !== null
