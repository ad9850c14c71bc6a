/** The disk of the database server is full, while this server's own is not. */
import { randomBytes } from 'node:crypto'
import { SQL } from 'bun'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from '../../../src/platform/database/database.ts'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startServer } from '../../support/servers/postgres.ts'

setDefaultTimeout(60_000)

const DISK_BYTES = 48 * 1024 ** 2
const MOST_WRITES = 1000

test('is told as what it is; the server is not ready until there is room again, although small changes succeed', async () => {
  const server = await startServer({ smallDisk: DISK_BYTES })
  try {
    await server.createDatabase('cramped', 'template0', 'small')
    await using pds = await startPds({
      databaseUrl: server.url('cramped'),
      rateLimit: { enabled: false },
      spaces: { enabled: true },
    })
    await using admin = new SQL({ adapter: 'postgres', url: server.url('cramped'), max: 1 })
    await admin`CREATE TABLE ballast AS SELECT repeat(md5(CAST(i AS TEXT)), 50) AS text FROM generate_series(1, 8000) AS i`
    const account = await createAccount(pds, 'alice')
    const write = (text: string) =>
      account.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
      })
    const place = { space: `at://${account.did}/space/org.example.forum/a`, repo: account.did }
    const writeInSpace = (text: string) =>
      account.call('com.atproto.space.createRecord', {
        json: { ...place, collection: 'org.example.note', record: { text } },
      })
    /** The records that there are, and the revision that they are of. */
    const inSpace = async () => {
      const query = new URLSearchParams({ ...place, limit: '1000' })
      const { body } = await account.call(`com.atproto.space.listRepoOps?${query}`)
      return { count: body.ops.length, rev: body.commit.rev }
    }
    const ready = async () => {
      pds.clock.advance({ secs: 6 })
      const { status, body } = await request(`${pds.url}/readyz`)
      return { status, body }
    }
    const UNREADY = { status: 503, body: { status: 'unavailable', reason: 'the disk of the database is full' } }
    expect(await ready()).toMatchObject({ status: 200 })

    expect((await writeInSpace('small')).status).toBe(200)
    const before = await inSpace()
    let refused = await write('small')
    for (let i = 0; refused.status === 200 && i < MOST_WRITES; i++) refused = await write('x'.repeat(100_000))
    expect(refused).toMatchObject({
      status: 503,
      body: { error: 'ServiceUnavailable', message: 'Try again later: the disk of the database is full' },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await ready()).toEqual(UNREADY)
    // A text that does not compress, of which a page may still find room.
    let acknowledged = before.count
    let unstored = await writeInSpace('small')
    for (let i = 0; unstored.status === 200 && i < MOST_WRITES; i++) {
      acknowledged++
      unstored = await writeInSpace(randomBytes(50_000).toString('hex'))
    }
    expect(unstored).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
    expect((await inSpace()).count).toBe(acknowledged)

    // A row that is changed in its place takes no room.
    expect(await pds.ctx.db.run(sql`UPDATE clock_seen SET seen_at = seen_at`)).toBe(1)
    expect(await ready()).toEqual(UNREADY)
    expect(await xrpc(pds, '_health')).toMatchObject({ status: 503, body: { reason: UNREADY.body.reason } })
    expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${account.did}`)).status).toBe(200)

    await admin`DROP TABLE ballast`
    expect(await ready()).toMatchObject({ status: 200 })
    expect((await write('x'.repeat(100_000))).status).toBe(200)
    expect((await writeInSpace('x'.repeat(100_000))).status).toBe(200)
    expect((await inSpace()).count).toBe(acknowledged + 1)
  } finally {
    server.stop()
  }
})
