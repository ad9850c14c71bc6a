/**
 * The line of one node to the database carries nothing any more, and nobody closes it: the node says so to those who
 * wait, instead of making them wait, and the other node goes on.
 */
import { expect, test } from 'bun:test'
import { createAccount, holder, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { startDatabaseLine } from '../../support/faults/database-line.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'

const COLLECTION = 'com.example.note'

/** Every way in which a request uses the database. */
const requests: Record<string, (node: TestPds, account: TestAccount, text: string) => Promise<Answer>> = {
  'a read': (node, { did }) => xrpc(node, `com.atproto.repo.listRecords?repo=${did}&collection=${COLLECTION}`),
  'an export': (node, { did }) => xrpc(node, `com.atproto.sync.getRepo?did=${did}`),
  'a session': (node, account) => holder(node, account).call('com.atproto.server.getSession'),
  'a sign-in': (node, { handle }) =>
    xrpc(node, 'com.atproto.server.createSession', { json: { identifier: handle, password: PASSWORD } }),
  'a write': write,
  // It costs more than a node may spend before it knows what the others have spent.
  'a large write': (node, account) =>
    holder(node, account).call('com.atproto.repo.applyWrites', {
      json: {
        repo: account.did,
        writes: Array.from({ length: 20 }, () => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection: 'com.example.other',
          value: { $type: 'com.example.other' },
        })),
      },
    }),
  'the list of nodes': (node) => request(`${node.url}/v1/admin/cluster`, { headers: bearer(ADMIN_TOKEN) }),
  'an upload': (node, account) =>
    holder(node, account).call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: 'text',
      headers: { 'content-type': 'text/plain' },
    }),
}

function write(node: TestPds, account: TestAccount, text: string): Promise<Answer> {
  const json = { repo: account.did, collection: COLLECTION, record: { $type: COLLECTION, text } }
  return holder(node, account).call('com.atproto.repo.createRecord', { json })
}

for (const [what, isSilentToNew] of [
  ['everything', true],
  ['the connections that it had', false],
] as const)
  test(`while ${what} is silent, whoever waits is answered with 503, and nothing that is not known is told as done`, async () => {
    const { databaseUrl, drop } = await testDatabase()
    await using line = await startDatabaseLine(databaseUrl)
    await using cluster = await startCluster(
      1,
      { rateLimit: { writePointsHourly: 400 } },
      { at: databaseUrl, databasePace: 1 / 4 },
    )
    const [other] = cluster.nodes as [TestPds]
    const node = await cluster.add({ databaseUrl: line.databaseUrl })
    const account = await createAccount(other, 'alice')
    expect((await write(node, account, 'before')).status).toBe(200)

    let writes = 0
    const ask = async (name: string) => {
      const text = `write ${writes++} at the silent node`
      const answer = await requests[name]!(node, account, text)
      if (answer.status === 503) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      // The line is restored when everybody has an answer, and perhaps found again on new connections before.
      else expect([isSilentToNew, name, answer.status]).toEqual([false, name, 200])
      return { name, text, status: answer.status }
    }
    if (isSilentToNew) line.silence()
    else line.freeze()
    const waiting = Object.keys(requests).map(ask)
    expect((await write(other, account, 'at the other node')).status).toBe(200)
    const answers = await Promise.all(waiting)
    expect(answers.find(({ name }) => name === 'a read')!.status).toBe(503)
    if (isSilentToNew) {
      answers.push(...(await Promise.all(Object.keys(requests).map(ask))))
      expect((await fetch(`${node.url}/readyz`)).status).toBe(503)
    }

    line.speak()
    await until(async () => {
      // The node looks again after five seconds.
      cluster.clock.advance({ secs: 6 })
      return (await fetch(`${node.url}/readyz`)).status === 200
    })
    expect((await write(node, account, 'after')).status).toBe(200)
    await logIn(node, account, PASSWORD)
    const { body } = await xrpc(
      other,
      `com.atproto.repo.listRecords?repo=${account.did}&collection=${COLLECTION}&reverse=true`,
    )
    const texts = (body.records as { value: { text: string } }[]).map(({ value }) => value.text)
    for (const text of ['before', 'at the other node', 'after'])
      expect(texts.filter((each) => each === text)).toEqual([text])
    for (const { name, text, status } of answers) {
      const times = texts.filter((each) => each === text).length
      if (name === 'a write' && status === 200) expect([text, times]).toEqual([text, 1])
      else expect(times).toBeLessThanOrEqual(1)
    }
    line.cut()
    for (const each of cluster.nodes) await each.stop()
    await drop()
  })
