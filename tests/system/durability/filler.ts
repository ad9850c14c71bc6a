/**
 * Writes to a database until nothing goes any more, has its parent lift the limit, and writes once more. Run with a
 * limit on the size of files: `bun filler.ts <path>`. Says `full` and then what became of the last write.
 */
import { sql } from '../../../src/platform/database/database.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'

const MAX_WRITES = 1000
const FAILURES_IN_A_ROW = 5
const bytes = new Uint8Array(1_000_000)

const db = openSqlite({ path: process.argv[2]! })
await db.run(sql`CREATE TABLE filling (bytes BLOB)`)
const write = () => db.run(sql`INSERT INTO filling (bytes) VALUES (${bytes})`)

let failures = 0
for (let i = 0; i < MAX_WRITES && failures < FAILURES_IN_A_ROW; i++) {
  failures = await write().then(
    () => 0,
    () => failures + 1,
  )
}
process.stdout.write(db.writeFault === null ? 'never full\n' : 'full\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
await write()
process.stdout.write(db.writeFault === null ? 'written\n' : 'still full\n')
process.exit(0)
