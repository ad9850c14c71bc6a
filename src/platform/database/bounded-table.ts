import { randomInt } from 'node:crypto'
import { sql, type Database, type Sql } from './database.ts'

/** Rows added between two checks of the table's size. */
const LOOK_EVERY = 100
/** Rows deleted in one statement, which blocks all other writes. */
const MAX_DELETED = 1000

export interface TableBounds {
  table: Sql
  key: Sql
  /** A column of text, whose length has an index. */
  document: Sql
  maxRows: number
  /** Of all documents together. */
  maxBytes: number
}

/**
 * Bounds a table that strangers can fill with documents that can be fetched again.
 *
 * Beyond `maxRows`, it deletes a run of rows that are neighbours in key order, at a random place: this needs no further
 * index, and an attacker cannot target a row. Beyond `maxBytes`, it deletes the largest documents, as many as were
 * added, so the sum shrinks, and those who publish large documents lose theirs.
 */
export class BoundedTable {
  #added = 0

  constructor(
    readonly db: Pick<Database, 'get' | 'run'>,
    readonly bounds: TableBounds,
  ) {}

  /** Call after each inserted or replaced row. */
  async grown(): Promise<void> {
    if (++this.#added < LOOK_EVERY) return
    this.#added = 0
    const { db } = this
    const { table, key, document, maxRows, maxBytes } = this.bounds
    const { count, bytes } = (await db.get<{ count: number; bytes: number }>(
      sql`SELECT count(*) AS count, CAST(coalesce(sum(OCTET_LENGTH(${document})), 0) AS BIGINT) AS bytes FROM ${table}`,
    ))!
    if (bytes > maxBytes)
      await db.run(
        sql`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY OCTET_LENGTH(${document}) DESC LIMIT ${LOOK_EVERY})`,
      )
    const surplus = Math.min(count - maxRows, MAX_DELETED)
    if (surplus <= 0) return
    const place = randomInt(count - surplus + 1)
    await db.run(
      sql`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${surplus} OFFSET ${place})`,
    )
  }
}
