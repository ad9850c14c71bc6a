/** The guides by which a server comes to be, or comes to be elsewhere, followed word for word. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION } from '../../../src/base/version.ts'
import { request } from '../../support/clients/http.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'
import { PROGRAM } from '../../support/servers/program.ts'
import { FORMER_PASSWORD, LivedFolder } from '../../support/servers/reference-folder.ts'
import { programOf, startReleaseHost } from '../../support/servers/release-host.ts'
import { startUpstream, type Upstream } from '../../support/servers/upstream.ts'
import { until } from '../../support/until.ts'
import { MASTER_KEY_HEX, startMachine, type Machine } from './machine.ts'
import { post, readable, signIn } from './people.ts'

// Each guide is followed on a machine of its own, whose server is started again and again.
setDefaultTimeout(60_000)

interface Identity {
  services: { atproto_pds: { endpoint: string } }
}

/** A relay follows the server. */
async function followedBy(machine: Machine): Promise<Upstream> {
  const relay = startUpstream()
  relay.answer('com.atproto.sync.requestCrawl', () => Response.json({}))
  relay.answer('com.atproto.sync.getHostStatus', () =>
    Response.json({ hostname: 'localhost', status: 'active', seq: 4 }),
  )
  machine.configure(`SERVICE_CRAWLERS=${relay.url}`)
  await machine.run('systemctl restart holdfast')
  return relay
}

test('the guide to upgrades takes a newer version, and returns to the one before with its backup', async () => {
  await using machine = await startMachine()
  await using releases = startReleaseHost()
  machine.install(programOf('0.0.9', {}, PROGRAM))
  await machine.run('systemctl restart holdfast')
  await releases.publish(VERSION, programOf(VERSION, {}, PROGRAM))
  machine.releasesFrom(releases)
  const { uri } = await post(machine, await signIn(machine, 'alice'))
  const versions: string[] = []
  const [upgraded, returned] = await machine.follow('upgrade.md', {
    async values({ text }) {
      versions.push((await machine.run('holdfast version')).trim())
      const snapshots = join(machine.root, 'var/backups/holdfast/snapshots')
      return { NAME: text.includes('restore') ? readdirSync(snapshots).at(-1)! : '' }
    },
  })
  versions.push((await machine.run('holdfast version')).trim())
  expect(upgraded).toMatch(/^"holdfast upgrade" installs it[^]*waiting until it works$[^]*^outcome +upgraded$/m)
  expect(returned).toContain('1 accounts announced again')
  expect(versions).toEqual(['holdfast v0.0.9', `holdfast v${VERSION}`, 'holdfast v0.0.9'])
  expect(await readable(machine, uri)).toBe(true)
})

test('the guide to moving in ends with the accounts of the reference', async () => {
  await using machine = await startMachine({ isRunning: false, isReachable: true })
  const folder = new LivedFolder(join(machine.root, 'pds'), {
    url: machine.url,
    serverDid: 'did:web:localhost',
    domain: 'pds.example.com',
  })
  const erin = folder.add({ name: 'erin', records: 20 })
  folder.close()
  const posted = await fetch(`${machine.plcUrl}/${erin.did}`, {
    method: 'POST',
    body: JSON.stringify(erin.genesis),
    headers: { 'content-type': 'application/json' },
  })
  expect(posted.status).toBe(200)
  const [checked, moved, looked] = await machine.follow('moving-in.md')
  expect(checked).toMatch(/^ *accounts +1, of which/m)
  expect(moved).toContain('1 accounts moved in with 20 records')
  expect(looked).toMatch(/^ok +server /m)
  const { status } = await request(`${machine.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: erin.handle, password: FORMER_PASSWORD },
  })
  expect(status).toBe(200)
})

test('the guides to the first host and to the installation end with a server that works', async () => {
  await using machine = await startMachine({ isReachable: true })
  await using _relay = await followedBy(machine)
  const [looked] = await machine.follow('first-host.md')
  expect(looked).toMatch(/^ok +server [^]*^reachable +yes$/m)
  expect(await machine.follow('install.md')).toEqual([expect.stringContaining('works')])
})

test('the guide to renaming the host ends with an identity that names the new address', async () => {
  await using machine = await startMachine({ isReachable: true })
  const { did } = await signIn(machine, 'alice')
  const renamed = machine.url.replace('localhost', 'new.localhost')
  const [plan, begun] = await machine.follow('renaming-the-host.md', {
    async values({ language, text }): Promise<Record<string, string>> {
      if (language === 'ini')
        return {
          'https://new.example.com': renamed,
          'https://old.example.com': machine.url,
          'new.example.com': 'new.localhost',
          'old.example.com': 'pds.example.com',
        }
      if (!text.includes('--check')) await machine.run('systemctl restart holdfast')
      return { 'new.example.com': renamed }
    },
  })
  expect(plan).toMatch(/^reaches this server +yes: [^]*^did:plc +1 accounts/m)
  expect(begun!.match(/^new address +http:\/\/new\.localhost:/gm)).toHaveLength(2)
  const endpoint = async () =>
    ((await request(`${machine.plcUrl}/${did}/data`)).body as Identity).services.atproto_pds.endpoint
  await until(async () => (await endpoint()) === renamed)
})

test('the guide to clusters moves a server to PostgreSQL and a bucket, and goes on after a failover', async () => {
  await using machine = await startMachine()
  await using bucket = await startBucket()
  const database = await emptyDatabase()
  const { uri } = await post(machine, await signIn(machine, 'alice'))
  const { s3Bucket, s3Endpoint, s3AccessKeyId, s3SecretAccessKey } = bucket.primary
  machine.configure(`SERVICE_BLOBS_S3_ENDPOINT=${s3Endpoint}\nSERVICE_BLOBS_S3_FORCE_PATH_STYLE=true`)
  const printed = await machine.follow('cluster.md', {
    // The server moves before its database fails.
    order: [0, 3, 1, 2],
    async values({ text }) {
      if (text.includes('--database-restored') && !text.includes('--nothing-lost')) {
        const places = `SERVICE_BLOBS_STORE=s3\nSERVICE_BLOBS_S3_BUCKET=${s3Bucket}`
        machine.configure(`SERVICE_DATABASE_URL=${database.databaseUrl}\n${places}`)
        await machine.run('systemctl start holdfast')
        await machine.run('systemctl stop holdfast')
      }
      return {
        'SERVICE_SIGNING_KEY_MASTER_KEY=…': `SERVICE_SIGNING_KEY_MASTER_KEY=${MASTER_KEY_HEX}`,
        'SERVICE_ADMIN_TOKEN=…': `SERVICE_ADMIN_TOKEN=${ADMIN_TOKEN}`,
        'SERVICE_BLOBS_S3_ACCESS_KEY_ID=…': `SERVICE_BLOBS_S3_ACCESS_KEY_ID=${s3AccessKeyId}`,
        'SERVICE_BLOBS_S3_SECRET_ACCESS_KEY=…': `SERVICE_BLOBS_S3_SECRET_ACCESS_KEY=${s3SecretAccessKey.reveal()}`,
        'postgres://holdfast:…@db.internal/holdfast': database.databaseUrl,
        's3://holdfast-blobs/blobs': `s3://${s3Bucket}/blobs`,
      }
    },
  })
  expect(printed).toEqual([
    expect.stringContaining('1 accounts announced again'),
    expect.stringContaining('1 accounts announced again'),
    expect.stringContaining('nothing was changed'),
  ])
  await machine.run('systemctl start holdfast')
  expect(await readable(machine, uri)).toBe(true)
  await machine.run('systemctl stop holdfast')
  await database.drop()
})
