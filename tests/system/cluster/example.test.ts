/** The example of docs/cluster.md: who may join, and what clients notice when nodes come and go. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import { testDatabase } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/ports.ts'
import { MASTER_KEY } from '../../support/servers/config.ts'
import { startProgram } from '../../support/servers/program.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { startExample } from './example.ts'
import { thrownBy } from '../../support/thrown.ts'

test('no request fails while the nodes are replaced one after another, and subscribers go on where they were', async () => {
  await using example = await startExample({
    env: { SERVICE_NODE_DRAIN_SECS: '1', SERVICE_RATE_LIMIT_ENABLED: 'false' },
  })
  const agent = new AtpAgent({ service: example.url })
  await agent.createAccount({ handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' })
  const subscriber = new Subscriber(example.nodes[0]!.server.url, '?cursor=0')

  let isOver = false
  const written: string[] = []
  const writing = (async () => {
    while (!isOver) written.push((await agent.post({ text: `post ${written.length}` })).uri)
  })()
  for (const node of example.nodes) {
    const before = written.length
    node.server.signal('SIGTERM')
    expect(await node.server.exited).toBe(0)
    expect(written.length).toBeGreaterThan(before)
    await node.restart()
    await example.untilReady(example.nodes.length)
  }
  isOver = true
  await writing

  expect((await subscriber.closed).code).toBe(1001)
  const last = subscriber.seqs.at(-1)!
  const next = new Subscriber(example.nodes[2]!.server.url, `?cursor=${last}`)
  const isPost = ({ type, body }: { type: string; body: Record<string, unknown> }) =>
    type === '#commit' && (body['ops'] as { path: string }[])[0]?.path.startsWith('app.bsky.feed.post/')
  while (next.messages.filter(isPost).length + subscriber.messages.filter(isPost).length < written.length)
    await next.until(next.messages.length + 1)
  next.close()
  const seen = [...subscriber.messages, ...next.messages]
    .filter(isPost)
    .map(({ body }) => (body['ops'] as { path: string }[])[0]!.path)
  expect(seen).toEqual(written.map((uri) => uri.split('/').slice(-2).join('/')))
  for (const { server } of example.nodes) {
    const { data } = await new AtpAgent({ service: server.url }).com.atproto.repo.listRecords({
      repo: agent.assertDid,
      collection: 'app.bsky.feed.post',
      limit: 1,
    })
    expect(data.records[0]!.uri).toBe(written.at(-1)!)
  }
}, 120_000)

describe('a second server on a PostgreSQL database', () => {
  const bucket = {
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: 'blobs',
    SERVICE_BLOBS_S3_ENDPOINT: 'http://127.0.0.1:1',
    SERVICE_BLOBS_S3_ACCESS_KEY_ID: 'id',
    SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: 'secret',
  }
  const key = { SERVICE_SIGNING_KEY_MASTER_KEY: Buffer.from(MASTER_KEY.reveal()).toString('hex') }

  test.each([
    ['has a folder for its blobs', key],
    ['made its master key itself', bucket],
  ])('is refused if it %s', async (_, env) => {
    const { databaseUrl, drop } = await testDatabase()
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-second-'))
    const start = async (name: string, more: Record<string, string>) =>
      startProgram(
        ['dev'],
        {
          SERVICE_DATABASE_URL: databaseUrl,
          SERVICE_DATA_DIR: join(folder, name),
          PORT: String(await freePort()),
          ...more,
        },
        folder,
      )
    try {
      await using _first = await start('first', {})
      expect(await thrownBy(start('second', env))).toThrow(
        /needs the same signing_key_master_key and blobs.store = "s3"/,
      )
    } finally {
      await drop()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
