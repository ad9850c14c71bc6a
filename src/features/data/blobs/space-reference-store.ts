/** The SQL of table `space_blob_reference`: which records in spaces refer to which blobs. */
import { inPieces, sql, sqlList, sqlRows, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Throttle } from '../../../base/pace.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { referenceBytes, type ReferenceRow } from './reference-store.ts'
import { listCids, skipping, type ListedCids } from './referenced-cids.ts'

/** Matches a row of `blob` to which a record in a space refers. */
export const isHeldBySpace = (): Sql =>
  sql`EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = blob.did AND s.cid = blob.cid)`

/** The same if spaces are enabled; otherwise false, without a look at their tables. */
export const isHeldIfOn = ({ spaces }: Config): Sql => (spaces.enabled ? isHeldBySpace() : sql`FALSE`)

/**
 * Matches a row of `blob` to which only records in spaces refer, unless moderators have taken it down or quarantined
 * it.
 */
export const isOfSpacesAlone = (): Sql =>
  sql`(unreferenced_at IS NOT NULL AND takedown_ref IS NULL AND ${isHeldBySpace()})`

/** Whether a record in a space refers to blobs; `record` is an expression for its path. */
export const isReferrer = (did: Did, space: SpaceUri, record: Sql): Sql =>
  sql`EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = ${did} AND s.space = ${space} AND s.record = ${record})`

/** How many references records in a space have; `max` if there are more. */
export const countUpTo = (max: number, did: Did, space: SpaceUri, records: readonly string[]): Sql =>
  sql`(SELECT COUNT(*) FROM (SELECT 1 AS one FROM space_blob_reference s
    WHERE s.did = ${did} AND s.space = ${space} AND s.record IN ${sqlList(records)} LIMIT ${max}) AS counted)`

/** Bytes of references written before requests that read get a turn: with long names, these take 10 ms. */
const BYTES_PER_TURN = 256 * 1024

export async function insertSpaceReferences(
  tx: Tx,
  { did, space, rev }: { did: Did; space: SpaceUri; rev: Tid },
  references: readonly ReferenceRow[],
): Promise<void> {
  let bytes = 0
  for (const piece of inPieces(references)) {
    if (bytes >= BYTES_PER_TURN) {
      await tx.turn()
      bytes = 0
    }
    bytes += referenceBytes(piece, did + space)
    const rows = piece.map(({ cid, record }) => [did, cid, space, record, rev])
    await tx.run(sql`
      INSERT INTO space_blob_reference (did, cid, space, record, rev) VALUES ${sqlRows(rows)}
      ON CONFLICT (did, cid, space, record) DO NOTHING`)
  }
}

/** Replace the references of some records. */
export async function replaceSpaceReferences(
  tx: Tx,
  { did, space }: { did: Did; space: SpaceUri },
  records: readonly string[],
  references: readonly SpaceReferenceRow[],
): Promise<void> {
  for (const piece of inPieces(records)) await deleteSpaceReferences(tx, did, space, piece, Infinity)
  for (const [rev, some] of Map.groupBy(references, (one) => one.rev))
    await insertSpaceReferences(tx, { did, space, rev }, some)
}

/** Delete the references of the records, which have at most `atMost`. Returns the deleted references. */
export async function deleteSpaceReferences(
  tx: Tx,
  did: Did,
  space: SpaceUri,
  records: readonly string[],
  atMost: number,
): Promise<ReferenceRow[]> {
  if (records.length === 0) return []
  const ordered = records.toSorted()
  const longest = records.reduce((most, record) => (record.length > most.length ? record : most))
  const rows = Math.ceil(BYTES_PER_TURN / referenceBytes([{ record: longest, cid: '' }], did + space))
  const deleted: ReferenceRow[] = []
  // Piece by piece, in the order of their paths: with a list of all keys, PostgreSQL would go through the list for each
  // row.
  for (let left = ordered; ;) {
    const isOwn = sql`did = ${did} AND space = ${space} AND record IN ${sqlList(left)}`
    const last =
      atMost - deleted.length <= rows
        ? null
        : await tx.get<ReferenceRow>(sql`
            SELECT record, cid FROM space_blob_reference WHERE ${isOwn}
            ORDER BY record, cid LIMIT 1 OFFSET ${rows - 1}`)
    const upTo = last === null ? sql`1 = 1` : sql`(record, cid) <= (${last.record}, ${last.cid})`
    const piece = sql`DELETE FROM space_blob_reference WHERE ${isOwn} AND ${upTo} RETURNING record, cid`
    deleted.push(...(await tx.all<ReferenceRow>(piece)))
    if (last === null) return deleted
    left = left.slice(left.indexOf(last.record))
    await tx.turn()
  }
}

export interface SpaceReferenceRow extends ReferenceRow {
  /** Revision of the record that has the reference. */
  rev: Tid
}

/** The references of the records. */
export async function listSpaceReferences(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  records: readonly string[],
): Promise<SpaceReferenceRow[]> {
  if (records.length === 0) return []
  return reader.all(sql`
    SELECT record, cid, rev FROM space_blob_reference
    WHERE did = ${did} AND space = ${space} AND record IN ${sqlList(records)}`)
}

/** Blobs or spaces that one statement looks at. */
const PAGE_SEEN = 200
/** References counted in one turn of the event loop: with long names, these take 5 ms. */
const COUNTED_ROWS = 2000

/** How many references records of an account in a space have. `throttled` runs the pieces, here and below. */
export async function countSpaceReferences(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  throttled: Throttle,
): Promise<number> {
  let after: ReferenceRow = { record: '', cid: '' }
  for (let counted = 0; ; counted += COUNTED_ROWS) {
    const rest = sql`did = ${did} AND space = ${space} AND (record, cid) > (${after.record}, ${after.cid})`
    const last = await throttled(() =>
      reader.get<ReferenceRow>(sql`
        SELECT record, cid FROM space_blob_reference WHERE ${rest}
        ORDER BY record, cid LIMIT 1 OFFSET ${COUNTED_ROWS - 1}`),
    )
    if (last === null) {
      const counting = sql`SELECT count(*) AS count FROM space_blob_reference WHERE ${rest}`
      return counted + (await throttled(() => reader.get<{ count: number }>(counting)))!.count
    }
    after = last
  }
}

/**
 * A page of CIDs to which records of the account in spaces refer and whose blobs the account does not have, ascending.
 */
export async function listMissingInSpaces(
  reader: Reader,
  did: Did,
  after: string,
  limit: number,
): Promise<{ cid: string }[]> {
  return reader.all(sql`
    SELECT DISTINCT cid FROM space_blob_reference s WHERE s.did = ${did} AND s.cid > ${after}
      AND NOT EXISTS (SELECT 1 FROM blob b WHERE b.did = s.did AND b.cid = s.cid) ORDER BY cid LIMIT ${limit}`)
}

/** How many blobs an account lacks to which its records in a space refer. */
export async function countMissingInSpace(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  throttled: Throttle,
): Promise<number> {
  const isOwn = sql`did = ${did} AND space = ${space}`
  let missing = 0
  for (let after = ''; ;) {
    const seen = await throttled(() =>
      reader.all<{ cid: string; owned: number }>(sql`
        ${skipping({ table: sql`space_blob_reference`, isOwn }, after, PAGE_SEEN)}
        SELECT cid, CASE WHEN EXISTS (SELECT 1 FROM blob b WHERE b.did = ${did} AND b.cid = seen.cid) THEN 1 ELSE 0 END AS owned
        FROM seen WHERE cid IS NOT NULL ORDER BY place`),
    )
    missing += seen.filter(({ owned }) => owned === 0).length
    if (seen.length < PAGE_SEEN) return missing
    after = seen.at(-1)!.cid
  }
}

/**
 * The number of references of records in spaces in which, according to all other rows, the account has no repository.
 */
export async function countSpaceReferencesOutside(reader: Reader, did: Did, throttled: Throttle): Promise<number> {
  const next = (after: Sql) =>
    sql`(SELECT MIN(space) FROM space_blob_reference WHERE did = ${did} AND space > ${after})`
  const hasRepo = (table: Sql) => sql`EXISTS (SELECT 1 FROM ${table} r WHERE r.did = ${did} AND r.space = seen.space)`
  let outside = 0
  for (let last = ''; ;) {
    const seen = await throttled(() =>
      reader.all<{ space: SpaceUri; known: number }>(sql`
        WITH RECURSIVE seen (place, space) AS (
          SELECT 1, ${next(sql`${last}`)}
          UNION ALL SELECT place + 1, ${next(sql`seen.space`)} FROM seen WHERE space IS NOT NULL AND place < ${PAGE_SEEN})
        SELECT space, CASE WHEN ${hasRepo(sql`space_repo`)} OR ${hasRepo(sql`space_place`)} THEN 1 ELSE 0 END AS known
        FROM seen WHERE space IS NOT NULL ORDER BY place`),
    )
    for (const { space, known } of seen)
      if (known === 0) outside += await countSpaceReferences(reader, did, space, throttled)
    if (seen.length < PAGE_SEEN) return outside
    last = seen.at(-1)!.space
  }
}

/** Rows deleted before requests that read get a turn. */
const ROWS_PER_TURN = 5000

/** Deletes all references of an account that is deleted with its blobs. */
export async function deleteAllSpaceReferences(tx: Tx, did: Did): Promise<void> {
  const some = sql`(SELECT cid, space, record FROM space_blob_reference WHERE did = ${did} LIMIT ${ROWS_PER_TURN})`
  const deleteSome = sql`DELETE FROM space_blob_reference WHERE did = ${did} AND (cid, space, record) IN ${some}`
  while ((await tx.run(deleteSome)) === ROWS_PER_TURN) await tx.turn()
}

/** Whether a record of the account refers to the blob: in this space, or in any space if `space` is null. */
export async function isReferredInSpace(
  reader: Reader,
  did: Did,
  cid: string,
  space: SpaceUri | null,
): Promise<boolean> {
  const within = space === null ? sql`1 = 1` : sql`space = ${space}`
  const row = await reader.get(
    sql`SELECT 1 FROM space_blob_reference WHERE did = ${did} AND cid = ${cid} AND ${within} LIMIT 1`,
  )
  return row !== null
}

/** A page of CIDs that the account's records in a space refer to, ascending: see `listCids`. */
export const listSpaceBlobs = (
  reader: Reader,
  { did, space, ...listed }: ListedCids & { did: Did; space: SpaceUri },
): Promise<{ cids: string[]; next: string | null }> =>
  listCids(reader, { table: sql`space_blob_reference`, isOwn: sql`did = ${did} AND space = ${space}` }, listed)
