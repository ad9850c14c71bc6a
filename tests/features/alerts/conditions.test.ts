/** What each alert looks at. */
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { alerts } from '../../../src/features/operations/alerts/alert-table.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { untimely } from '../../support/certificates.ts'
import { selfSigned } from '../../support/self-signed.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { startWebHost } from '../../support/servers/did-web-host.ts'
import { freePort, startPds, type TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const EVENTS_OF_SIGN_UP = 4
const DAY_MILLIS = 86_400_000
const PUBLIC_URL = 'https://pds.example.org'
const mailed = (config: ConfigOverrides = {}): ConfigOverrides => ({
  ...config,
  alerts: { mailTo: ['operator@example.org'], diskFreeBytes: 0, ...config.alerts },
})

async function pass(pds: TestPds, { secs = 60 } = {}): Promise<void> {
  pds.clock.advance({ secs })
  await pds.runSweep('alerts')
  await pds.runSteps()
}

/** The texts of all mails. */
const told = ({ mails }: TestPds) => mails.map(({ subject, text }) => `${subject}\n${text}`)

test('a server that is well has nothing to tell', async () => {
  await using directory = startUpstream()
  await using pds = await startPds(mailed({ plcDirectoryUrl: directory.url }))
  pds.clock.jump({ secs: -60 })
  for (let hours = 0; hours < 3; hours++) await pass(pds)
  expect(pds.mails).toEqual([])
})

test('a scheduled backup that fails is told at once', async () => {
  await using pds = await startPds(mailed())
  const destination = join(pds.dataDir, 'backups')
  await pds.restart(mailed({ backup: { destination } }))
  rmSync(destination, { recursive: true, force: true })
  writeFileSync(destination, 'not a folder')
  expect(await thrownBy(pds.runSweep('backup'))).toThrow()
  await pass(pds)
  expect(told(pds)).toEqual([expect.stringMatching(/^Alert: the last backup failed$/m)])
})

test('a certificate that is near its end is told, even after it', async () => {
  await using web = startWebHost({ cert: untimely.expired, key: untimely.key })
  await using pds = await startPds(mailed(), { publicUrl: `https://localhost:${web.port}` })
  await pass(pds)
  expect(told(pds)).toEqual([
    expect.stringMatching(
      /^Alert: the certificate has not been renewed in time[^]*the certificate of localhost ended \d+ days ago/,
    ),
  ])
})

test('a certificate with a life of days is told near its own end only', async () => {
  const now = Date.now()
  await using web = startWebHost(await selfSigned(now - DAY_MILLIS, now + 5 * DAY_MILLIS))
  await using pds = await startPds(mailed(), { publicUrl: `https://localhost:${web.port}` })
  await pass(pds)
  expect(pds.mails).toEqual([])
  await pass(pds, { secs: (4 * DAY_MILLIS) / 1000 })
  expect(told(pds)).toEqual([
    expect.stringMatching(/^Alert: the certificate has not been renewed in time[^]*localhost is valid for 0 more days/),
  ])
})

test('a certificate that cannot be seen from inside is not told', async () => {
  await using pds = await startPds(mailed(), { publicUrl: `https://localhost:${await freePort()}` })
  await pass(pds)
  expect(pds.mails).toEqual([])
})

test('a relay that has not followed for a day is told with the reason, and when it does again', async () => {
  await using relay = startUpstream()
  let answer: () => Response = () => Response.json({ error: 'HostNotFound' }, { status: 400 })
  relay.answer('com.atproto.sync.getHostStatus', () => answer())
  await using pds = await startPds(mailed({ crawlers: { urls: [relay.url] }, alerts: { reminderSecs: 0 } }), {
    publicUrl: PUBLIC_URL,
  })
  await createAccount(pds, 'alice')
  await until(async () => (await pds.count('repo_seq')) === EVENTS_OF_SIGN_UP)
  const { seq } = (await pds.rows('repo_seq', {}, ['seq'])).at(-1)!
  const follows = (status: string, taken: number) => () =>
    Response.json({ hostname: 'pds.example.org', status, seq: taken })
  // The clock of the test is ahead of that of the relay, which is told too.
  const toldOfRelay = () => told(pds).filter((text) => text.includes('a relay does not follow'))
  await pass(pds)
  await pass(pds, { secs: 23 * 3600 })
  expect(toldOfRelay()).toEqual([])
  answer = follows('banned', seq)
  await pass(pds, { secs: 3600 })
  expect(toldOfRelay()).toEqual([
    expect.stringMatching(
      /^Alert: a relay does not follow this server \(localhost:\d+\)[^]*reports the status "banned"/,
    ),
  ])
  answer = follows('idle', seq)
  await pass(pds, { secs: 3600 })
  await pass(pds, { secs: 3600 })
  expect(toldOfRelay()).toEqual([expect.anything(), expect.stringMatching(/^Over: a relay does not follow/)])

  answer = follows('active', seq - 1)
  await pass(pds, { secs: 3600 })
  await pass(pds, { secs: 24 * 3600 })
  expect(toldOfRelay().at(-1)).toMatch(/^Alert: a relay[^]*it has taken event 3 of 4; the next one waits since/)
})

test('a directory that has not answered for ten minutes is told', async () => {
  await using pds = await startPds(mailed({ plcDirectoryUrl: `http://127.0.0.1:${await freePort()}` }))
  await pass(pds)
  await pass(pds, { secs: 500 })
  expect(pds.mails).toEqual([])
  await pass(pds, { secs: 300 })
  expect(told(pds)).toEqual([expect.stringMatching(/^Alert: the PLC directory does not respond[^]*cannot be reached/)])
})

test('a clock that is wrong is told', async () => {
  await using directory = startUpstream()
  await using pds = await startPds(mailed({ plcDirectoryUrl: directory.url }))
  pds.clock.jump({ secs: 600 })
  await pass(pds)
  expect(told(pds)).toEqual([expect.stringMatching(/^Alert: the clock is wrong[^]*11 minutes ahead of/)])
})

test('a burst of sign-ups is told, and is over an hour later', async () => {
  await using pds = await startPds(mailed({ alerts: { signUpsPerHour: 2 } }))
  await createAccount(pds, 'alice')
  await pass(pds)
  expect(pds.mails).toEqual([])
  await createAccount(pds, 'bob')
  await pass(pds)
  const alerts = () => told(pds).filter((text) => text.includes('many accounts'))
  expect(alerts()).toEqual([expect.stringMatching(/2 accounts were created within an hour.*is 2$/m)])
  await pass(pds, { secs: 3600 })
  await pass(pds, { secs: 3600 })
  expect(alerts()).toEqual([expect.anything(), expect.stringMatching(/^Over: many accounts/)])
})

test('a burst of refusals is told, and is over an hour later', async () => {
  await using pds = await startPds(mailed({ rateLimit: { globalIpPer5min: 3 }, alerts: { refusalsPerHour: 2 } }))
  using _ = atOneNode(pds, 'each node counts for itself')
  const ask = () => request(`${pds.url}/xrpc/com.atproto.server.describeServer`)
  for (let i = 0; i < 4; i++) await ask()
  await pass(pds)
  expect(pds.mails).toEqual([])
  expect((await ask()).status).toBe(429)
  await pass(pds)
  expect(told(pds)).toEqual([expect.stringMatching(/rate limits refused 2 requests within an hour/)])
  await pass(pds, { secs: 3601 })
  await pass(pds, { secs: 3601 })
  expect(told(pds).at(-1)).toMatch(/^Over: many requests/)
})

test('a backup that something else should make, and does not, is told', async () => {
  await using pds = await startPds(mailed())
  await pds.restart(mailed({ backup: { destination: join(pds.dataDir, 'backups') } }))
  await pass(pds)
  expect(told(pds)).toEqual([expect.stringMatching(/^Alert: the newest backup is too old/)])
})

test('a rehearsed restore that failed is told until one succeeds', async () => {
  await using pds = await startPds(mailed())
  const destination = join(pds.dataDir, 'backups')
  mkdirSync(destination)
  const note = (ok: boolean) =>
    writeFileSync(
      join(destination, 'rehearsal.json'),
      JSON.stringify({ snapshot: '20261123T210120Z', at: '2026-11-23T21:02:00.000Z', ok }),
    )
  note(false)
  await pds.restart(mailed({ backup: { destination, intervalSecs: 0 } }))
  await pass(pds)
  const failed = /the restore of the backup 20261123T210120Z failed when it was rehearsed on 2026-11-23/
  expect(told(pds)).toEqual([expect.stringMatching(failed)])
  note(true)
  await pass(pds, { secs: 3601 })
  await pass(pds, { secs: 3601 })
  expect(told(pds).at(-1)).toMatch(/Over: the last rehearsed restore failed/)
})

test('the guide has a section for each alert, which messages name', () => {
  const guide = readFileSync(join(import.meta.dir, '../../../docs/alerts.md'), 'utf8')
  const sections = Array.from(guide.matchAll(/^## ([a-z-]+)$/gm), ([, name]) => name!)
  expect(sections).toEqual(['cannot-write', ...alerts.map(({ name }) => name)])
})

test('a continuous backup that is behind is told with the reason, and when it is not any more', async () => {
  await using bucket = await startBucket()
  const { bucket: name, ...blobMirror } = bucket.mirror
  await using pds = await startPds(mailed({ backup: { continuous: `s3://${name}/sent` }, blobMirror }), {
    onFile: true,
  })
  const lag = async () => (await request(`${pds.url}/readyz`)).body.continuousBackup
  await until(async () => (await lag()).lagMillis === 0)
  await pass(pds)
  expect(told(pds)).toEqual([])
  bucket.fault = 503
  await createAccount(pds, 'alice')
  await until(async () => (await lag()).fault)
  await pass(pds, { secs: 120 })
  expect(told(pds)).toEqual([
    expect.stringMatching(/^Alert: the continuous backup is behind[^]*a restore would lack commits of the last \d+ s/),
  ])
  bucket.fault = null
  await until(async () => (await lag()).fault === false)
  for (let minutes = 0; minutes < 30 && told(pds).length < 2; minutes++) {
    await until(async () => (await lag()).lagMillis === 0)
    await pass(pds)
  }
  expect(told(pds)[1]).toStartWith('Over: the continuous backup is behind')
})
