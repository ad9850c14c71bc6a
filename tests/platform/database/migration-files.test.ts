/** The folder of migrations, and what the program has of it. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { readMigrations } from '../../../src/platform/database/migration-files.ts'

const MIGRATIONS = join(import.meta.dir, '../../../migrations')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-migrations-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (...names: readonly string[]) => {
  for (const name of names) writeFileSync(join(folder, name), `SELECT '${name}';\n`)
}

test('every file of the folder is a migration of the program, word for word, and no number is used twice', () => {
  const files = new Map(
    migrations.flatMap(({ number, name, text, postgres }) => {
      const file = `${String(number).padStart(4, '0')}-${name}`
      const forPostgres = postgres === undefined ? [] : ([[`${file}.postgres.sql`, postgres]] as const)
      return [[`${file}.sql` as string, text] as const, ...forPostgres]
    }),
  )
  expect([...files.keys()].toSorted()).toEqual(readdirSync(MIGRATIONS).toSorted())
  for (const [file, text] of files) expect(text).toBe(readFileSync(join(MIGRATIONS, file), 'utf8'))
  const numbers = migrations.map(({ number }) => number)
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
})

test('a migration has a number, a name, and what PostgreSQL runs in its place', () => {
  write('0002-second.sql', '0002-second.postgres.sql', '0001-the-first.sql')
  expect(readMigrations(folder)).toEqual([
    { number: 1, name: 'the-first', text: "SELECT '0001-the-first.sql';\n" },
    {
      number: 2,
      name: 'second',
      text: "SELECT '0002-second.sql';\n",
      postgres: "SELECT '0002-second.postgres.sql';\n",
    },
  ])
})

test('a migration that takes something away names the migration that a server must know', () => {
  write('0001-first.sql')
  writeFileSync(join(folder, '0002-second.sql'), '-- Drops what nothing uses.\n-- needs 1\nDROP TABLE unused;\n')
  expect(readMigrations(folder).map(({ needs }) => needs)).toEqual([undefined, 1])
})

test('two migrations of one number are refused', () => {
  write('0001-first.sql', '0001-other.sql')
  expect(() => readMigrations(folder)).toThrow('two migrations have the number 1: first and other')
})

test('a migration for PostgreSQL alone is refused', () => {
  write('0001-first.postgres.sql')
  expect(() => readMigrations(folder)).toThrow('there is no migration first for other databases')
})

test.each(['first.sql', '1-first.sql', '0001_first.sql', '0001-First.sql', '0001-first.txt', '0001-first.mysql.sql'])(
  'a file that is not named like a migration is refused: %s',
  (name) => {
    write(name)
    expect(() => readMigrations(folder)).toThrow(`migrations/${name} is not named like a migration`)
  },
)
