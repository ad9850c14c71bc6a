/** Reads a folder of migrations. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Migration } from './migrations.ts'

/** `0052-event-frames.sql`, and perhaps what PostgreSQL runs instead: `0052-event-frames.postgres.sql`. */
const namePattern = /^(\d{4})-([a-z0-9]+(?:-[a-z0-9]+)*)(\.postgres)?\.sql$/
/** A line of a migration that takes something away: see `Migration.needs`. */
const needsPattern = /^-- needs (\d+)$/m

/**
 * Returns the migrations in the order of their numbers. Throws if two have the same number, if one is for PostgreSQL
 * alone, or if a file has a name of another form.
 */
export function readMigrations(folder: string): Migration[] {
  const files = readdirSync(folder)
    .toSorted()
    .map((file) => fileAt(folder, file))
  const migrations = new Map<number, Migration>()
  for (const { number, name, text } of files.filter(({ isForPostgres }) => !isForPostgres)) {
    const other = migrations.get(number)
    if (other !== undefined) throw new Error(`two migrations have the number ${number}: ${other.name} and ${name}`)
    const needs = needsPattern.exec(text)?.[1]
    migrations.set(number, { number, name, text, ...(needs !== undefined && { needs: Number(needs) }) })
  }
  for (const { number, name, text } of files.filter(({ isForPostgres }) => isForPostgres)) {
    const migration = migrations.get(number)
    if (migration?.name !== name) throw new Error(`there is no migration ${name} for other databases than PostgreSQL`)
    migration.postgres = text
  }
  return [...migrations.values()]
}

function fileAt(folder: string, file: string) {
  const [, digits, name, postgres] = namePattern.exec(file) ?? []
  if (digits === undefined || name === undefined) throw new Error(`migrations/${file} is not named like a migration`)
  const text = readFileSync(join(folder, file), 'utf8')
  return { number: Number(digits), name, text, isForPostgres: postgres !== undefined }
}
