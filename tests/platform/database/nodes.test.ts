/** One service on several servers: whatever two of them are asked at once has one outcome, as on one. */
import { beforeAll, expect, test } from 'bun:test'
import { verifyEverything } from '../../../src/features/operations/backup/backup.ts'
import { createAccount, holder, logIn, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { bearer } from '../../support/clients/http.ts'
import { until } from '../../support/until.ts'
import { useCluster } from '../../support/cluster-world.ts'

const {
  cluster,
  nodes: [first],
} = useCluster(2, { rateLimit: { enabled: false } })
let alice: TestAccount
beforeAll(async () => {
  alice = await createAccount(first, 'alice')
})

/** The same request at every node in turn, all at once. */
const everywhere = <T>(times: number, ask: (url: { url: string }, i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: times }, (_, i) => ask(cluster.nodes[i % cluster.nodes.length]!, i)))

const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).toSorted((a, b) => a - b)

/** Rows of nodes that were not heard of for a day are deleted. */
const SOON = 4_102_444_800_000

const post = (text: string) => ({
  repo: alice.did,
  collection: 'app.bsky.feed.post',
  record: { text, createdAt: new Date(cluster.clock.now()).toISOString() },
})

async function expectSound(): Promise<void> {
  const faults: string[] = []
  await verifyEverything(cluster.nodes[0]!.ctx, { onFault: (fault) => faults.push(fault), quick: true })
  expect(faults).toEqual([])
}

test('an account of one node signs in, writes and is read at the other', async () => {
  const [first, second] = cluster.nodes
  expect((await xrpc(second!, 'com.atproto.server.getSession', { headers: bearer(alice.accessJwt) })).status).toBe(200)
  const written = await holder(second!, alice).call('com.atproto.repo.createRecord', {
    json: post('written at the second'),
  })
  expect(written.status).toBe(200)
  const [collection, rkey] = written.body.uri.split('/').slice(-2)
  const read = await xrpc(first!, `com.atproto.repo.getRecord?repo=${alice.did}&collection=${collection}&rkey=${rkey}`)
  expect(read.body.value.text).toBe('written at the second')
})

test('forty writers on one repository, at two nodes, are all answered, and the tree holds what is stored', async () => {
  const answers = await everywhere(40, (node, i) =>
    holder(node, alice).call('com.atproto.repo.createRecord', { json: post(`of writer ${i}`) }),
  )
  expect(statuses(answers)).toEqual(Array(40).fill(200))
  expect(new Set(answers.map(({ body }) => body.commit.rev)).size).toBe(40)
  const { body } = await xrpc(
    cluster.nodes[1]!,
    `com.atproto.repo.listRecords?repo=${alice.did}&collection=app.bsky.feed.post&limit=100`,
  )
  expect(body.records.length).toBe(41)
  await expectSound()
})

test('keys that nodes give at the same time are of different clock ids, and those of nodes before them are free again', async () => {
  await using busy = await startCluster(1)
  const [first] = busy.nodes
  await first!.ctx.db.run(sql`
    INSERT INTO node (id, name, version, started_at, heartbeat_at, clock_id)
    SELECT CAST(taken AS TEXT), 'other', '1', ${SOON}, ${SOON}, taken FROM generate_series(0, 1023) AS taken
    WHERE taken <> ${first!.ctx.db.cluster!.clockId} AND taken <> 7`)
  const { clockId } = (await busy.add()).ctx.db.cluster!
  expect([clockId, first!.ctx.db.cluster!.clockId === clockId]).toEqual([7, false])
  await busy.nodes[1]!.stop()
  expect((await busy.add()).ctx.db.cluster!.clockId).toBe(7)
  // Whatever the clock says, a key ends with the clock id.
  const account = await createAccount(busy.nodes[2]!, 'keyed')
  const { body } = await account.call('com.atproto.repo.createRecord', {
    json: { ...post('keyed'), repo: account.did },
  })
  expect(body.uri).toEndWith('2b')
})

test('of many who want one handle at two nodes, one has it', async () => {
  const answers = await everywhere(8, (node, i) =>
    xrpc(node, 'com.atproto.server.createAccount', {
      json: { handle: 'wanted.test', email: `${i}@wanted.example`, password: 'a long password' },
    }),
  )
  expect(statuses(answers)).toEqual([200, ...Array(7).fill(400)])
  await expectSound()
})

test('a mailed code that is used at two nodes at once is used once', async () => {
  await xrpc(first, 'com.atproto.server.requestPasswordReset', { json: { email: alice.email } })
  // Either node may send the mail.
  const resets = () => cluster.nodes.flatMap(({ mails }) => mails).filter(({ to }) => to === alice.email)
  await until(async () => {
    await first.runSteps()
    return resets().length > 0
  })
  const token = resets()
    .at(-1)!
    .text.match(/\b[A-Z2-7]{5}-[A-Z2-7]{5}\b/)![0]
  const answers = await everywhere(8, (node, i) =>
    xrpc(node, 'com.atproto.server.resetPassword', { json: { token, password: `a new password ${i}` } }),
  )
  expect(statuses(answers)).toEqual([200, ...Array(7).fill(400)])
  const right = answers.findIndex(({ status }) => status === 200)
  alice = await logIn(cluster.nodes[1]!, alice, `a new password ${right}`)
})

test('a commit waits three times for the database', async () => {
  const node = await startPds(
    { databaseUrl: cluster.databaseUrl, signingKeyMasterKey: MASTER_KEY },
    { sharesDatabase: true, strictTransactions: false, publicUrl: cluster.nodes[0]!.url },
  )
  const { counters } = node.ctx.db
  const waits: number[] = []
  for (let i = 0; i < 20; i++) {
    const before = counters.roundTrips
    expect(
      (await holder(node, alice).call('com.atproto.repo.createRecord', { json: post(`counted ${i}`) })).status,
    ).toBe(200)
    waits.push(counters.roundTrips - before)
  }
  // Some are made while events are numbered, and one in a while moves nodes out of the row of its repository.
  expect(Math.min(...waits)).toBe(3)
  await node[Symbol.asyncDispose]()
})

test('a node has eight connections to the database while transactions run beside each other, and six otherwise', async () => {
  const node = await startPds(
    { databaseUrl: cluster.databaseUrl, signingKeyMasterKey: MASTER_KEY },
    { sharesDatabase: true, publicUrl: cluster.nodes[0]!.url },
  )
  const writers = await Promise.all(Array.from({ length: 4 }, (_, i) => createAccount(first, `counted${i}`)))
  const connections = async () => {
    const known = await node.ctx.db.cluster!.nodes()
    return known.find(({ id }) => id === node.ctx.db.cluster!.node.id)!.connections
  }
  await Promise.all(
    Array.from({ length: 30 }, () => xrpc(node, 'com.atproto.server.getSession', { headers: bearer(alice.accessJwt) })),
  )
  expect(await connections()).toBeLessThanOrEqual(6)
  for (let round = 0; round < 20; round++)
    await Promise.all(
      writers.map(async (writer) => {
        const json = { ...post(`round ${round}`), repo: writer.did }
        expect((await holder(node, writer).call('com.atproto.repo.createRecord', { json })).status).toBe(200)
      }),
    )
  expect(await connections()).toBeLessThanOrEqual(8)
  await node[Symbol.asyncDispose]()
})

test('single statements, which number events and count for limits, wait for no read', async () => {
  const { db } = first.ctx
  const ended: string[] = []
  const reads = Array.from({ length: 5 }, () => db.get(sql`SELECT pg_sleep(1)`).then(() => ended.push('read')))
  await Promise.all(
    Array.from({ length: 30 }, () => db.cluster!.autocommit(sql`SELECT 1`).then(() => ended.push('single'))),
  )
  expect(ended).toEqual(Array<string>(30).fill('single'))
  await Promise.all(reads)
})

test('a read waits for no slow one, while a connection is without one', async () => {
  const { db } = first.ctx
  const slowOnes = sql`datname = current_database() AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()
    AND state = 'active' AND query_start < clock_timestamp() - INTERVAL '200 ms'`
  const slow: Promise<unknown>[] = []
  // Two connections are for single reads, and they share four with exports.
  for (let busy = 1; busy < 6; busy++) {
    slow.push(db.get(sql`SELECT pg_sleep(15)`))
    await until(
      async () =>
        (await db.cluster!.autocommit(sql`SELECT pid FROM pg_stat_activity WHERE ${slowOnes}`)).length === busy,
    )
    const quick = Array.from({ length: 30 }, () => db.get(sql`SELECT 1`))
    const longest = db.snapshot(({ get }) => get(sql`SELECT 1`))
    expect(await Promise.race([Promise.all([...quick, longest]).then(() => 'quick'), ...slow])).toBe('quick')
  }
  await db.cluster!.autocommit(sql`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${slowOnes}`)
  expect(await Promise.allSettled(slow)).toHaveLength(5)
})

test('a refresh token that is used at two nodes at once has one successor', async () => {
  const answers = await everywhere(8, (node) =>
    xrpc(node, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(alice.refreshJwt) }),
  )
  const tokens = answers
    .filter(({ status }) => status === 200)
    .map(({ body }) => JSON.parse(atob(body.refreshJwt.split('.')[1])).jti)
  expect(tokens.length).toBeGreaterThan(0)
  expect(new Set(tokens).size).toBe(1)
})
