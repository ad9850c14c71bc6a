/** The disk of the database server is full, while this server's own is not. */
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
    await using pds = await startPds({ databaseUrl: server.url('cramped'), rateLimit: { enabled: false } })
    await using admin = new SQL({ adapter: 'postgres', url: server.url('cramped'), max: 1 })
    await admin`CREATE TABLE ballast AS SELECT repeat(md5(CAST(i AS TEXT)), 50) AS text FROM generate_series(1, 8000) AS i`
    const account = await createAccount(pds, 'alice')
    const write = (text: string) =>
      account.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
      })
    const ready = async () => {
      pds.clock.advance({ secs: 6 })
      const { status, body } = await request(`${pds.url}/readyz`)
      return { status, body }
    }
    const UNREADY = { status: 503, body: { status: 'unavailable', reason: 'the disk of the database is full' } }
    expect(await ready()).toMatchObject({ status: 200 })

    let refused = await write('small')
    for (let i = 0; refused.status === 200 && i < MOST_WRITES; i++) refused = await write('x'.repeat(100_000))
    expect(refused).toMatchObject({
      status: 503,
      body: { error: 'ServiceUnavailable', message: 'Try again later: the disk of the database is full' },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await ready()).toEqual(UNREADY)

    // A row that is changed in its place takes no room.
    expect(await pds.ctx.db.run(sql`UPDATE clock_seen SET seen_at = seen_at`)).toBe(1)
    expect(await ready()).toEqual(UNREADY)
    expect(await xrpc(pds, '_health')).toMatchObject({ status: 503, body: { reason: UNREADY.body.reason } })
    expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${account.did}`)).status).toBe(200)

    await admin`DROP TABLE ballast`
    expect(await ready()).toMatchObject({ status: 200 })
    expect((await write('x'.repeat(100_000))).status).toBe(200)
  } finally {
    server.stop()
  }
})
