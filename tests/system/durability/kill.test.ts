/**
 * `kill -9` in the middle of a storm of writes, again and again on the same data. DURABILITY_KILLS says how often.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'
import { StormAccount } from './storm.ts'
import { checkBlobs, checkEventLog, checkRecords, checkRepositories } from './storm-checks.ts'
import { until } from '../../support/until.ts'

const KILLS = Number(process.env['DURABILITY_KILLS'] ?? 50)
const ACCOUNTS = 3
const WRITERS_PER_ACCOUNT = 3
/** A kill comes after so many acknowledged writes, another number in each round, so that it falls anywhere. */
const acknowledgedBeforeKill = (round: number) => 5 + ((round * 37) % 60)

/** For every kill: a start, a check, a storm. Far above what they take. */
const MAX_MILLIS_PER_KILL = 10_000

test(
  `after ${KILLS} kills every acknowledged write is there, in repositories that verify and an event log without holes`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-durability-'))
    const env = { PORT: String(await freePort()), SERVICE_RATE_LIMIT_ENABLED: 'false' }
    const start = () => startProgram(['dev'], env, folder)
    try {
      let accounts: StormAccount[] = []
      for (let round = 0; round < KILLS; round++) {
        await using server = await start()
        if (round === 0)
          accounts = await Promise.all(
            Array.from({ length: ACCOUNTS }, (_, index) => StormAccount.create(server.url, `storm${index}`)),
          )
        await checkRecords(server, accounts)
        await stormAndKill(server, accounts, acknowledgedBeforeKill(round))
      }
      await using server = await start()
      await checkRecords(server, accounts)
      await checkBlobs(server, accounts)
      await checkEventLog(server, accounts)
      await checkRepositories(server, accounts)
      expect(server.output()).not.toMatch(/ (?:WARN|ERROR) (?!.*configuration)/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

async function stormAndKill(server: RunningServer, accounts: StormAccount[], writes: number): Promise<void> {
  const acknowledged = () => accounts.reduce((sum, { commits }) => sum + commits.length, 0)
  const before = acknowledged()
  const writing = accounts.flatMap((account) =>
    Array.from({ length: WRITERS_PER_ACCOUNT }, (_, writer) => account.writeUntilGone(server.url, writer)),
  )
  const storm = Promise.all(writing)
  await Promise.race([storm, until(() => acknowledged() - before >= writes, { maxPauseMillis: 1 })])
  server.signal('SIGKILL')
  await Promise.all([storm, server.exited])
}
