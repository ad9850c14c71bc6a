/** SQL of the `failed_request` table, in which the nodes of a cluster keep failed requests together. */
import {
  inPieces,
  sql,
  sqlAnd,
  sqlList,
  sqlRows,
  type Cluster,
  type Reader,
  type Sql,
} from '../../../platform/database/database.ts'
import { failures, type FailedRequest } from '../../../http/failure-memory.ts'

export type FailurePlace = Pick<FailedRequest, 'at' | 'id'>

export interface FailureFilter {
  /** The beginning of the id. */
  id: string | null
  /** Whether the server failed, or refused; null for both. */
  isFault: boolean | null
  before: FailurePlace | null
}

const failed = sql`status IN ${sqlList(failures)}`
const refused = sql`status NOT IN ${sqlList(failures)}`

/** Adds requests, and deletes all but the newest `size` faults and the newest `size` refusals. */
export async function saveFailures(
  cluster: Pick<Cluster, 'autocommit'>,
  requests: readonly FailedRequest[],
  size: number,
): Promise<void> {
  for (const piece of inPieces(requests))
    await cluster.autocommit(sql`
      INSERT INTO failed_request (id, at, method, route, status, error)
      VALUES ${sqlRows(piece.map(({ id, at, method, route, status, error }) => [id, at, method, route, status, error]))}
      ON CONFLICT (id) DO NOTHING`)
  for (const kind of [failed, refused])
    await cluster.autocommit(sql`
      DELETE FROM failed_request WHERE ${kind} AND (at, id) <=
        (SELECT at, id FROM failed_request WHERE ${kind} ORDER BY at DESC, id DESC LIMIT 1 OFFSET ${size})`)
}

/** Newest first. */
export function listSavedFailures(
  reader: Reader,
  { id, isFault, before }: FailureFilter,
  limit: number,
): Promise<FailedRequest[]> {
  const conditions: Sql[] = []
  if (id !== null) conditions.push(sql`id >= ${id} AND id < ${`${id}~`}`)
  if (isFault !== null) conditions.push(isFault ? failed : refused)
  if (before !== null) conditions.push(sql`(at, id) < (${before.at}, ${before.id})`)
  return reader.all<FailedRequest>(sql`
    SELECT id, at, method, route, status, error FROM failed_request
    WHERE ${sqlAnd(conditions)} ORDER BY at DESC, id DESC LIMIT ${limit}`)
}
