/** What an event adds to the queue of pushes. */
import { expect, test } from 'bun:test'
import { enqueuePush } from '../../../src/features/push/notifications/notifications.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { leastCost } from '../../support/least-cost.ts'
import { MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'

const RELAY = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'
const message = {
  type: 'agent_claim_pending',
  title: 'An app asks',
  body: 'Somebody may act for you',
  data: { claimAttemptId: 'cla_1' },
}

const enqueue = ({ ctx }: TestPds, did: string) => ctx.db.transaction((tx) => enqueuePush(ctx, tx, did as Did, message))
const insert = (pds: TestPds, did: string, device: string, handle: string | null) =>
  pds.plant('push_registration', {
    owner: did,
    device_id: device,
    public_key: 'did:key:z',
    token: `${did} ${device}`,
    topic: 'org.example',
    is_ping: 0,
    handle,
    registered_at: pds.clock.now(),
  })
const steps = (pds: TestPds) => pds.rows('step', { kind: 'push' })

test('an event adds one push for each device that can be reached, and its words are not readable in the rows', async () => {
  await using pds = await startPds({ notifications: { relay: RELAY }, signingKeyMasterKey: MASTER_KEY })
  const [ann, ben] = [await createAccount(pds, 'ann'), await createAccount(pds, 'ben')]
  await insert(pds, ann.did, 'forgotten', null)
  pds.clock.advance({ secs: 601 })
  expect(await enqueue(pds, ann.did)).toBe(0)
  await insert(pds, ann.did, 'tablet', 'handle')
  await insert(pds, ann.did, 'new', null)
  await insert(pds, ben.did, 'phone', 'other')
  expect(await enqueue(pds, ann.did)).toBe(2)
  const queued = await steps(pds)
  expect(queued.map(({ did }) => did)).toEqual([ann.did, ann.did])
  for (const text of [message.title, message.body, 'cla_1']) expect(JSON.stringify(queued)).not.toContain(text)
})

test('without a relay an event asks the database nothing', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await insert(pds, ann.did, 'phone', 'handle')
  const { ctx } = pds
  const enqueued = () => ctx.db.transaction(async (tx) => enqueuePush(ctx, tx, ann.did as Did, message))
  expect(await leastCost(ctx.db, async () => expect(await enqueued()).toBe(0))).toBe(0)
})
