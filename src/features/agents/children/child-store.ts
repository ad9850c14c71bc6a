/** SQL of the `child_account` table. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { parseOperation, type LogOperation } from '../../../protocol/plc.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import type { RegistrationStatus } from '../agents/agents.ts'

/**
 * An account that another account made for an agent. The account itself may be gone, or its holder may have brought it
 * back since: then it is no longer a child.
 */
export interface Child {
  did: Did
  parentDid: Did
  registrationId: string
  genesis: LogOperation
  /** When the account was made. An account that came back was made at another time. */
  createdAt: Millis
  /** When this server learnt that the directory has the identity; null if that is not known. */
  publishedAt: Millis | null
  /** When the making of the account was finished. */
  finishedAt: Millis | null
  /** When it will be or was deleted, as last requested; null if that was never requested. */
  deleteAfter: Millis | null
}

export async function findChild(reader: Reader, did: Did): Promise<Child | null> {
  const row = await reader.get<Omit<Child, 'genesis'> & { genesis: string }>(sql`
    SELECT did, parent_did AS "parentDid", registration_id AS "registrationId", genesis, created_at AS "createdAt",
      published_at AS "publishedAt", finished_at AS "finishedAt", delete_after AS "deleteAfter"
    FROM child_account WHERE did = ${did}`)
  return row && { ...row, genesis: parseOperation(JSON.parse(row.genesis))! }
}

/** Throws a unique violation if the DID is known. */
export const insertChild = (tx: Tx, { did, parentDid, registrationId, genesis, createdAt }: Child): Promise<number> =>
  tx.run(sql`
    INSERT INTO child_account (did, parent_did, registration_id, genesis, created_at)
    VALUES (${did}, ${parentDid}, ${registrationId}, ${JSON.stringify(genesis)}, ${createdAt})`)

export const setChildPublished = (writer: Writer, did: Did, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE child_account SET published_at = ${now} WHERE did = ${did} AND published_at IS NULL`)

/** Note that a child is finished. Returns 0 if it was before. */
export const setChildFinished = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE child_account SET finished_at = ${now} WHERE did = ${did} AND finished_at IS NULL`)

export const setChildDeletion = (tx: Tx, did: Did, deleteAfter: Millis): Promise<number> =>
  tx.run(sql`UPDATE child_account SET delete_after = ${deleteAfter} WHERE did = ${did}`)

/** Delete a child. Returns 0 if the directory has its identity. */
export const deleteChild = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM child_account WHERE did = ${did} AND published_at IS NULL`)

/** A child as its parent sees it. */
export interface ListedChild {
  registrationId: string
  did: Did
  handle: Handle | null
  status: RegistrationStatus
  createdAt: Millis
}

/** Returns the finished children of an account whose accounts exist, newest first. */
export const childrenOf = (reader: Reader, parentDid: Did): Promise<ListedChild[]> =>
  reader.all<ListedChild>(sql`
    SELECT r.id AS "registrationId", r.did, a.handle, r.status, r.created_at AS "createdAt"
    FROM agent_registration r JOIN account a ON a.did = r.did
    WHERE r.parent_did = ${parentDid} ORDER BY r.created_at DESC, r.id DESC`)

/** Children whose accounts exist, finished or not. An account that came back by itself is another account. */
const living = sql`child_account c JOIN account a ON a.did = c.did AND a.created_at = c.created_at`

export const livingChildrenOf = async (reader: Reader, parentDid: Did): Promise<Did[]> =>
  (
    await reader.all<{ did: Did }>(sql`SELECT c.did FROM ${living} WHERE c.parent_did = ${parentDid} ORDER BY c.did`)
  ).map(({ did }) => did)

/** Returns the account that made this one, even if that account no longer exists; null if none did. */
export const parentOf = async (reader: Reader, did: Did): Promise<Did | null> =>
  (await reader.get<{ parentDid: Did }>(sql`SELECT c.parent_did AS "parentDid" FROM ${living} WHERE c.did = ${did}`))
    ?.parentDid ?? null

/**
 * Returns the line of parents of an account, beginning with the account itself. It never contains an account twice,
 * although an account that came back may have been made by one of its own children.
 */
export async function lineOf(reader: Reader, did: Did): Promise<Did[]> {
  const line = new Set<Did>()
  for (let next: Did | null = did; next !== null && !line.has(next); next = await parentOf(reader, next)) line.add(next)
  return [...line]
}

/** Like `livingChildrenOf`, with the present handle and status of each account, the oldest first. */
export const accountsMadeBy = (
  reader: Reader,
  parentDid: Did,
): Promise<Pick<Account, 'did' | 'handle' | 'deactivatedAt' | 'takedownRef'>[]> =>
  reader.all(sql`
    SELECT a.did, a.handle, a.deactivated_at AS "deactivatedAt", a.takedown_ref AS "takedownRef"
    FROM ${living}
    WHERE c.parent_did = ${parentDid} ORDER BY c.created_at, c.did`)

export const countLivingChildren = async (reader: Reader, parentDid: Did): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM ${living} WHERE c.parent_did = ${parentDid}`))!
    .count

/**
 * Keeps the row of a deleted child for later requests of its parent, unless the parent is deleted too. Deletes rows
 * about the child's own children.
 */
export async function buryChild(tx: Tx, did: Did, now: Millis): Promise<void> {
  await tx.run(sql`UPDATE child_account SET delete_after = ${now} WHERE did = ${did} AND delete_after IS NULL`)
  await tx.run(sql`
    DELETE FROM child_account
    WHERE (did = ${did} AND NOT EXISTS (SELECT 1 FROM account a WHERE a.did = parent_did))
      OR (parent_did = ${did} AND NOT EXISTS (SELECT 1 FROM account a WHERE a.did = child_account.did))`)
}
