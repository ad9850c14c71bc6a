/** PostgreSQL that fails over again, and loses what the servers had agreed on after the first failover. */
import { SQL } from 'bun'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp, type App } from '../../../src/app.ts'
import { freePort } from '../../support/ports.ts'
import { testConfig } from '../../support/servers/config.ts'
import { testDatabase } from '../../support/servers/postgres.ts'

/** Other nodes may have given so many numbers after the gap. */
const NUMBERED_BY_OTHERS = 100_000

test('a server that has left a gap in the numbers leaves the next one above it, though the database has lost it', async () => {
  const { databaseUrl, drop } = await testDatabase()
  const db = new SQL(databaseUrl, { max: 1 })
  const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-lost-gap-'))
  const port = await freePort()
  const config = testConfig(
    { dataDir, port, publicUrl: `http://localhost:${port}` },
    { databaseUrl, database: { afterFailover: 'continue' } },
  )
  const start = (former: App | null) => startApp(config, { sent: former?.sent ?? null })
  const spentThrough = async () => Number((await db`SELECT spent_through FROM repo_seq_past`)[0].spent_through)
  const lose = async (spent: number) => {
    await db`UPDATE database_history SET lost = 'what the standby had not received'`
    await db`UPDATE repo_seq_past SET spent_through = ${spent}`
  }
  try {
    const first = await start(null)
    await first.stop()
    const before = await spentThrough()
    await lose(before)
    const second = await start(first)
    await second.stop()
    const gap = await spentThrough()
    expect(gap).toBeGreaterThan(before)
    await lose(before)
    const third = await start(second)
    await third.stop()
    expect(await spentThrough()).toBeGreaterThan(gap + NUMBERED_BY_OTHERS)
  } finally {
    await db.close()
    await drop()
    rmSync(dataDir, { recursive: true })
  }
})
