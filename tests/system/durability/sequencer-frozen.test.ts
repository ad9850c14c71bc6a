/**
 * The node that numbers events is stopped in its tracks (SIGSTOP), as by a virtual machine that is paused: another one
 * takes over, and the first one numbers nothing more when it goes on.
 */
import { expect, test } from 'bun:test'
import { sequencerOf, startExample, type ExampleNode } from '../cluster/example.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'

const COLLECTION = 'com.example.note'
/** PostgreSQL ends a session that is silent for ten seconds. */
const MAX_MILLIS = 90_000

test(
  'a sequencer that freezes is replaced, and numbers nothing more when it thaws',
  async () => {
    await using cluster = await startExample({ env: { SERVICE_RATE_LIMIT_ENABLED: 'false' } })
    const frozen = await sequencerOf(cluster)
    const others = cluster.nodes.filter((node) => node !== frozen)
    const { body: account } = await request(`${others[0]!.server.url}/xrpc/com.atproto.server.createAccount`, {
      json: { handle: 'alice.test', email: 'alice@example.com', password: 'a long password' },
    })
    const written: string[] = []
    const writeAt = async ({ server }: ExampleNode) => {
      const json = {
        repo: account.did,
        collection: COLLECTION,
        record: { $type: COLLECTION, text: `${written.length}` },
      }
      const { status, body } = await request(`${server.url}/xrpc/com.atproto.repo.createRecord`, {
        json,
        headers: bearer(account.accessJwt),
      })
      expect(status).toBe(200)
      written.push(body.commit.cid)
    }
    const seenAt = async (node: ExampleNode) => {
      const subscriber = new Subscriber(node.server.url, '?cursor=0')
      const commits = ({ messages }: Subscriber) =>
        messages.flatMap(({ type, body }) => (type === '#commit' ? [String(body['commit'])] : []))
      await subscriber.untilSeen(() => commits(subscriber).at(-1) === written.at(-1))
      subscriber.close()
      // The first one belongs to the account.
      expect(commits(subscriber).slice(1)).toEqual(written)
      return subscriber.messages.map(({ bytes }) => bytes.toString('hex'))
    }

    for (const node of cluster.nodes) await writeAt(node)
    frozen.server.signal('SIGSTOP')
    for (let i = 0; i < 10; i++) await writeAt(others[i % 2]!)
    await seenAt(others[0]!)
    expect((await sequencerOf(cluster, others)).name).not.toBe(frozen.name)

    frozen.server.signal('SIGCONT')
    await cluster.untilReady(cluster.nodes.length)
    for (let i = 0; i < 9; i++) await writeAt(cluster.nodes[i % 3]!)
    const logs = await Promise.all(cluster.nodes.map(seenAt))
    expect(logs[1]).toEqual(logs[0]!)
    expect(logs[2]).toEqual(logs[0]!)
  },
  MAX_MILLIS,
)
