/** Data directories that were copied, and databases of machines that were replaced: neither is lost without a word. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { Following, mayServe } from '../../../src/features/operations/backup/backup.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { testLog } from '../../support/log.ts'
import { freePort } from '../../support/ports.ts'
import { testConfig } from '../../support/servers/config.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { create, objectNames, post } from './kept-notes.ts'
import { thrownBy } from '../../support/thrown.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-doubles-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

const isSent = ({ url }: { url: string }) =>
  until(async () => (await request(`${url}/readyz`)).body.continuousBackup?.lagMillis === 0)

const chains = (place: string): string[] =>
  readdirSync(join(place, 'continuous')).filter((name) => !name.startsWith('lease'))

/** A server with a note that is at the destination, and a copy of its data directory as of then. */
async function twoCopies(more: Record<string, string> = {}) {
  const place = newFolder()
  const [folder, copy] = [newFolder(), newFolder()]
  for (const each of [folder, copy]) mkdirSync(each)
  const start = async (where: string): Promise<RunningServer> =>
    startProgram(
      ['dev'],
      {
        SERVICE_BACKUP_CONTINUOUS: place,
        SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
        SERVICE_RATE_LIMIT_ENABLED: 'false',
        SERVICE_PUBLIC_URL: 'http://localhost:2583',
        PORT: String(await freePort()),
        ...more,
      },
      where,
    )
  const server = await start(folder)
  const alice = await createAccount(server, 'alice')
  await post(alice, 'first')
  await isSent(server)
  cpSync(join(folder, 'data'), join(copy, 'data'), { recursive: true })
  return { place, folder, copy, start, server, alice }
}

async function notes({ url }: { url: string }, { did }: TestAccount): Promise<string[]> {
  const query = `repo=${did}&collection=org.example.note`
  const { body } = await request(`${url}/xrpc/com.atproto.repo.listRecords?${query}`)
  return body.records.map(({ uri }: { uri: string }) => uri.split('/').at(-1)!).toSorted()
}

/** Until it has noticed that it may not go on. */
const isReplaced = async (server: RunningServer) => {
  expect(await server.exited).not.toBe(0)
  expect(server.output()).toContain('another copy of this data directory')
}

test('a copy of a data directory does not start once the server has written more, and the server goes on', async () => {
  const { place, copy, start, server, alice } = await twoCopies()
  await using _ = server
  await post(alice, 'second')
  await isSent(server)
  expect(await thrownBy(start(copy))).toThrow(/this database is an older copy.*delete .*holdfast\.holder/)
  await post(alice, 'third')
  await isSent(server)
  expect(chains(place)).toHaveLength(1)
})

test('a copy that is older than the segments at the destination does not continue the chain', async () => {
  const more = { SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync', SERVICE_BACKUP_TAKEOVER_SECS: '3' }
  const { place, copy, start, server, alice } = await twoCopies(more)
  const [chain] = chains(place) as [string]
  const segments = () => objectNames(join(place, 'continuous', chain), 'segment-')
  const through = (): number => {
    const lease = objectNames(join(place, 'continuous'), 'lease').at(-1)!
    return (JSON.parse(readFileSync(join(place, 'continuous', lease), 'utf8')) as { through: number }).through
  }
  {
    await using _ = server
    const before = segments()
    await post(alice, 'second')
    await isSent(server)
    await post(alice, 'third')
    await isSent(server)
    // What is older than backup.continuous_keep_secs is deleted.
    await until(() => through() >= Number(segments().at(-1)!.slice('segment-'.length)))
    for (const name of segments().slice(0, -1)) rmSync(join(place, 'continuous', chain, name))
    expect(segments().length).toBe(1)
    expect(before).not.toContain(segments()[0]!)
    expect(await thrownBy(start(copy))).toThrow(/this database is an older copy/)
    await post(alice, 'fourth')
    await isSent(server)
    expect(segments().length).toBeGreaterThan(1)
  }
  // Nor does it as a new machine.
  rmSync(join(copy, 'data', 'holdfast.holder'))
  expect(await thrownBy(start(copy))).toThrow(/this database is an older copy/)
})

test('of two copies of a data directory, the one that was started last goes on, and the other one says so', async () => {
  const { folder, copy, start, server, alice } = await twoCopies()
  await using _ = server
  {
    await using other = await start(copy)
    const there = await logIn(other, alice, alice.password)
    await post(there, 'there')
    await isSent(other)
    // It does not know yet.
    await create(alice, 'here')
    await isReplaced(server)
    await post(there, 'more')
    await isSent(other)
    expect(await thrownBy(start(folder))).toThrow(/another copy of this data directory, on .*, continues this server/)
    expect(await notes(other, alice)).toEqual(['first', 'more', 'there'])
  }
  // Without the other one, an operator may decide to continue here.
  rmSync(join(folder, 'data', 'holdfast.holder'))
  {
    await using again = await start(folder)
    await post(await logIn(again, alice, alice.password), 'again')
    await isSent(again)
    expect(await notes(again, alice)).toEqual(['again', 'first', 'here'])
  }
  expect(await thrownBy(start(copy))).toThrow(/another machine, .*, continues this server/)
})

test('a copy that has written less than the server leaves the backup to that', async () => {
  const { place, folder, copy, start, server, alice } = await twoCopies()
  {
    await using _ = server
    await using other = await start(copy)
    await post(alice, 'second')
    await isSent(server)
    // A session is no event.
    await logIn(other, alice, alice.password)
    expect(await other.exited).not.toBe(0)
    expect(other.output()).toContain('this database is an older copy')
    await post(alice, 'third')
    await isSent(server)
  }
  await using again = await start(folder)
  expect(await notes(again, alice)).toEqual(['first', 'second', 'third'])
  expect(chains(place)).toHaveLength(1)
})

test('whatever else a machine has once it is replaced again and again, it keeps', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousLagMs: 100 }
  const machine = async () => {
    const dataDir = newFolder()
    const own = { dataDir, port: await freePort(), publicUrl: 'http://localhost:1' }
    const config = testConfig(own, { backup, development: true })
    return { config, promote: () => new Following({ config, clock: systemClock, log: testLog(() => 0).log }).promote() }
  }
  const [one, other] = [await machine(), await machine()]
  const app = await startApp(one.config)
  const alice = await createAccount(app, 'alice')
  await post(alice, 'first')
  await isSent(app)
  await app.stop()
  for (let round = 0; round < 2; round++)
    for (const [next, former] of [
      [other, one],
      [one, other],
    ] as const) {
      await next.promote()
      expect(await mayServe(former.config)).toBe(false)
    }
  for (const { config } of [one, other]) {
    const kept = objectNames(config.dataDir, 'holdfast.db.superseded')
    expect(kept).toEqual(['holdfast.db.superseded', 'holdfast.db.superseded-2'])
    for (const name of kept) expect(readFileSync(join(config.dataDir, name)).includes(alice.did)).toBe(true)
  }
  expect(existsSync(join(other.config.dataDir, 'holdfast.db'))).toBe(false)
})
