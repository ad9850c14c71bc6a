import { randomInt } from 'node:crypto'
import { sql, type Database, type Sql } from './database.ts'

/** Rows added between two counts of the table. */
const LOOK_EVERY = 100
/** Rows deleted in one statement, which blocks all other writes. */
const MAX_DELETED = 1000

/**
 * Bounds a table that strangers can fill with data that can be fetched again. It deletes a run of rows that are
 * neighbours in key order, at a random place: no further index is needed, and nobody can aim at somebody else's row.
 */
export class BoundedTable {
  #added = 0

  constructor(
    readonly db: Pick<Database, 'get' | 'run'>,
    readonly table: Sql,
    readonly key: Sql,
    readonly maxRows: number,
  ) {}

  /** Call after each inserted row. */
  async grown(): Promise<void> {
    if (++this.#added < LOOK_EVERY) return
    this.#added = 0
    const { db, table, key, maxRows } = this
    const { count } = (await db.get<{ count: number }>(sql`SELECT count(*) AS count FROM ${table}`))!
    const surplus = Math.min(count - maxRows, MAX_DELETED)
    if (surplus <= 0) return
    const place = randomInt(count - surplus + 1)
    await db.run(sql`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${surplus} OFFSET ${place})`)
  }
}
