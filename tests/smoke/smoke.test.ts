/**
 * A journey through a live server, as a client and as a relay see it.
 *
 *   SMOKE_URL=https://pds.example.com SMOKE_IDENTIFIER=alice.example.com SMOKE_PASSWORD=… bun test tests/smoke
 *
 * Without credentials it makes an account, where sign-up is open or SMOKE_INVITE_CODE holds a code. Without SMOKE_URL
 * it starts a development server of its own. It removes the post it writes.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import { readCarWithRoot, verifyRepoCar } from '@atproto/repo'
import type { Cid } from '../../src/protocol/cid.ts'
import { freePort } from '../support/ports.ts'
import { type RunningServer, SOURCE, startProgram } from '../support/servers/program.ts'
import { Subscriber } from '../support/clients/subscriber.ts'
import { errorOf } from '../support/thrown.ts'

const { SMOKE_URL, SMOKE_IDENTIFIER, SMOKE_PASSWORD, SMOKE_INVITE_CODE } = process.env

const folder = mkdtempSync(join(tmpdir(), 'holdfast-smoke-'))
const text = `Smoke test of ${new Date().toISOString()}`
const bytes = new TextEncoder().encode(text)

let own: RunningServer | null = null
let agent: AtpAgent
let firehose: Subscriber

interface Commit {
  repo: string
  commit: Cid
  blocks: Uint8Array
  ops: { action: string; path: string; cid: Cid | null }[]
}

beforeAll(async () => {
  if (SMOKE_URL === undefined)
    own = await startProgram(['dev'], { PORT: String(await freePort()) }, folder, { program: SOURCE })
  agent = new AtpAgent({ service: SMOKE_URL ?? own?.url ?? '' })
  firehose = new Subscriber(agent.serviceUrl.origin)
  await firehose.opened
})

afterAll(async () => {
  firehose.close()
  await own?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** The commit that did something to a record, once it has come. */
async function commitOf(path: string, action: string) {
  for (let next = 0; ; next++) {
    const { type, body } = (await firehose.until(next + 1))[next]!
    const commit = body as unknown as Commit
    const op =
      type === '#commit' && commit.repo === agent.assertDid
        ? commit.ops.find((each) => each.action === action && each.path === path)
        : undefined
    if (op) return { ...commit, op }
  }
}

test('the server is healthy and says what it runs', async () => {
  const response = await fetch(new URL('/xrpc/_health', agent.serviceUrl))
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ version: expect.stringMatching(/^\S+ v\d+\.\d+\.\d+/), db: 'ok' })
})

test('the server describes itself', async () => {
  const { data } = await agent.com.atproto.server.describeServer()
  expect(data.did).toStartWith('did:')
  expect(data.availableUserDomains.length).toBeGreaterThan(0)
})

test('an account opens a session', async () => {
  if (SMOKE_IDENTIFIER !== undefined) {
    await agent.login({ identifier: SMOKE_IDENTIFIER, password: SMOKE_PASSWORD ?? '' })
  } else {
    const { data } = await agent.com.atproto.server.describeServer()
    const name = `smoke-${crypto.randomUUID().slice(0, 8)}`
    const handle = `${name}.${data.availableUserDomains[0]?.replace(/^\./, '')}`
    const password = crypto.randomUUID()
    await agent.createAccount({ handle, email: `${name}@example.com`, password, inviteCode: SMOKE_INVITE_CODE })
    await agent.login({ identifier: handle, password })
  }
  const { data } = await agent.com.atproto.server.getSession()
  expect(data.did).toBe(agent.assertDid)
})

test('a session is refreshed', async () => {
  const before = agent.session?.refreshJwt
  await agent.sessionManager.refreshSession()
  expect(agent.session?.refreshJwt).toBeString()
  expect(agent.session?.refreshJwt).not.toBe(before)
})

let post: { uri: string; cid: string }
const pathOf = (uri: string) => uri.split('/').slice(-2).join('/')

test('a post with a blob is written', async () => {
  const { data } = await agent.uploadBlob(bytes, { encoding: 'text/plain' })
  const { data: created } = await agent.com.atproto.repo.createRecord({
    repo: agent.assertDid,
    collection: 'app.bsky.feed.post',
    record: { $type: 'app.bsky.feed.post', text, createdAt: new Date().toISOString(), smoke: data.blob },
  })
  post = { uri: created.uri, cid: created.cid }
  const stored = await fetch(
    new URL(`/xrpc/com.atproto.sync.getBlob?did=${agent.assertDid}&cid=${data.blob.ref}`, agent.serviceUrl),
  )
  expect(await stored.text()).toBe(text)
})

test('the firehose carries its commit', async () => {
  const { commit, blocks, op } = await commitOf(pathOf(post.uri), 'create')
  expect(op.cid?.toString()).toBe(post.cid)
  const archive = await readCarWithRoot(blocks)
  expect(archive.root.toString()).toBe(commit.toString())
  expect(archive.blocks.entries().map(({ cid }) => cid.toString())).toContain(post.cid)
})

test('it is read back, alone and in the list', async () => {
  const rkey = post.uri.split('/').at(-1) ?? ''
  const { data } = await agent.com.atproto.repo.getRecord({
    repo: agent.assertDid,
    collection: 'app.bsky.feed.post',
    rkey,
  })
  expect(data).toMatchObject({ ...post, value: { text } })
  const { data: list } = await agent.com.atproto.repo.listRecords({
    repo: agent.assertDid,
    collection: 'app.bsky.feed.post',
    limit: 10,
  })
  expect(list.records).toContainEqual(expect.objectContaining(post))
})

test('the exported repository verifies and holds it', async () => {
  const { data: recommended } = await agent.com.atproto.identity.getRecommendedDidCredentials()
  const signingKey = (recommended.verificationMethods as { atproto: string }).atproto
  const { data: car } = await agent.com.atproto.sync.getRepo({ did: agent.assertDid })
  const { creates } = await verifyRepoCar(car, agent.assertDid, signingKey)
  const written = creates.find(({ collection, rkey }) => `${collection}/${rkey}` === pathOf(post.uri))
  expect(written?.cid.toString()).toBe(post.cid)
})

test('it is deleted, for readers and for the firehose', async () => {
  await agent.deletePost(post.uri)
  expect((await commitOf(pathOf(post.uri), 'delete')).op.cid).toBeNull()
  const rkey = post.uri.split('/').at(-1) ?? ''
  const reading = agent.com.atproto.repo.getRecord({ repo: agent.assertDid, collection: 'app.bsky.feed.post', rkey })
  expect(await errorOf(reading)).toMatchObject({ status: 400, error: 'RecordNotFound' })
})
