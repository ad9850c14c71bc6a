/** The SQL of the tables `host_rename` and `host_rename_account`, and what a plan counts. */
import type { DidPlace } from '../../../http/paged-list.ts'
import { sql, sqlList, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'

/** What becomes of handles under the former name. */
export const handleChoices = ['keep', 'rename'] as const
export type HandleChoice = (typeof handleChoices)[number]

/**
 * `sending`: an operation is on its way. `updated`: the identity names the present address. `by_holder`: only a key of
 * the holder can change it. `elsewhere`: it names another server. `refused`: the directory refused the operation.
 * `failed`: an error ended the last try, and another one follows.
 */
export type RenameState = 'sending' | 'updated' | 'by_holder' | 'elsewhere' | 'refused' | 'failed'

export interface HostRename {
  publicUrl: string
  handles: HandleChoice
  begunAt: Millis
  finishedAt: Millis | null
}

export interface RenamedAccount {
  did: Did
  state: RenameState
  /** The reason, for people; null if there is nothing to say. */
  detail: string | null
  /** Why the account has kept its handle; null if it was renamed, or was to keep it. */
  handleFault: string | null
}

export const findRename = (reader: Reader): Promise<HostRename | null> =>
  reader.get(sql`
    SELECT public_url AS "publicUrl", handles, begun_at AS "begunAt", finished_at AS "finishedAt" FROM host_rename`)

export async function putRename(
  tx: Tx,
  { publicUrl, handles, begunAt }: Omit<HostRename, 'finishedAt'>,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO host_rename (id, public_url, handles, begun_at) VALUES (1, ${publicUrl}, ${handles}, ${begunAt})
    ON CONFLICT (id) DO UPDATE SET public_url = excluded.public_url, handles = excluded.handles,
      begun_at = excluded.begun_at, finished_at = NULL`)
}

export const finishRename = (tx: Tx, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE host_rename SET finished_at = ${now}`)

/**
 * Forget the outcomes of all accounts, or of those that are not updated, so that they are examined again. What was sent
 * without an answer stays noted: it may still arrive, even if the server has yet another name by then.
 */
export async function forgetOutcomes(tx: Tx, which: 'all' | 'open'): Promise<void> {
  await tx.run(sql`
    UPDATE host_rename_account SET state = 'sending', detail = NULL, handle_fault = NULL, settled_at = NULL
    WHERE sent_at IS NOT NULL`)
  await tx.run(sql`
    DELETE FROM host_rename_account
    WHERE sent_at IS NULL AND (${which === 'all' ? 1 : 0} = 1 OR state <> 'updated' OR handle_fault IS NOT NULL)`)
}

/** Returns when an operation was sent whose outcome is unknown; null if there is none. */
export const unansweredSince = async (reader: Reader, did: Did): Promise<Millis | null> =>
  (
    await reader.get<{ sentAt: Millis | null }>(
      sql`SELECT sent_at AS "sentAt" FROM host_rename_account WHERE did = ${did}`,
    )
  )?.sentAt ?? null

export const forgetOutcomeOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM host_rename_account WHERE did = ${did}`)

/** Note that an operation is about to be sent. Returns when an earlier one was sent without an answer, or null. */
export async function noteSending(tx: Tx, did: Did, now: Millis): Promise<Millis | null> {
  const before = await unansweredSince(tx, did)
  await tx.run(sql`
    INSERT INTO host_rename_account (did, state, sent_at) VALUES (${did}, 'sending', ${now})
    ON CONFLICT (did) DO UPDATE SET state = 'sending', sent_at = excluded.sent_at`)
  return before
}

export async function settleAccount(
  tx: Tx,
  { did, state, detail, handleFault }: RenamedAccount,
  now: Millis,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO host_rename_account (did, state, detail, handle_fault, settled_at)
    VALUES (${did}, ${state}, ${detail}, ${handleFault}, ${now})
    ON CONFLICT (did) DO UPDATE SET state = excluded.state, detail = excluded.detail,
      handle_fault = excluded.handle_fault, sent_at = NULL, settled_at = excluded.settled_at`)
}

/** Note why a try has failed. An unanswered operation stays noted. Does nothing for a deleted account. */
export const noteFailure = (tx: Tx, did: Did, detail: string): Promise<number> =>
  tx.run(sql`
    INSERT INTO host_rename_account (did, state, detail) SELECT did, 'failed', ${detail} FROM account WHERE did = ${did}
    ON CONFLICT (did) DO UPDATE SET state = 'failed', detail = excluded.detail, settled_at = NULL`)

/** Accounts that were tried and are not settled, in order of their DIDs, after `after`. */
export const unsettledAfter = (reader: Reader, after: Did | null, limit: number): Promise<DidPlace[]> =>
  reader.all(sql`
    SELECT did, account.created_at AS "createdAt" FROM host_rename_account JOIN account USING (did)
    WHERE settled_at IS NULL AND did > ${after ?? ''} ORDER BY did LIMIT ${limit}`)

/** Returns which of the accounts are settled. */
export async function settledAmong(reader: Reader, dids: readonly Did[]): Promise<Set<Did>> {
  if (dids.length === 0) return new Set()
  const rows = await reader.all<{ did: Did }>(
    sql`SELECT did FROM host_rename_account WHERE settled_at IS NOT NULL AND did IN ${sqlList(dids)}`,
  )
  return new Set(rows.map(({ did }) => did))
}

/** Accounts by state, and those that kept their handle for a reason. */
export async function countOutcomes(
  reader: Reader,
): Promise<{ states: Partial<Record<RenameState, number>>; handleFaults: number }> {
  const rows = await reader.all<{ state: RenameState; count: number; faults: number }>(sql`
    SELECT state, count(*) AS count, count(handle_fault) AS faults FROM host_rename_account GROUP BY state`)
  return {
    states: Object.fromEntries(rows.map(({ state, count }) => [state, count])),
    handleFaults: rows.reduce((sum, { faults }) => sum + faults, 0),
  }
}

/** A page of the accounts for which there is something left to do, in order of their DIDs, after `after`. */
export const listOpen = (reader: Reader, after: Did | null, limit: number): Promise<RenamedAccount[]> =>
  reader.all(sql`
    SELECT did, state, detail, handle_fault AS "handleFault" FROM host_rename_account
    WHERE did > ${after ?? ''} AND (state IN ('by_holder', 'refused', 'failed') OR handle_fault IS NOT NULL)
    ORDER BY did LIMIT ${limit}`)

/**
 * Counts the accounts by the kind of their identity. `wallet` counts did:plc accounts that are known to have a wallet.
 */
export async function countIdentities(reader: Reader): Promise<{ plc: number; wallet: number; web: number }> {
  return (await reader.get<{ plc: number; wallet: number; web: number }>(sql`
    SELECT count(CASE WHEN did LIKE 'did:plc:%' THEN 1 END) AS plc,
      count(CASE WHEN did LIKE 'did:plc:%' AND EXISTS (SELECT 1 FROM known_wallet w WHERE w.did = account.did) THEN 1 END) AS wallet,
      count(CASE WHEN did NOT LIKE 'did:plc:%' THEN 1 END) AS web
    FROM account`))!
}

/** How many accounts have a handle under a domain. */
export async function countHandlesUnder(reader: Reader, domain: string): Promise<number> {
  const suffix = `.${domain}`
  const row = await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM account WHERE substr(handle, length(handle) - ${suffix.length - 1}) = ${suffix}`)
  return row!.count
}

/** Handles under one domain whose counterpart under another one belongs to another account. */
export async function conflictsBetween(reader: Reader, from: string, to: string, limit: number): Promise<Handle[]> {
  const [suffix, target] = [`.${from}`, `.${to}`]
  const counterpart = sql`substr(a.handle, 1, length(a.handle) - ${suffix.length}) || ${target}`
  const rows = await reader.all<{ handle: Handle }>(sql`
    SELECT a.handle AS handle FROM account a
    WHERE substr(a.handle, length(a.handle) - ${suffix.length - 1}) = ${suffix}
      AND (EXISTS (SELECT 1 FROM account b WHERE b.did <> a.did AND b.handle = ${counterpart})
        OR EXISTS (SELECT 1 FROM further_handle f WHERE f.did <> a.did AND f.handle = ${counterpart}))
    ORDER BY a.handle LIMIT ${limit}`)
  return rows.map(({ handle }) => handle)
}
