/** What the doctor says of the numbers of events on PostgreSQL, whichever database the suite runs on. */
import { expect, test } from 'bun:test'
import { checks, examine, type Finding } from '../../../src/features/operations/doctor/doctor.ts'
import type { Patient } from '../../../src/features/operations/doctor/finding.ts'
import { insertUnnumbered } from '../../../src/features/data/firehose/sequencer-store.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { sequence } from '../../support/clients/events.ts'

test('the doctor says who numbers events, how many wait, when they wait for too long, and when none may be numbered', async () => {
  await using cluster = await startCluster(1)
  const [node] = cluster.nodes
  const { config, clock } = node!.ctx
  const did = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
  const find = (now = clock.now()): Promise<Finding> => {
    const patient = { config, now: () => now } as Patient
    return examine(
      checks.find(({ name }) => name === 'event-numbers')!,
      patient,
    )
  }
  await sequence(node!, { type: 'identity', did })
  expect(await find()).toEqual({
    state: 'ok',
    text: expect.stringMatching(/^.+ numbers events; 0 events are waiting for a number$/),
  })

  await node!.stop()

  const left = await openPostgres({ url: cluster.databaseUrl })
  await left.transaction((tx) => insertUnnumbered(tx, [{ type: 'identity', did }], clock.now()))
  await left.close()
  expect(await find(clock.now() + 59_000)).toMatchObject({ state: 'ok', text: '1 events are waiting for a number' })
  expect(await find(clock.now() + 61_000)).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('no server is running'),
  })

  const restored = await openPostgres({ url: cluster.databaseUrl })
  await restored.run(sql`UPDATE database_history SET agreed = replace(agreed, ' 00000001 ', ' 00000002 ')`)
  await restored.close()
  expect(await find()).toMatchObject({
    state: 'fault',
    text: expect.stringMatching(/lost changes.*it was copy \d+ 00000002 /),
  })
})
