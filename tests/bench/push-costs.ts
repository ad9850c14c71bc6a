/**
 * What an event costs that the devices of an account are told of, and a relay that is away: statements, rows and the
 * time of one transaction, beside how many registrations other accounts have and how many pushes wait; then the memory
 * and the rows that an outage takes with one event a second.
 *
 *   bun tests/bench/push-costs.ts [registrations] [seconds of the outage]
 */
import { enqueuePush } from '../../src/features/push/notifications/notifications.ts'
import { peersOf } from '../../src/features/push/iroh/iroh.ts'
import { sql, sqlRows } from '../../src/platform/database/database.ts'
import { createLog } from '../../src/platform/running/log.ts'
import type { Did } from '../../src/protocol/identifiers.ts'
import { createAccount } from '../support/clients/account.ts'
import { MASTER_KEY, startPds, type TestPds } from '../support/servers/pds.ts'
import { PushRelay } from '../support/servers/push-relay.ts'

const REGISTRATIONS = Number(process.argv[2] ?? 100_000)
const OUTAGE_SECS = Number(process.argv[3] ?? 3600)
/** As many as an account may have. */
const DEVICES = 20
const ROUNDS = 50

const message = {
  type: 'agent_claim_pending',
  title: 'A program asks for access',
  body: 'x'.repeat(80),
  data: { claimAttemptId: 'cla_1' },
}

await using relay = await PushRelay.start({ codes: null })
const log = createLog({ format: 'json', level: 'error', now: Date.now, write: () => {} })
await using pds = await startPds(
  { ...relay.config, signingKeyMasterKey: MASTER_KEY },
  { strictTransactions: false, log },
)
const { ctx } = pds
relay.enrolled.add(peersOf(ctx)!.nodeId)
const { did } = await createAccount(pds, 'ann')
await relay.disappear()

const insert = (owner: string, count: number) => {
  const rows = Array.from({ length: count }, (_, i) => [
    owner,
    `phone ${i}`,
    KEY,
    `${owner} ${i}`,
    'org.example',
    0,
    `handle ${owner} ${i}`,
    0,
  ])
  return ctx.db.run(
    sql`INSERT INTO push_registration (owner, device_id, public_key, token, topic, is_ping, handle, registered_at) VALUES ${sqlRows(rows)}`,
  )
}
const KEY = 'did:key:zDnaeakVMhCyjHT88Wh5mutjfRFwGHHtNbYt57WR4NFtvPVTG'
await insert(did, DEVICES)

/** What one event costs, with the median of its time in milliseconds. */
async function eventCosts({ ctx: { db } }: TestPds): Promise<{ statements: number; rows: number; millis: number }> {
  const before = { ...db.counters }
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now()
    await db.transaction((tx) => enqueuePush(ctx, tx, did as Did, message))
    times.push(performance.now() - startedAt)
  }
  const { statements, rows } = db.counters
  return {
    statements: (statements - before.statements) / ROUNDS,
    rows: (rows - before.rows) / ROUNDS,
    millis: times.toSorted((a, b) => a - b)[ROUNDS / 2]!,
  }
}

const shown = ({ statements, rows, millis }: Awaited<ReturnType<typeof eventCosts>>) =>
  `${statements.toFixed(1)} statements, ${rows.toFixed(1)} rows, ${millis.toFixed(2)} ms`
const waiting = async () => (await ctx.steps.summaries()).find(({ kind }) => kind === 'push')!.waiting
const empty = () => ctx.db.run(sql`DELETE FROM step`)

// Nothing else reads or writes while events are counted.
await ctx.steps.stop()
await eventCosts(pds)
await empty()
console.log(`event for ${DEVICES} devices, alone: ${shown(await eventCosts(pds))}`)
await empty()
for (let account = 0; account < REGISTRATIONS / DEVICES; account++)
  await insert(`did:web:account${account}.test`, DEVICES)
console.log(`with ${REGISTRATIONS} other registrations: ${shown(await eventCosts(pds))}`)
while ((await waiting()) < 8000) await ctx.db.transaction((tx) => enqueuePush(ctx, tx, did as Did, message))
console.log(`with 8000 pushes waiting: ${shown(await eventCosts(pds))}, and ${await waiting()} wait`)
await empty()

Bun.gc(true)
await pds.restart()
const memory = () => (Bun.gc(true), Math.round(process.memoryUsage().rss / 1024 ** 2))
const rss = memory()
for (let sec = 0; sec < OUTAGE_SECS; sec++) {
  await pds.ctx.db.transaction((tx) => enqueuePush(pds.ctx, tx, did as Did, message))
  pds.clock.advance({ secs: 1 })
}
const rows = (await pds.ctx.db.get<{ count: number }>(sql`SELECT count(*) AS count FROM step`))!.count
console.log(
  `after ${OUTAGE_SECS} s without the relay, ${OUTAGE_SECS * DEVICES} pushes asked for: ${rows} rows, ${memory() - rss} MiB more`,
)
