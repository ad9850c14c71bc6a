/** The stream as a real consumer follows it: every signature, tree and operation checked by the reference library. */
import { expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { followRepo } from '../../support/history.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'

const collection = 'com.example.note'
const note = (text: string) => ({ $type: collection, text })

const { pds } = useWorld()

const call = async (account: TestAccount, method: string, json: object) => {
  const answer = await account.call(`com.atproto.repo.${method}`, { json: { repo: account.did, ...json } })
  expect(answer.status).toBe(200)
  return answer.body
}

test('a consumer that checks everything sees each write once and in order, over a restart of the server', async () => {
  const alice = await createAccount(pds, 'alice')
  const consumer = new Consumer(pds.url, { startCursor: 0 })
  const keys: string[] = []
  for (let i = 0; i < 20; i++)
    keys.push((await call(alice, 'createRecord', { collection, record: note(`post ${i}`) })).uri.split('/').at(-1))
  for (const rkey of keys.slice(0, 5)) await call(alice, 'putRecord', { collection, rkey, record: note('changed') })
  // What is on its way is checked against the directory, which goes down with the server.
  await consumer.heard(({ event }) => event === 'update', 5)
  await pds.restart()
  for (const rkey of keys.slice(5, 10)) await call(alice, 'deleteRecord', { collection, rkey })
  const writes = keys.slice(10).map((rkey) => ({ $type: 'com.atproto.repo.applyWrites#delete', collection, rkey }))
  await call(alice, 'applyWrites', {
    writes: [
      ...writes,
      { $type: 'com.atproto.repo.applyWrites#create', collection, rkey: 'last', value: note('last') },
    ],
  })

  await consumer.heard((event) => event.event === 'create' && event.rkey === 'last')
  const seen = consumer.events.flatMap((event) =>
    event.event === 'create' || event.event === 'update' || event.event === 'delete'
      ? [`${event.event} ${event.rkey}`]
      : [],
  )
  expect(seen).toEqual([
    ...keys.map((rkey) => `create ${rkey}`),
    ...keys.slice(0, 5).map((rkey) => `update ${rkey}`),
    ...keys.slice(5).map((rkey) => `delete ${rkey}`),
    'create last',
  ])
  expect(consumer.faults).toEqual([])
  await consumer.stop()
})

test('a new account is told in four events: who it is, that it is active, its first commit, and its state', async () => {
  const reader = new Subscriber(pds.url)
  await reader.opened
  const bob = await createAccount(pds, 'bob')
  const messages = await reader.until(4)
  expect(messages.map(({ type }) => type)).toEqual(['#identity', '#account', '#commit', '#sync'])
  const [first] = reader.seqs
  expect(reader.seqs).toEqual([first!, first! + 1, first! + 2, first! + 3])
  const [identity, account, commit, sync] = messages.map(({ body }) => body)
  expect(identity).toMatchObject({ did: bob.did, handle: 'bob.test' })
  expect(account).toMatchObject({ did: bob.did, active: true })
  expect(commit).toMatchObject({ repo: bob.did, since: null, ops: [], blobs: [], rebase: false, tooBig: false })
  expect(commit).not.toHaveProperty('prevData')
  expect(sync).toMatchObject({ did: bob.did, rev: commit!['rev'] as string })
  reader.close()
})

test('writers side by side leave one linear history, each commit undone by its own blocks', async () => {
  const reader = new Subscriber(pds.url)
  await reader.opened
  const carol = await createAccount(pds, 'carol')
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      call(carol, 'createRecord', { collection, rkey: `k${i}`, record: note(`post ${i}`) }),
    ),
  )
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      i % 2
        ? call(carol, 'deleteRecord', { collection, rkey: `k${i}` })
        : call(carol, 'putRecord', { collection, rkey: `k${i}`, record: note('new') }),
    ),
  )
  const messages = await reader.until(4 + 80)
  const followed = await followRepo(messages, carol.did)
  expect([followed.commits, followed.records.size]).toEqual([81, 20])
  const { body } = await carol.call(`com.atproto.sync.getLatestCommit?did=${carol.did}`)
  expect(body).toEqual({ cid: followed.head, rev: followed.rev })
  reader.close()
})
