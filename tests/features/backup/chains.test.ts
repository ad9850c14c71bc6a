/** One chain after another at one destination, and machines that continue them: none may hide what another one has. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { Following } from '../../../src/features/operations/backup/backup.ts'
import type { Config } from '../../../src/platform/configuration/config.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { testLog } from '../../support/log.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { aliceWithNote, create, isKept, objectsAt, post } from './kept-notes.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-chains-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

const stateOf = async ({ url }: { url: string }) => (await request(`${url}/readyz`)).body.continuousBackup
/** Until everything that was acknowledged is at the destination. */
const isSent = (server: { url: string }) => until(async () => (await stateOf(server))?.lagMillis === 0)

/** The configuration of another data directory. */
const machine = async (backup: ConfigOverrides['backup']): Promise<Config> =>
  testConfig(
    { dataDir: newFolder(), port: await freePort(), publicUrl: 'http://localhost:1' },
    { backup, development: true },
  )

const follower = (config: Config) =>
  new Following({ config, clock: systemClock, log: testLog(() => systemClock.now()).log })

/** Restore everything, in a process of its own: SQLite remembers where a file was that this process has opened. */
const restore = (place: string, { dataDir }: Config) =>
  runProgram(['restore', place, '--at', '2100-01-01T00:00:00Z', '--dev'], {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_LOG_LEVEL: 'error',
  })

/** Everything that is at the destination, in another data directory. */
async function restored(backup: { continuous: string } & ConfigOverrides['backup']): Promise<Config> {
  const config = await machine(backup)
  const { code, err } = await restore(backup.continuous, config)
  expect(code, err).toBe(0)
  return config
}

/** The records that the server on this data directory has, once `meanwhile` was done there. */
async function notes(
  config: Config,
  account: TestAccount,
  meanwhile: (there: TestAccount) => Promise<void> = async () => {},
): Promise<string[]> {
  const app = await startApp(config)
  try {
    await meanwhile(await logIn(app, account, account.password))
    const query = `repo=${account.did}&collection=org.example.note`
    const { body } = await request(`http://localhost:${config.port}/xrpc/com.atproto.repo.listRecords?${query}`)
    return body.records.map(({ uri }: { uri: string }) => uri.split('/').at(-1)!).toSorted()
  } finally {
    await app.stop()
  }
}

const segments = (place: string) => objectsAt(place).filter((path) => path.includes('/segment-'))

/** The segment that the lease knows of. */
const through = (place: string): number => {
  const folder = join(place, 'continuous')
  const newest = readdirSync(folder)
    .filter((name) => /^lease\.\d+$/.test(name))
    .toSorted((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1]))
    .at(-1)!
  return (JSON.parse(readFileSync(join(folder, newest), 'utf8')) as { through: number }).through
}

function deleteLease(place: string): void {
  const folder = join(place, 'continuous')
  for (const name of readdirSync(folder)) if (name.startsWith('lease')) rmSync(join(folder, name))
}

test('a lease that was deleted while no machine ran leaves a chain that every machine can read', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await aliceWithNote(pds)
  await pds.stop()
  const second = await machine(backup)
  await follower(second).promote()
  expect(await notes(second, alice, (there) => post(there, 'second'))).toEqual(['first', 'second'])

  // The one that continues is the one that had it.
  deleteLease(place)
  expect(await notes(second, alice, (there) => post(there, 'third'))).toEqual(['first', 'second', 'third'])
  const third = await machine(backup)
  await follower(third).promote()
  // And one that takes over without any.
  deleteLease(place)
  const fourth = await machine(backup)
  await follower(fourth).promote()
  const all = ['first', 'fourth', 'second', 'third']
  expect(await notes(fourth, alice, (there) => post(there, 'fourth'))).toEqual(all)
  expect(await notes(await restored(backup), alice)).toEqual(all)
})

test('a clock that is set back between two chains does not have a restore choose the older one', async () => {
  const backup = { continuous: newFolder(), continuousLagMs: 100 } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await createAccount(pds, 'alice')
  await post(alice, 'first')
  await isSent(pds)
  pds.clock.jump({ secs: -3600 })
  await pds.restart({ backup: { continuous: null } })
  await post(alice, 'second')
  await pds.restart({ backup })
  await post(alice, 'third')
  await isSent(pds)
  await pds.stop()
  expect(await notes(await restored(backup), alice)).toEqual(['first', 'second', 'third'])
})

test('a server whose data was restored elsewhere, and goes on there, acknowledges nothing any more', async () => {
  const backup = { continuous: newFolder(), continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await aliceWithNote(pds)
  const config = await restored(backup)
  expect(
    await notes({ ...config, backup: (await machine(backup)).backup }, alice, async (there) => {
      await post(there, 'there')
      expect((await create(alice, 'here')).status).toBe(503)
    }),
  ).toEqual(['first', 'there'])
})

test('a server that promises less since its start says so before it acknowledges anything', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await aliceWithNote(pds)
  await pds.restart({ backup: { continuous: place, continuousPromise: 'async', continuousLagMs: 60_000 } })
  await post(alice, 'unsent')
  const relay = new Subscriber(pds.url, '?cursor=0')
  const seen = await relay.untilSeen((messages) => messages.some(({ body }) => JSON.stringify(body).includes('unsent')))
  relay.close()
  const highest = Math.max(...seen.map(({ body }) => Number(body['seq'])))
  const other = await machine(backup)
  expect((await follower(other).promote()).lostAfter).toBeLessThan(highest)
})

test('a server that promises more since its start says so once all from before is there', async () => {
  await using bucket = await startBucket()
  const blobMirror = { ...bucket.mirror, bucket: null }
  const place = `s3://${bucket.mirror.bucket}/backup`
  const backup = { continuous: place, continuousPromise: 'sync' } as const
  await using pds = await startPdsOnFile({ backup, blobMirror })
  const alice = await aliceWithNote(pds)
  await pds.restart({ backup: { continuous: place, continuousPromise: 'async' } })
  // Whoever takes over closes the chain with a segment of its own, of another size.
  const sizes = new Set<string>()
  let isAlone = true
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    const size = incoming.headers['content-length']!
    if (isAlone) sizes.add(size)
    else if (!sizes.has(size)) return false
    incoming.resume()
    response.writeHead(503).end()
    return true
  }
  await post(alice, 'unsent')
  await pds.stop()
  const segments = () => bucket.requests.filter((each) => each.startsWith('PUT') && each.includes('/segment-')).length
  const before = segments()
  const starting = pds.restart().catch((error: Error) => error)
  await until(() => segments() > before + 1)
  const config = testConfig(
    { dataDir: newFolder(), port: await freePort(), publicUrl: 'http://localhost:1' },
    { backup, blobMirror, development: true },
  )
  isAlone = false
  expect((await follower(config).promote()).lostAfter).not.toBeNull()
  bucket.intercept = null
  expect(await starting).toBeInstanceOf(Error)
})

test('a restore says if the last segments are gone of which the lease knows', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync', takeoverSecs: 3 } as const
  await using pds = await startPdsOnFile({ backup })
  await aliceWithNote(pds)
  const last = () => segments(place).at(-1)!
  const lost = last()
  // The lease is renewed once a second.
  await until(async () => through(place) >= Number(lost.split('-').at(-1)))
  await pds.stop()
  for (const name of segments(place)) if (name >= lost) rmSync(name)
  const { code, err } = await restore(place, await machine(backup))
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/segment-\d+ is missing; restore what came before/),
  })
})

test('a machine takes over by itself from one that was lost before any write under sync', async () => {
  const backup = { continuous: newFolder(), continuousPromise: 'sync', takeoverSecs: 3 } as const
  await using pds = await startPdsOnFile({ backup })
  await isKept(pds)
  await pds.stop()
  const stopping = new AbortController()
  const following = follower(await machine(backup))
  const taken = following.run(stopping.signal)
  await until(() => following.state.fault !== null || following.state.behindMillis !== null)
  expect(await taken).toMatchObject({ lostAfter: null })
  expect(following.state.fault).toBeNull()
})
