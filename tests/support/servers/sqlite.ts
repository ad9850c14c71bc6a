/** A SQLite database with the present schema, made once in a process: copying it is quicker than sixty migrations. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'

let template: Promise<Uint8Array> | null = null

/** Put a database without any rows at `path`, as a server leaves it that has started there and stopped. */
export async function placeDatabase(path: string): Promise<void> {
  writeFileSync(path, await (template ??= makeTemplate()), { mode: 0o600 })
}

async function makeTemplate(): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-template-'))
  const path = join(folder, 'template.db')
  try {
    const db = await openDatabase({ databaseUrl: path, strict: true })
    await migrate(db, migrations, 0)
    await db.close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
