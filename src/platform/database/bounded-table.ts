import { randomInt } from 'node:crypto'
import { sql, type Database, type Sql } from './database.ts'

/** Rows that may be added before the table is looked at. */
const LOOK_EVERY = 100
/** Rows of one deletion, while which nobody writes. */
const MAX_DELETED = 1000

/**
 * The bound of a table that strangers fill, with what can be had again. Those that go are neighbours in the order of the
 * key, at a random place: that takes no index of its own, and nobody can aim at a row of somebody else.
 */
export class BoundedTable {
  #added = 0

  constructor(
    readonly db: Pick<Database, 'get' | 'run'>,
    readonly table: Sql,
    readonly key: Sql,
    readonly maxRows: number,
  ) {}

  /** To be called after each row. */
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
