/** Rows that a process holds while it is at work on something outside the database. */
import { ALIVE_MILLIS, nowMillis, sql, type Database, type Sql } from './database.ts'

type Place = Pick<Database, 'cluster'>

/** What a process writes into the rows that it holds: its node, or NULL on SQLite. */
export const holderOf = ({ cluster }: Place): string | null => cluster?.node.id ?? null

/**
 * A condition for rows whose holder, named in `column`, has ended or missed its heartbeats. On SQLite, every earlier
 * process is dead; use the condition only at start.
 */
export const isHolderGone = ({ cluster }: Place, column: Sql): Sql =>
  cluster === null
    ? sql`1 = 1`
    : sql`NOT EXISTS (SELECT 1 FROM node WHERE node.id = ${column}
        AND node.heartbeat_at > ${nowMillis} - ${ALIVE_MILLIS})`
