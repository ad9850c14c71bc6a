/** The SQL of repairs: it reads and writes rows as they are, whatever is wrong with them. */
import { sqlName, sqlNames, tablesOf, type TableShape } from '../../../platform/database/catalog.ts'
import {
  inBoundedPages,
  sql,
  sqlList,
  sqlRows,
  totalBytes,
  type Database,
  type Reader,
  type Sql,
  type SqlValue,
  type Tx,
} from '../../../platform/database/database.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { rawParts } from '../../data/repo/repo.ts'
import { parseNsid, parseRecordKey, type Did, type Tid } from '../../../protocol/identifiers.ts'
import { completedFrame, type EventType, type FramePieces } from '../../../protocol/frames.ts'

export interface RawRepo {
  id: number
  rev: Tid
  head: Uint8Array
  data: Uint8Array
  commitBlock: Uint8Array
  fresh: Uint8Array
}

export const rawRepo = (reader: Reader, did: Did): Promise<RawRepo | null> =>
  reader.get(sql`SELECT id, rev, head, data, commit_block AS "commitBlock", fresh FROM repo WHERE did = ${did}`)

/** Returns the lowest number above `after` that has rows of a repository, but no repository. */
export async function nextOrphan(reader: Reader, after: number): Promise<number | null> {
  const next = (table: Sql, from: Sql) => sql`(SELECT min(repo_id) FROM ${table} WHERE repo_id > ${from})`
  const found: number[] = []
  for (const table of [sql`record`, sql`repo_node`]) {
    const row = await reader.get<{ id: number | null }>(sql`
      WITH RECURSIVE step (id) AS (
        SELECT ${next(table, sql`${after}`)} UNION ALL SELECT ${next(table, sql`step.id`)} FROM step WHERE step.id IS NOT NULL
      ) SELECT id FROM step WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM repo) ORDER BY id LIMIT 1`)
    if (row?.id != null) found.push(row.id)
  }
  return found.length === 0 ? null : Math.min(...found)
}

/** Whether a record may have this path. */
export function isPath(path: string): boolean {
  const [collection = '', ...key] = path.split('/')
  return parseNsid(collection) !== null && parseRecordKey(key.join('/')) !== null
}

export interface RawRecord {
  path: string
  cid: Uint8Array
  rev: Tid
  indexedAt: number
  takedownRef: string | null
  value: Uint8Array
}

/** A page has at most this many rows, and this many bytes unless a single row is larger. */
export const maxPage = { rows: 200, bytes: 4 * 1024 ** 2 }

/** The records of a repository, in pages. */
export const rawRecords = (reader: Reader, repoId: number): AsyncGenerator<RawRecord[]> => {
  const page = ({ path }: Pick<RawRecord, 'path'>, limit: number) =>
    sql`FROM record WHERE repo_id = ${repoId} AND path > ${path} ORDER BY path LIMIT ${limit}`
  return inBoundedPages<Pick<RawRecord, 'path'>, RawRecord>(
    maxPage,
    { path: '' },
    {
      bytes: (after, limit) => totalBytes(reader, sql`SELECT ${rawParts.recordBytes} AS bytes ${page(after, limit)}`),
      read: (after, limit) =>
        reader.all(sql`
        SELECT path, cid, rev, indexed_at AS "indexedAt", takedown_ref AS "takedownRef", ${rawParts.recordValue} AS value
        ${page(after, limit)}`),
    },
  )
}

/** The nodes of a repository's tree, in pages. */
export const rawNodes = (reader: Reader, repoId: number): AsyncGenerator<{ cid: Uint8Array; bytes: Uint8Array }[]> => {
  const page = ({ cid }: { cid: Uint8Array }, limit: number) =>
    sql`FROM repo_node WHERE repo_id = ${repoId} AND cid > ${cid} ORDER BY cid LIMIT ${limit}`
  return inBoundedPages<{ cid: Uint8Array }, { cid: Uint8Array; bytes: Uint8Array }>(
    maxPage,
    { cid: new Uint8Array() },
    {
      bytes: (after, limit) => totalBytes(reader, sql`SELECT length(bytes) AS bytes ${page(after, limit)}`),
      read: (after, limit) => reader.all(sql`SELECT cid, bytes ${page(after, limit)}`),
    },
  )
}

/** Stands for the number of an event that has none yet. Numbers start at 1. */
export const NO_NUMBER = 0

export interface RawEvent {
  /** `NO_NUMBER` if the event has none yet. */
  seq: number
  did: Did
  type: EventType
  sequencedAt: number
  frame: Uint8Array
}

/**
 * Yields the events of a repository in order, in pages: those of the log and then, on PostgreSQL, those without a
 * number. Reads the whole log once, because the list of events by account may be damaged too.
 */
export async function* rawEvents(reader: Reader, did: Did): AsyncGenerator<RawEvent[]> {
  const listed = await reader.all<{ seq: number; bytes: number }>(
    sql`SELECT seq, length(frame) AS bytes FROM repo_seq WHERE did = ${did} ORDER BY seq`,
  )
  for (const page of boundedPages(listed, ({ bytes }) => bytes))
    yield await reader.all(sql`
      SELECT seq, did, event_type AS type, sequenced_at AS "sequencedAt", frame FROM repo_seq
      WHERE seq IN ${sqlList(page.map(({ seq }) => seq))} ORDER BY seq`)
  for await (const page of rawPending(reader, did))
    yield page.map(({ type, writtenAt, ...pieces }) => ({
      seq: NO_NUMBER,
      did,
      type,
      sequencedAt: writtenAt,
      frame: completedFrame(pieces, NO_NUMBER, writtenAt),
    }))
}

interface RawPending extends FramePieces {
  id: number
  type: EventType
  writtenAt: number
}

function rawPending(reader: Reader, did: Did): AsyncGenerator<RawPending[]> {
  const page = ({ id }: { id: number }, limit: number) =>
    sql`FROM unnumbered_event WHERE did = ${did} AND id > ${id} ORDER BY id LIMIT ${limit}`
  return inBoundedPages<{ id: number }, RawPending>(
    maxPage,
    { id: 0 },
    {
      bytes: (after, limit) => totalBytes(reader, sql`SELECT length(rest) AS bytes ${page(after, limit)}`),
      read: (after, limit) =>
        reader.all(
          sql`SELECT id, event_type AS type, written_at AS "writtenAt", head, middle, rest ${page(after, limit)}`,
        ),
    },
  )
}

/** Split rows into pages. The rows were read, or their sizes are known. */
export function* boundedPages<Row>(rows: Iterable<Row>, bytesOf: (row: Row) => number): Generator<Row[]> {
  let page: Row[] = []
  let bytes = 0
  for (const row of rows) {
    const more = bytesOf(row)
    if (page.length === maxPage.rows || (page.length > 0 && bytes + more > maxPage.bytes)) {
      yield page
      page = []
      bytes = 0
    }
    page.push(row)
    bytes += more
  }
  if (page.length > 0) yield page
}

export const deleteEvents = (tx: Tx, did: Did, seqs: readonly number[]): Promise<number> =>
  tx.run(sql`DELETE FROM repo_seq WHERE did = ${did} AND seq IN ${sqlList(seqs)}`)

// Evidence

/** Tables that a repair changes, and the column by which their rows belong to the account or its repository. */
export const changedTables = {
  repo: 'id',
  repo_node: 'repo_id',
  record: 'repo_id',
  large_record: 'repo_id',
  blob: 'did',
  blob_reference: 'did',
  repo_seq: 'seq',
} as const

/** Tables that a repair in spaces changes. */
export const spaceTables = ['space_repo', 'space_place', 'space_record', 'space_op', 'space_blob_reference'] as const

export type SpaceTable = (typeof spaceTables)[number]
export type ChangedTable = keyof typeof changedTables
export type RawRow = Record<string, SqlValue>

export async function shapesOf<Name extends string>(
  db: Pick<Database, 'all' | 'dialect'>,
  names: readonly Name[],
): Promise<Map<Name, TableShape>> {
  const shapes = await tablesOf(db)
  return new Map(names.map((name) => [name, shapes.get(name)!]))
}

export const changedShapes = (db: Pick<Database, 'all' | 'dialect'>): Promise<Map<ChangedTable, TableShape>> =>
  shapesOf(db, Object.keys(changedTables) as ChangedTable[])

/** Matches the rows of a table that belong to the account or its repository. */
export const isOwnedBy = (name: ChangedTable, owner: number | string): Sql =>
  sql`${sqlName(changedTables[name])} = ${owner}`

/** Yields all rows of a table that `isOwn` matches, as they are, in pages. */
export function rowsOf(reader: Reader, { name, columns, key, wide }: TableShape, isOwn: Sql): AsyncGenerator<RawRow[]> {
  const page = (last: RawRow | null, limit: number): Sql => {
    const after = last === null ? sql`1 = 1` : sql`(${sqlNames(key)}) > ${sqlRows([key.map((each) => last[each]!)])}`
    return sql`FROM ${sqlName(name)} WHERE ${isOwn} AND ${after} ORDER BY ${sqlNames(key)} LIMIT ${limit}`
  }
  const bytes = wide
    .map((column) => sql`COALESCE(octet_length(${sqlName(column)}), 0)`)
    .reduce((sum, length) => sql`${sum} + ${length}`, sql`0`)
  return inBoundedPages<RawRow | null, RawRow>(maxPage, null, {
    bytes: (after, limit) => totalBytes(reader, sql`SELECT ${bytes} AS bytes ${page(after, limit)}`),
    read: (after, limit) => reader.all(sql`SELECT ${sqlNames(columns)} ${page(after, limit)}`),
  })
}

/** Put rows back. They replace rows with the same keys, which keep their values of the columns `kept`. */
export async function putRows(
  tx: Tx,
  { name, columns, key }: TableShape,
  rows: readonly RawRow[],
  kept: readonly string[] = [],
): Promise<void> {
  if (rows.length === 0) return
  const unchanged = new Set([...key, ...kept])
  const others = columns.filter((column) => !unchanged.has(column))
  const changes = others
    .map((column) => sql`${sqlName(column)} = excluded.${sqlName(column)}`)
    .reduce((all, one) => sql`${all}, ${one}`)
  await tx.run(sql`
    INSERT INTO ${sqlName(name)} (${sqlNames(columns)}) VALUES ${sqlRows(rows.map((row) => columns.map((column) => row[column] ?? null)))}
    ON CONFLICT (${sqlNames(key)}) DO UPDATE SET ${changes}`)
}

export const deleteReferencesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM blob_reference WHERE did = ${did}`)

/** Take down those records of the second repository that are taken down in the first. */
export async function keepTakedowns(tx: Tx, { from, to }: { from: number; to: number }): Promise<void> {
  const there = (isDown: Sql) =>
    sql`path IN (SELECT path FROM record WHERE repo_id = ${from} AND takedown_ref ${isDown})`
  await tx.run(
    sql`UPDATE record SET takedown_ref = NULL WHERE repo_id = ${to} AND takedown_ref >= '' AND ${there(sql`IS NULL`)}`,
  )
  await rawParts.copyTakedowns(tx, { from, to })
}

/** Give the account the repository of this number, with its former row but another head. */
export async function putHead(tx: Tx, did: Did, id: number, row: RawRow): Promise<void> {
  await tx.run(sql`UPDATE repo SET did = NULL WHERE did = ${did}`)
  const changes = Object.entries(row)
    .filter(([column]) => column !== 'id' && column !== 'did' && column !== 'staged_until')
    .map(([column, value]) => sql`${sqlName(column)} = ${value}`)
    .reduce((all, one) => sql`${all}, ${one}`)
  const changed = await tx.run(
    sql`UPDATE repo SET did = ${did}, staged_until = NULL, ${changes} WHERE id = ${id} AND staged_until IS NOT NULL`,
  )
  if (changed !== 1) throw new OperatorError('bringing the rows back took too long: repeat it')
}
