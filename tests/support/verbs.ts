/** What a test does to the tables of a server, and reads from them, where no client could. */
import {
  inPieces,
  sql,
  Sql,
  sqlAnd,
  sqlRows,
  type Database,
  type SqlValue,
} from '../../src/platform/database/database.ts'
import { cameBy, type Table, type Tables } from './tables.ts'

type Columns<Of extends Table> = Partial<Tables[Of]>
type Column<Of extends Table> = keyof Tables[Of] & string

/** The instants that `age` moves. */
const ages = {
  blob: ['unreferenced_at'],
  blob_removal: ['unowned_at', 'removed_at'],
} as const satisfies { readonly [Of in Table]?: readonly Column<Of>[] }

/** `where`: the values that all rows meant have. */
export interface Verbs {
  /** The rows, in the order in which they came where a column tells it. All columns of them, unless some are named. */
  rows<Of extends Table, Wanted extends Column<Of> = Column<Of>>(
    table: Of,
    where?: Columns<Of>,
    columns?: readonly Wanted[],
  ): Promise<Pick<Tables[Of], Wanted>[]>
  count<Of extends Table>(table: Of, where?: Columns<Of>): Promise<number>
  /** Adds rows that no request makes. All have the same columns. */
  plant<Of extends Table>(table: Of, rows: Columns<Of> | readonly Columns<Of>[]): Promise<void>
  /** Overwrites columns. */
  damage<Of extends Table>(table: Of, where: Columns<Of>, changes: Columns<Of>): Promise<void>
  /** Deletes the rows. */
  lose<Of extends Table>(table: Of, where?: Columns<Of>): Promise<void>
  /** Moves the instants of the rows, where they have any, to long ago. */
  age<Of extends keyof typeof ages>(table: Of, where?: Columns<Of>): Promise<void>
  /** Takes the whole table away. Returns what brings it back. */
  hide(table: Table): Promise<() => Promise<void>>
}

/** The verbs on the database that is open when they are called. */
export function verbsOn(db: () => Pick<Database, 'all' | 'run' | 'transaction'>): Verbs {
  const run = async (statement: Sql) => void (await db().run(statement))
  return {
    rows: (table, where, columns) =>
      db().all(
        sql`SELECT ${columns === undefined ? sql`*` : named(...columns)} FROM ${named(table)} WHERE ${matching(where)} ORDER BY ${named(cameBy[table] ?? '1')}`,
      ),
    async count(table, where) {
      const [row] = await db().all<{ n: number }>(
        sql`SELECT count(*) AS n FROM ${named(table)} WHERE ${matching(where)}`,
      )
      return row!.n
    },
    async plant(table, given) {
      const rows = [given].flat() as Record<string, SqlValue>[]
      const columns = Object.keys(rows[0]!)
      await db().transaction(async (tx) => {
        for (const piece of inPieces(rows.map((row) => columns.map((column) => row[column]!))))
          await tx.run(sql`INSERT INTO ${named(table)} (${named(...columns)}) VALUES ${sqlRows(piece)}`)
      })
    },
    damage: (table, where, changes) =>
      run(sql`UPDATE ${named(table)} SET ${changed(changes)} WHERE ${matching(where)}`),
    lose: (table, where) => run(sql`DELETE FROM ${named(table)} WHERE ${matching(where)}`),
    async age(table, where) {
      for (const column of ages[table])
        await run(
          sql`UPDATE ${named(table)} SET ${named(column)} = 1 WHERE ${named(column)} IS NOT NULL AND ${matching(where)}`,
        )
    },
    async hide(table) {
      const [here, away] = [named(table), named(`${table}_away`)]
      await run(sql`ALTER TABLE ${here} RENAME TO ${away}`)
      return () => run(sql`ALTER TABLE ${away} RENAME TO ${here}`)
    },
  }
}

/** Names cannot be parameters. All come from the code of tests. */
const named = (...names: readonly string[]): Sql => new Sql([names.join(', ')], [])

const pairs = (columns: object): [string, SqlValue][] => Object.entries(columns)

const matching = (where: object = {}): Sql =>
  sqlAnd(
    pairs(where).map(([column, value]) =>
      value === null ? sql`${named(column)} IS NULL` : sql`${named(column)} = ${value}`,
    ),
  )

const changed = (changes: object): Sql =>
  pairs(changes)
    .map(([column, value]) => sql`${named(column)} = ${value}`)
    .reduce((all, one) => sql`${all}, ${one}`)
