/** SQL of the tables `watched_identity` and `identity_round`. */
import type { DidPlace } from '../../../http/paged-list.ts'
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import type { ForeignChange } from '../../../protocol/plc-changes.ts'

/** How an identity does not fit its account. `ended`: it was tombstoned, or the directory does not know it. */
export type Misfit = 'ended' | 'server' | 'signing-key' | 'handle'

export interface WatchedIdentity {
  did: Did
  /** CID of the newest operation. */
  head: string
  misfit: Misfit | null
  /** The last change by operations that did not come from this server. */
  change: ForeignChange | null
}

interface Row extends Omit<WatchedIdentity, 'change'> {
  change: string | null
}

const columns = sql`did, head, misfit, change`
const identityOf = ({ change, ...row }: Row): WatchedIdentity => ({
  ...row,
  change: change === null ? null : (JSON.parse(change) as ForeignChange),
})

export async function watchedIdentity(reader: Reader, did: Did): Promise<WatchedIdentity | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM watched_identity WHERE did = ${did}`)
  return row && identityOf(row)
}

export const putIdentity = (writer: Writer, { did, head, misfit, change }: WatchedIdentity): Promise<number> =>
  writer.run(sql`
    INSERT INTO watched_identity (did, head, misfit, change, changed_at)
    VALUES (${did}, ${head}, ${misfit}, ${change === null ? null : JSON.stringify(change)}, ${change?.at ?? null})
    ON CONFLICT (did) DO UPDATE SET head = excluded.head, misfit = excluded.misfit, change = excluded.change,
      changed_at = excluded.changed_at`)

export const forgetIdentity = (writer: Writer, did: Did): Promise<number> =>
  writer.run(sql`DELETE FROM watched_identity WHERE did = ${did}`)

/** Identities that others have changed since an instant, the newest change first. */
export async function changesSince(
  reader: Reader,
  since: Millis,
  limit: number,
): Promise<(WatchedIdentity & { handle: Handle | null; change: ForeignChange })[]> {
  const rows = await reader.all<Row & { handle: Handle | null }>(sql`
    SELECT w.did, w.head, w.misfit, w.change, account.handle
    FROM watched_identity w JOIN account ON account.did = w.did
    WHERE w.changed_at > ${since} ORDER BY w.changed_at DESC, w.did LIMIT ${limit}`)
  return rows.map(({ handle, ...row }) => ({ ...identityOf(row), change: JSON.parse(row.change!), handle }))
}

/** Active accounts with a misfit, in order of their DIDs. */
export const misfits = (
  reader: Reader,
  limit: number,
): Promise<{ did: Did; handle: Handle | null; misfit: Misfit }[]> =>
  reader.all(sql`
    SELECT w.did, account.handle, w.misfit FROM watched_identity w JOIN account ON account.did = w.did
    WHERE w.misfit IS NOT NULL AND account.deactivated_at IS NULL AND account.takedown_ref IS NULL
    ORDER BY w.did LIMIT ${limit}`)

/** A round in which the identities of all accounts are looked at, in order of their `DidPlace`. */
export interface Round {
  beganAt: Millis
  /** Number of accounts when the round began. */
  accounts: number
  /** The account that was compared last. */
  after: DidPlace | null
  endedAt: Millis | null
}

const ROUND = 1

export async function currentRound(reader: Reader): Promise<Round | null> {
  const row = await reader.get<Omit<Round, 'after'> & { createdAt: Millis | null; did: Did | null }>(sql`
    SELECT began_at AS "beganAt", accounts, after_created_at AS "createdAt", after_did AS did, ended_at AS "endedAt"
    FROM identity_round WHERE id = ${ROUND}`)
  if (row === null) return null
  const { createdAt, did, ...round } = row
  return { ...round, after: createdAt === null || did === null ? null : { createdAt, did } }
}

export const putRound = (writer: Writer, { beganAt, accounts, after, endedAt }: Round): Promise<number> =>
  writer.run(sql`
    INSERT INTO identity_round (id, began_at, accounts, after_created_at, after_did, ended_at)
    VALUES (${ROUND}, ${beganAt}, ${accounts}, ${after?.createdAt ?? null}, ${after?.did ?? null}, ${endedAt})
    ON CONFLICT (id) DO UPDATE SET began_at = excluded.began_at, accounts = excluded.accounts,
      after_created_at = excluded.after_created_at, after_did = excluded.after_did, ended_at = excluded.ended_at`)

export const countAccounts = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM account`))!.count
