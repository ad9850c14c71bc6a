/**
 * Write what the documentation takes from the code: the table of configuration keys in README.md.
 *
 *   bun docs.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withConfigTable } from './src/platform/config-table.ts'

const readme = join(import.meta.dir, 'README.md')
writeFileSync(readme, withConfigTable(readFileSync(readme, 'utf8')))
