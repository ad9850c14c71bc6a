/**
 * `kill -9` in the middle of a storm of writes, with a continuous backup: what was at the destination can be restored,
 * with `sync` all that was acknowledged, and the server that starts again continues the chain. CONTINUOUS_KILLS says
 * how often.
 */
import { Database as File } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { checkRecords, checkRepositories } from './storm-checks.ts'
import { StormAccount } from './storm.ts'

const KILLS = Number(process.env['CONTINUOUS_KILLS'] ?? 6)
const WRITERS = 3
/** For every kill: a start, a storm, a restore. Far above what they take. */
const MAX_MILLIS_PER_KILL = 20_000

test.each([
  ['async', 'what was at the destination'],
  ['sync', 'all that was acknowledged'],
] as const)(
  `with the promise of %s, after each of ${KILLS} kills a restore has %s, and the chain goes on`,
  async (promise) => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-continuous-kill-'))
    const place = join(scratch, 'destination')
    const env = {
      PORT: String(await freePort()),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_BACKUP_CONTINUOUS: place,
      SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      SERVICE_BACKUP_CONTINUOUS_PROMISE: promise,
    }
    const folder = join(scratch, 'server')
    mkdirSync(folder)
    try {
      const accounts: StormAccount[] = []
      for (let round = 0; round < KILLS; round++) {
        await using server = await startProgram(['dev'], env, folder)
        const state = async () => (await request(`${server.url}/readyz`)).body.continuousBackup
        await until(async () => (await state()).promise === promise)
        const storm = async (isOver: () => boolean) => {
          await Promise.all(
            accounts.flatMap((account) =>
              Array.from({ length: WRITERS }, (_, writer) => account.writeUntilGone(server.url, writer, isOver)),
            ),
          )
        }
        accounts.push(await StormAccount.create(server.url, `storm${round}`))
        const commits = () => accounts.reduce((sum, account) => sum + account.commits.length, 0)
        const before = commits()
        await storm(() => commits() - before > 20 + ((round * 37) % 60))
        if (promise === 'async') await until(async () => (await state()).lagMillis === 0)

        // With `async`, what comes now may be lost with the machine, but not make the rest unusable.
        const remembered = accounts.map((account) => account.remember())
        let isKilled = false
        const end = storm(() => isKilled)
        const more = commits()
        await until(() => commits() - more > (round * 13) % 40, { maxPauseMillis: 1 })
        server.signal('SIGKILL')
        isKilled = true
        await Promise.all([end, server.exited])

        const at = new Date(Date.now() + 60_000).toISOString()
        const restored = join(scratch, `restored-${round}`)
        const { code, err } = await runProgram(['restore', place, '--at', at, '--dev'], {
          ...env,
          SERVICE_DATA_DIR: restored,
        })
        if (code !== 0) throw new Error(`the restore after kill ${round + 1} failed:\n${err}`)
        if (round < KILLS - 1) continue
        if (promise === 'async') accounts.forEach((account, index) => account.fallBackTo(remembered[index]!))
        await using successor = await startProgram(['dev'], { ...env, SERVICE_DATA_DIR: restored }, scratch)
        await checkRecords(successor, accounts)
        await checkRepositories(successor, accounts)
      }
      expect(readdirSync(join(place, 'continuous')).filter((name) => !name.startsWith('lease'))).toHaveLength(2)
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

/** Open the database of a running server in another process, as the daily backup does, and close it. */
function visit(folder: string, statement: string): void {
  const database = new File(join(folder, 'data', 'holdfast.db'))
  database.run(statement)
  database.close()
}

const chains = (place: string) =>
  readdirSync(join(place, 'continuous')).filter((name) => !name.startsWith('lease')).length

test('after a kill just when the log of the database has started over, the chain goes on', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'holdfast-started-over-'))
  const place = join(scratch, 'destination')
  const env = {
    PORT: String(await freePort()),
    SERVICE_BACKUP_CONTINUOUS: place,
    // A segment has what was written at most half of this time before.
    SERVICE_BACKUP_CONTINUOUS_LAG_MS: '6000',
  }
  const start = () => startProgram(['dev'], env, scratch)
  const state = async (url: string) => (await request(`${url}/readyz`)).body.continuousBackup
  const isSent = (url: string) => until(async () => (await state(url)).lagMillis === 0)
  const write = (account: StormAccount, url: string, count: number) => {
    const enough = account.commits.length + count
    return account.writeUntilGone(url, 0, () => account.commits.length >= enough)
  }
  try {
    const first = await start()
    const account = await StormAccount.create(first.url, 'alice')
    await write(account, first.url, 30)
    await isSent(first.url)
    await write(account, first.url, 2)
    visit(scratch, 'PRAGMA wal_checkpoint(PASSIVE)')
    await write(account, first.url, 1)
    first.signal('SIGKILL')
    await first.exited

    const second = await start()
    await isSent(second.url)
    expect(chains(place)).toBe(1)
    second.signal('SIGKILL')
    await second.exited
    const restored = { ...env, SERVICE_DATA_DIR: join(scratch, 'restored') }
    const { code, err } = await runProgram(['restore', place, '--at', '2100-01-01T00:00:00Z', '--dev'], restored)
    expect(code, err).toBe(0)
    await using successor = await startProgram(['dev'], restored, scratch)
    await checkRecords(successor, [account])
    await checkRepositories(successor, [account])
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}, 60_000)

test('a server keeps its locks on the files of the database while it copies them', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'holdfast-locks-'))
  const env = {
    PORT: String(await freePort()),
    SERVICE_BACKUP_CONTINUOUS: join(scratch, 'destination'),
    SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
  }
  try {
    await using server = await startProgram(['dev'], env, scratch)
    // The copy is complete, so the server has read the file beside SQLite.
    await until(async () => (await request(`${server.url}/readyz`)).body.continuousBackup.lagMillis === 0)
    const database = join(scratch, 'data', 'holdfast.db')
    expect(lockedBy(server.pid, database)).toBe(true)
    expect(lockedBy(server.pid, `${database}-shm`)).toBe(true)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})

/** Whether a process has a lock on a file: without one, others would take a database for one that nobody uses. */
function lockedBy(pid: number, path: string): boolean {
  const { ino } = statSync(path)
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .some((line) => new RegExp(String.raw`POSIX .* ${pid} \S+:${ino} `).test(line))
}
