/** Rows of `signup`: names held for accounts that are being made. */
import { sql, type Reader, type Sql, type Tx } from '../../platform/database.ts'
import type { Did, Handle, Millis } from '../../protocol/identifiers.ts'
import { parseOperation, type LogOperation } from '../../protocol/plc.ts'

export interface Signup {
  did: Did
  handle: Handle
  email: string
  inviteCode: string | null
  /** The first operation of a did:plc made here; null for a DID that was brought along. */
  genesis: LogOperation | null
  reservedAt: Millis
}

/** Throws a unique violation when another sign-up holds the handle, the address or the DID. */
export async function insertSignup(tx: Tx, { did, handle, email, inviteCode, genesis, reservedAt }: Signup): Promise<void> {
  await tx.run(sql`
    INSERT INTO signup (did, handle, email, invite_code, genesis, reserved_at)
    VALUES (${did}, ${handle}, ${email}, ${inviteCode}, ${genesis && JSON.stringify(genesis)}, ${reservedAt})`)
}

/** How many rows were there to delete: 0 when the sign-up was undone meanwhile. */
export const deleteSignup = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM signup WHERE did = ${did}`)

/** Sign-ups reserved before the instant, oldest first. */
export async function listSignupsBefore(reader: Reader, instant: Millis, limit: number): Promise<Pick<Signup, 'did' | 'genesis'>[]> {
  const rows = await reader.all<{ did: Did; genesis: string | null }>(
    sql`SELECT did, genesis FROM signup WHERE reserved_at <= ${instant} ORDER BY reserved_at LIMIT ${limit}`,
  )
  return rows.map(({ did, genesis }) => ({ did, genesis: genesis === null ? null : parseOperation(JSON.parse(genesis)) }))
}

export type Name = 'handle' | 'email' | 'did'

const holders: Record<Name, (value: string) => Sql> = {
  handle: (value) => sql`SELECT 1 FROM account WHERE handle = ${value} UNION ALL SELECT 1 FROM signup WHERE handle = ${value}`,
  email: (value) => sql`SELECT 1 FROM account WHERE email = ${value} UNION ALL SELECT 1 FROM signup WHERE email = ${value}`,
  did: (value) => sql`SELECT 1 FROM account WHERE did = ${value} UNION ALL SELECT 1 FROM signup WHERE did = ${value}`,
}

/** Whether an account, or a sign-up under way, has the name. */
export const isTaken = async (reader: Reader, name: Name, value: string): Promise<boolean> => (await reader.get(holders[name](value))) !== null
