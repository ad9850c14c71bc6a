/**
 * What the simulated PostgreSQL stores: committed rows in a SQLite database in memory, and the rows that each open
 * transaction has changed, which nobody else sees.
 *
 * One connection shows one state at a time: the committed one, or the one that a transaction sees. To show another, the
 * changes of the transaction before are taken out, row by row, and kept. Triggers note which rows and which values of
 * unique indexes a statement touches; these are the row locks of PostgreSQL.
 *
 * Everything happens inside one outer transaction, which is rolled back at the end of a world: the next one begins with
 * the same state and with prepared statements.
 */
import { Database, type SQLQueryBindings, type Statement } from 'bun:sqlite'

type Row = Record<string, unknown>

interface Table {
  name: string
  columns: string[]
  key: string[]
  /** Statements of images. */
  select: string
  delete: string
  insert: string
}

/** A row as a transaction has left it; null if it has deleted it. */
interface Image {
  name: string
  table: Table
  key: SQLQueryBindings[]
  values: SQLQueryBindings[] | null
}

/** A row that a transaction has touched. */
interface Touched {
  table: Table
  key: SQLQueryBindings[]
}

/** The changes of a transaction. */
export class Changes {
  /** Rows that it has changed, by the names of their locks. */
  readonly touched = new Map<string, Touched>()
  /** The same rows, as of the last time that its state was taken out. */
  images: readonly Image[] = []
  /** The same, as of its savepoint. */
  saved: readonly Image[] | null = null
  hasChanged = false
}

/** Tables whose changes somebody looks at. */
const watched: ReadonlySet<string> = new Set(['repo', 'repo_seq', 'unnumbered_event', 'blob'])

/** What a statement has touched. */
export interface Touches {
  rows: readonly Touch[]
  /** Their names as locks. */
  locks: readonly string[]
  /** How many rows it has changed, without those of triggers. */
  changes: number
}

export const noTouches: Touches = { rows: [], locks: [], changes: 0 }

/** A row that a commit has changed, for those who look on. */
export interface Changed {
  table: string
  key: unknown[]
  row: Row | null
}

/**
 * A row of `sim_touched`, after the number of rows that the statement before has changed, without those of triggers.
 * Its own number, the place of the table, and the key.
 */
type Touch = readonly [changes: number, at: number, place: number, ...key: SQLQueryBindings[]]

const KEYS = ['k1', 'k2', 'k3', 'k4'] as const
/** Added to the place of a unique index, which tells it from a table. */
const INDEXES = 10_000
const TOUCHED = 'SELECT changes(), * FROM sim_touched WHERE at > ?1'
const quoted = (name: string) => `"${name}"`

/** Adds the triggers to a migrated database. */
export function observe(db: Database): void {
  db.run('CREATE TABLE sim_touched (at INTEGER PRIMARY KEY, t INTEGER NOT NULL, k1, k2, k3, k4)')
  const tables = tablesOf(db)
  tables.forEach(({ name, key }, t) => {
    const note = (row: string, at: number, columns: readonly string[]) =>
      `INSERT INTO sim_touched (t, ${KEYS.slice(0, columns.length).join(', ')}) VALUES (${[at, ...columns.map((column) => `${row}.${quoted(column)}`)].join(', ')});`
    const uniques = uniqueIndexesOf(db, name).filter((columns) => columns.length <= 4 && columns.join() !== key.join())
    const notes = (row: string) =>
      [note(row, t, key), ...uniques.map((columns, i) => note(row, INDEXES * (i + 1) + t, columns))].join(' ')
    const changed = uniques.map((columns, i) => {
      const differs = columns.map((column) => `OLD.${quoted(column)} IS NOT NEW.${quoted(column)}`).join(' OR ')
      return note('NEW', INDEXES * (i + 1) + t, columns).replace(/VALUES \((.*)\);$/, `SELECT $1 WHERE ${differs};`)
    })
    db.run(`CREATE TRIGGER "sim_insert_${name}" AFTER INSERT ON ${quoted(name)} BEGIN ${notes('NEW')} END`)
    db.run(`CREATE TRIGGER "sim_delete_${name}" AFTER DELETE ON ${quoted(name)} BEGIN ${notes('OLD')} END`)
    db.run(
      `CREATE TRIGGER "sim_update_${name}" AFTER UPDATE ON ${quoted(name)} BEGIN ${note('OLD', t, key)} ${changed.join(' ')} END`,
    )
    const moves = key.map((column) => `OLD.${quoted(column)} IS NOT NEW.${quoted(column)}`).join(' OR ')
    db.run(
      `CREATE TRIGGER "sim_move_${name}" AFTER UPDATE ON ${quoted(name)} WHEN ${moves} BEGIN ${note('NEW', t, key)} END`,
    )
  })
}

function tablesOf(db: Database): Pick<Table, 'name' | 'columns' | 'key'>[] {
  const rows = db
    .query<{ name: string; column: string; pk: number }, []>(
      `SELECT t.name AS name, c.name AS "column", c.pk AS pk FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE 'sim%' ORDER BY t.name, c.cid`,
    )
    .all()
  return [...Map.groupBy(rows, ({ name }) => name)].map(([name, columns]) => {
    const key = columns
      .filter(({ pk }) => pk > 0)
      .toSorted((a, b) => a.pk - b.pk)
      .map(({ column }) => column)
    const all = columns.map(({ column }) => column)
    if (key.length > 4) throw new Error(`${name} has a key of more than four columns`)
    return key.length > 0 ? { name, columns: all, key } : { name, columns: ['rowid', ...all], key: ['rowid'] }
  })
}

function withStatements(table: Pick<Table, 'name' | 'columns' | 'key'>): Table {
  const where = table.key.map((column) => `${quoted(column)} IS ?`).join(' AND ')
  const columns = table.columns.map(quoted).join(', ')
  return {
    ...table,
    select: `SELECT ${columns} FROM ${quoted(table.name)} WHERE ${where}`,
    delete: `DELETE FROM ${quoted(table.name)} WHERE ${where}`,
    insert: `INSERT INTO ${quoted(table.name)} (${columns}) VALUES (${table.columns.map(() => '?').join(', ')})`,
  }
}

const uniqueIndexesOf = (db: Database, table: string): string[][] =>
  db
    .query<{ name: string }, [string]>(`SELECT name FROM pragma_index_list(?) WHERE "unique" = 1`)
    .all(table)
    .map(({ name }) =>
      db
        .query<{ name: string | null }, [string]>('SELECT name FROM pragma_index_info(?)')
        .all(name)
        .map((column) => column.name),
    )
    .filter((columns): columns is string[] => columns.every((column) => column !== null))

export class Storage {
  readonly #statements = new Map<string, Statement>()
  readonly #tables: Table[]
  /** Whose state the connection shows; null: the committed one. */
  #shown: Changes | null = null
  /** Touches up to this one are known. */
  #touched = 0

  constructor(
    readonly db: Database,
    /** What this one is a copy of. */
    readonly source: Storage | null = null,
  ) {
    this.#tables = source === null ? tablesOf(db).map(withStatements) : source.#tables
  }

  /** The place of a table, which the names of its locks begin with. */
  placeOf(table: string): number {
    return this.#tables.findIndex(({ name }) => name === table)
  }

  prepared(text: string): Statement {
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    // SQLite prepares a statement again whenever another value is bound to a bare parameter of some conditions.
    const statement = this.db.prepare(text.replace(/\?(?=\d)/g, '+?'))
    this.#statements.set(text, statement)
    return statement
  }

  command(text: string): void {
    this.prepared(text).run()
  }

  all(text: string, values: readonly SQLQueryBindings[] = []): Row[] {
    return this.prepared(text).all(...values) as Row[]
  }

  /** Returns how many rows have changed. */
  run(text: string, values: readonly SQLQueryBindings[] = []): number {
    return this.prepared(text).run(...values).changes
  }

  begin(): void {
    this.command('BEGIN')
  }

  /** Forget everything since `begin`, or keep it for the worlds to come. */
  end({ keeps = false } = {}): void {
    this.show(null)
    this.command(keeps ? 'COMMIT' : 'ROLLBACK')
    this.#touched = 0
  }

  /** Show what a transaction sees, or what is committed. */
  show(changes: Changes | null): void {
    if (this.#shown === changes) return
    if (this.#shown !== null) {
      if (this.#shown.hasChanged) this.#shown.images = this.#taken(this.#shown)
      this.#hide()
    }
    if (changes === null) return
    this.command('SAVEPOINT shown')
    this.#shown = changes
    const isPut = changes.hasChanged || changes.saved !== null
    if (changes.saved !== null) this.#put(changes.saved)
    if (changes.hasChanged) this.#put(changes.images)
    this.#touched = isPut ? this.#lastTouch() : 0
  }

  #hide(): void {
    this.command('ROLLBACK TO shown')
    this.command('RELEASE shown')
    this.#shown = null
  }

  #lastTouch(): number {
    return (this.prepared('SELECT coalesce(max(at), 0) AS last FROM sim_touched').get() as { last: number }).last
  }

  #put(images: readonly Image[]): void {
    for (const { table, key } of images) this.prepared(table.delete).run(...key)
    for (const { table, values } of images) if (values !== null) this.prepared(table.insert).run(...values)
  }

  /** The rows that the transaction has changed whose state is shown. */
  #taken({ touched }: Changes): Image[] {
    return Array.from(touched, ([name, { table, key }]) => {
      const row = this.#row(table, key)
      return { name, table, key, values: row && table.columns.map((column) => row[column] as SQLQueryBindings) }
    })
  }

  #row(table: Table, key: SQLQueryBindings[]): Row | null {
    return this.prepared(table.select).get(...key) as Row | null
  }

  /** What the statement before has touched. */
  newTouches(): Touches {
    const rows = this.prepared(TOUCHED).values(this.#touched) as unknown as Touch[]
    return { rows, locks: rows.map(lockOf), changes: rows[0]?.[0] ?? 0 }
  }

  /** The statement is done, with what it has touched. */
  keep({ touched }: Changes, { rows, locks }: Touches): void {
    if (rows.length > 0) this.#touched = rows.at(-1)![1]
    rows.forEach((touch, i) => {
      const [, , place, ...key] = touch
      if (place >= INDEXES) return
      const table = this.#tables[place]!
      touched.set(locks[i]!, { table, key: key.slice(0, table.key.length) })
    })
  }

  beginStatement(): void {
    this.command('SAVEPOINT statement')
  }

  endStatement(): void {
    this.command('RELEASE statement')
  }

  /** The statement waits and runs again, or a part of it has failed: what it touches then is new. */
  undoStatement(): void {
    this.command('ROLLBACK TO statement')
    this.command('RELEASE statement')
  }

  savepoint(changes: Changes): void {
    this.show(changes)
    changes.saved = changes.hasChanged ? this.#taken(changes) : []
  }

  rollBackToSavepoint(changes: Changes): void {
    if (this.#shown === changes) this.#hide()
    changes.images = changes.saved ?? []
    changes.hasChanged = changes.images.length > 0
    changes.touched.clear()
    for (const { name, table, key } of changes.images) changes.touched.set(name, { table, key })
    // What is shown next begins from the images.
    if (changes.saved !== null) changes.saved = []
  }

  release(changes: Changes): void {
    this.show(changes)
    changes.saved = null
  }

  /** Make the changes of a transaction the committed state. Returns what has changed in tables that are watched. */
  commit(changes: Changes): Changed[] {
    this.show(changes)
    const changed: Changed[] = []
    for (const { table, key } of changes.touched.values())
      if (watched.has(table.name)) changed.push({ table: table.name, key, row: this.#row(table, key) })
    this.command('DELETE FROM sim_touched')
    this.command('RELEASE shown')
    this.#shown = null
    this.#touched = 0
    return changed
  }

  rollBack(changes: Changes): void {
    if (this.#shown === changes) this.#hide()
  }

  /** The committed state, as a database of its own. */
  copy(): Storage {
    this.show(null)
    // What a copy has changed since it was made is not in its bytes before the outer transaction ends.
    if (this.source !== null) this.command('COMMIT')
    const bytes = this.db.serialize()
    if (this.source !== null) this.command('BEGIN')
    return new Storage(Database.deserialize(bytes, { strict: true }), this)
  }
}

/** A lock is named by the table or the index, and what the key has before the columns that it lacks. */
function lockOf(touch: Touch): string {
  let count = touch.length
  while (touch[count - 1] === null) count--
  let name = prefixOf(touch[2])
  for (let at = KEY_AT; at < count; at++) name += `${nameOf(touch[at])} `
  return name
}

const KEY_AT = 3

/** What the names of the locks of a table begin with. */
export const prefixOf = (place: number): string => `row ${place} `

const nameOf = (value: unknown): string =>
  typeof value === 'string' ? value : value instanceof Uint8Array ? value.toBase64() : String(value)
