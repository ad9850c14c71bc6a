/** The SQL of repairs in spaces: rows as they are, whatever is wrong with them. */
import { sql, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { sqlName } from '../../../platform/database/catalog.ts'
import type { SpaceTable } from './row-store.ts'

/** Matches the rows of a table that belong to a repository. */
export function isOfSpace(table: SpaceTable, did: Did, { id, space }: { id: number; space: SpaceUri }): Sql {
  switch (table) {
    case 'space_repo':
    case 'space_place':
      return sql`(id = ${id} OR (did = ${did} AND space = ${space}))`
    case 'space_record':
    case 'space_op':
      return sql`space_repo_id = ${id}`
    case 'space_blob_reference':
      return sql`did = ${did} AND space = ${space}`
  }
}

export const deleteSpaceRows = (
  tx: Tx,
  table: SpaceTable,
  did: Did,
  space: { id: number; space: SpaceUri },
): Promise<number> => tx.run(sql`DELETE FROM ${sqlName(table)} WHERE ${isOfSpace(table, did, space)}`)

/** A row that says where a repository belongs. Each repository has two of them, so that one can be lost. */
export interface SpaceTrace {
  did: Did | null
  space: SpaceUri
}

export interface RepoTrace extends SpaceTrace {
  authority: string
  type: string
}

export const repoTrace = (reader: Reader, id: number): Promise<RepoTrace | null> =>
  reader.get(sql`SELECT did, space, authority, type FROM space_repo WHERE id = ${id}`)

export const placeTrace = (reader: Reader, id: number): Promise<SpaceTrace | null> =>
  reader.get(sql`SELECT did, space FROM space_place WHERE id = ${id}`)

/** Whether records or changes are stored under the number of a repository. */
export const hasSpaceRows = async (reader: Reader, id: number): Promise<boolean> =>
  (await reader.get(sql`
    SELECT 1 AS one FROM space_record WHERE space_repo_id = ${id}
    UNION ALL SELECT 1 FROM space_op WHERE space_repo_id = ${id} LIMIT 1`)) !== null

/** The revision of an account's repository in a space; null if it has none. */
export async function spaceRev(reader: Reader, did: Did, space: SpaceUri): Promise<Tid | null> {
  const row = await reader.get<{ rev: Tid }>(sql`SELECT rev FROM space_repo WHERE did = ${did} AND space = ${space}`)
  return row && row.rev
}

/** All references of an account's records in a space to blobs. */
export const spaceReferences = (
  reader: Reader,
  did: Did,
  space: SpaceUri,
): Promise<{ record: string; cid: string; rev: string }[]> =>
  reader.all(sql`SELECT record, cid, rev FROM space_blob_reference WHERE did = ${did} AND space = ${space}`)

/** The number of an account's repository in a space and its revision, in another database; null if it has none. */
export const spaceInBackup = (reader: Reader, did: Did, space: SpaceUri): Promise<{ id: number; rev: Tid } | null> =>
  reader.get(sql`SELECT id, rev FROM space_repo WHERE did = ${did} AND space = ${space}`)

export const spacesInBackup = (reader: Reader, did: Did): Promise<{ id: number; space: SpaceUri }[]> =>
  reader.all(sql`SELECT id, space FROM space_repo WHERE did = ${did} ORDER BY space`)

/** Spaces in which records of an account refer to blobs. */
export async function spacesWithReferences(reader: Reader, did: Did): Promise<SpaceUri[]> {
  const rows = await reader.all<{ space: SpaceUri }>(
    sql`SELECT DISTINCT space FROM space_blob_reference WHERE did = ${did}`,
  )
  return rows.map(({ space }) => space)
}
