/** A PostgreSQL database that its own tools have restored, whichever database the suite runs on. */
import { expect, test } from 'bun:test'
import { eventsAfter, headSeq } from '../../../src/features/data/firehose/event-log.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { allNumbered } from '../../support/clients/events.ts'
import { MASTER_KEY } from '../../support/servers/config.ts'
import { runProgram } from '../../support/servers/program.ts'

test('the event log continues above what relays may have seen, and every account is announced again', async () => {
  await using cluster = await startCluster(1)
  const [node] = cluster.nodes
  await createAccount(node!, 'alice')
  await allNumbered(node!)
  const head = await headSeq(node!.ctx.db)
  const env = {
    SERVICE_DATABASE_URL: cluster.databaseUrl,
    SERVICE_DATA_DIR: node!.dataDir,
    SERVICE_PUBLIC_URL: node!.url,
    SERVICE_SIGNING_KEY_MASTER_KEY: Buffer.from(MASTER_KEY.reveal()).toString('hex'),
  }
  const restore = () => runProgram(['restore', '--dev', '--database-restored'], env)
  expect(await restore()).toMatchObject({ code: 1, err: expect.stringMatching(/in use by/) })
  await node!.stop()

  const { code, out } = await restore()
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(
      /^1 repositories and 0 blobs verified, 0 faults; 1 accounts announced again, event log continues at \d{13}\n$/,
    ),
  ])
  await node!.restart()
  await allNumbered(node!)
  const events = await eventsAfter(node!.ctx.db, head)
  expect(events.map(({ type }) => type)).toEqual(['identity', 'account', 'sync'])
  expect(events[0]!.seq).toBe(Number(/\d{13}/.exec(out)![0]))
  expect(await runProgram(['restore', '--dev', '--database-restored', '/nowhere'], env)).toMatchObject({ code: 2 })
})
