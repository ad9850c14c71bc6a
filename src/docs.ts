/**
 * Generate the tables in README.md: commands and configuration keys.
 *
 *   bun src/docs.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commands } from './commands/commands.ts'
import { configTable } from './platform/configuration/config-table.ts'
import { SOFTWARE_NAME } from './base/version.ts'

export const README = join(import.meta.dir, '..', 'README.md')

const tables: Record<string, () => string> = { commands: commandTable, configuration: configTable }

/** Returns the text with its tables updated. Throws if the markers of a table are missing. */
export function withTables(text: string): string {
  return Object.entries(tables).reduce((all, [name, table]) => {
    const begin = `<!-- ${name}: written by "bun run docs" -->`
    const end = `<!-- /${name} -->`
    const [before, after] = [all.indexOf(begin), all.indexOf(end)]
    if (before < 0 || after < before) throw new Error(`the text needs the lines ${begin} and ${end}`)
    return `${all.slice(0, before)}${begin}\n\n${table()}\n\n${all.slice(after)}`
  }, text)
}

function commandTable(): string {
  const rows = commands.map(
    ({ name, parameters = [], summary }) => `| \`${[SOFTWARE_NAME, name, ...parameters].join(' ')}\` | ${summary} |`,
  )
  return ['| Command | |', '| --- | --- |', ...rows].join('\n')
}

if (import.meta.main) writeFileSync(README, withTables(readFileSync(README, 'utf8')))
