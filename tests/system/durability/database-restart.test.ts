/** PostgreSQL is killed with -9 and started again under load: no answered write is lost, and none is made twice. */
import { expect, test } from 'bun:test'
import { verifyEverything } from '../../../src/features/operations/backup/backup.ts'
import { createAccount, holder, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { allSeen } from '../../support/clients/events.ts'
import { followRepo } from '../../support/history.ts'
import type { Answer } from '../../support/clients/http.ts'
import { startServer } from '../../support/servers/postgres.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { until } from '../../support/until.ts'

const KILLS = Number(process.env['DATABASE_KILLS'] ?? 2)
const NODES = 3
const WRITERS = 8

test(
  `after ${KILLS} kills of the database every answered write is there once, at each of ${NODES} nodes`,
  async () => {
    const server = await startServer()
    await server.createDatabase('holdfast')
    const databaseUrl = server.url('holdfast')
    try {
      await using cluster = await startCluster(NODES, { rateLimit: { enabled: false } }, { at: databaseUrl })
      const accounts = await Promise.all(
        Array.from({ length: 3 }, (_, i) => createAccount(cluster.nodes[0]!, `writer${i}`)),
      )
      const subscribers = cluster.nodes.map(({ url }) => new Subscriber(url, '?cursor=0'))
      const written: { account: TestAccount; text: string; answer: Answer }[] = []
      let isOver = false
      const writing = Promise.all(
        Array.from({ length: WRITERS }, async (_, w) => {
          for (let i = 0; !isOver; i++) {
            const account = accounts[(w + i) % accounts.length]!
            const text = `${w} ${i}`
            const record = { text, createdAt: new Date().toISOString() }
            const answer = await holder(cluster.nodes[(w + i) % NODES]!, account).call(
              'com.atproto.repo.createRecord',
              {
                json: { repo: account.did, collection: 'app.bsky.feed.post', record },
              },
            )
            written.push({ account, text, answer })
            // A client that is told to come back does not come at once.
            if (answer.status === 503) await Bun.sleep(50)
          }
        }),
      )
      writing.catch(() => undefined)
      const healthIs = (status: number) =>
        until(
          async () => {
            // A node looks again after five seconds.
            cluster.clock.advance({ secs: 6 })
            return (await xrpc(cluster.nodes[1]!, '_health')).status === status
          },
          { maxPauseMillis: 100 },
        )
      const accepted = () => written.filter(({ answer }) => answer.status === 200).length
      for (let kill = 0; kill < KILLS; kill++) {
        const before = accepted()
        await until(() => accepted() >= before + 40)
        await server.crash()
        if (kill === 0) await healthIs(503)
        await server.restart()
        await healthIs(200)
      }
      const before = accepted()
      await until(() => accepted() >= before + 40)
      isOver = true
      await writing

      for (const { answer } of written) {
        expect([200, 503]).toContain(answer.status)
        if (answer.status === 503) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      }
      const stored = new Map<string, number>()
      for (const { did } of accounts)
        for (let cursor: string | undefined = ''; cursor !== undefined;) {
          const { body } = await xrpc(
            cluster.nodes[1]!,
            `com.atproto.repo.listRecords?repo=${did}&collection=app.bsky.feed.post&limit=100&cursor=${cursor}`,
          )
          for (const { value } of body.records)
            stored.set(`${did} ${value.text}`, (stored.get(`${did} ${value.text}`) ?? 0) + 1)
          cursor = body.cursor
        }
      for (const { account, text, answer } of written) {
        const times = stored.get(`${account.did} ${text}`) ?? 0
        if (answer.status === 200) expect([text, times]).toEqual([text, 1])
        else expect(times).toBeLessThanOrEqual(1)
      }
      const heard = await Promise.all(
        subscribers.map((subscriber) => allSeen(cluster.nodes[0]!, subscriber).then(() => subscriber)),
      )
      const [frames, ...framesElsewhere] = heard.map(({ messages }) =>
        messages.map(({ bytes }) => bytes.toString('hex')),
      )
      for (const others of framesElsewhere) expect(others).toEqual(frames!)
      for (const { did } of accounts) {
        const { body } = await xrpc(cluster.nodes[1]!, `com.atproto.sync.getLatestCommit?did=${did}`)
        expect((await followRepo(subscribers[0]!.messages, did)).head).toBe(body.cid)
      }
      const faults: string[] = []
      await verifyEverything(cluster.nodes[0]!.ctx, { onFault: (fault) => faults.push(fault), quick: true })
      expect(faults).toEqual([])
    } finally {
      server.stop()
    }
  },
  KILLS * 60_000,
)
