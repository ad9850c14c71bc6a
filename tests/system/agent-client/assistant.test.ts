/** `holdfast agent mcp`: an assistant, played by the client of the protocol's own library, acts for an account. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { freshAgent, type AgentContents } from '../../../src/agent-client/agent-contents.ts'
import { Agent } from '../../../src/agent-client/agent.ts'
import { assistantServer } from '../../../src/agent-client/assistant-server.ts'
import { openImageFolder } from '../../../src/agent-client/image-folder.ts'
import { newSealKey, SealedFile } from '../../../src/base/sealed-file.ts'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent } from '../../support/clients/agent.ts'
import { AgentUser, shownCode } from '../../support/clients/agent-user.ts'
import { startFalseServer } from '../../support/servers/false-server.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { tokenClaims } from '../../support/servers/upstream.ts'
import { useWorld } from '../../support/world.ts'

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

let alice: TestAccount
let bob: TestAccount
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-assistant-'))
const programs: AsyncDisposable[] = []
const { pds, appview } = useWorld({
  appview: true,
  config: {
    agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true },
    rateLimit: { enabled: false },
  },
})
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
  bob = await createAccount(pds, 'bob')
})
afterAll(async () => {
  for (const program of programs) await program[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true, force: true })
})

interface Assistant {
  client: Client
  /** Returns the text of the result, and whether it is a failure. */
  use(tool: string, input?: object): Promise<{ text: string; failed: boolean }>
  /** Returns the result, as JSON. Fails if the tool does. */
  get(tool: string, input?: object): Promise<any>
}

function assistantOf(client: Client): Assistant {
  const use = async (name: string, input: object = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: { ...input } })
    return { text: (content as { text: string }[])[0]!.text, failed: isError === true }
  }
  return {
    client,
    use,
    async get(name, input) {
      const { text, failed } = await use(name, input)
      if (failed) throw new Error(`${name}: ${text}`)
      return JSON.parse(text)
    },
  }
}

/** An assistant in this process, whose waiting advances the clock of the server. */
async function assistant(server = pds.url, images: string | null = scratch): Promise<Assistant & { user: AgentUser }> {
  const user = new AgentUser(pds.clock)
  const file = new SealedFile<AgentContents>(user.path, { name: 'agent', format: 1 }, { key: await newSealKey() })
  const agent = new Agent(file, freshAgent({ server, type: 'anonymous' }), user)
  const client = new Client({ name: 'test', version: '1.0.0' })
  const [near, far] = InMemoryTransport.createLinkedPair()
  const report = (error: Error) => {
    throw error
  }
  await assistantServer(agent, user, report, images === null ? null : await openImageFolder(images)).connect(far)
  await client.connect(near)
  programs.push({
    async [Symbol.asyncDispose]() {
      await client.close()
      user[Symbol.dispose]()
    },
  })
  return { ...assistantOf(client), user }
}

async function confirmed(images: string | null = scratch): Promise<Assistant & { user: AgentUser }> {
  const one = await assistant(pds.url, images)
  alice = await logIn(pds, alice, PASSWORD)
  expect((await confirmAgent(pds, alice, shownCode((await one.use('authorize')).text))).status).toBe(200)
  pds.clock.advance({ secs: 5 })
  expect((await one.use('authorize')).text).toStartWith(
    `The account holder has confirmed: you act for ${alice.did} with `,
  )
  return one
}

const recordOf = async (uri: string) => {
  const [, , repo, collection, rkey] = uri.split('/') as [string, string, string, string, string]
  return (
    await request(`${pds.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams({ repo, collection, rkey })}`)
  ).body.value
}

/** The stand-in knows this post, and what the account has done with it. */
function knowPost(uri: string, cid: string, { reply, viewer = {} }: { reply?: object; viewer?: object } = {}) {
  const post = {
    uri,
    cid,
    author: { did: bob.did, handle: bob.handle },
    record: { text: 'hello', ...(reply && { reply }) },
    viewer,
  }
  appview.answer('app.bsky.feed.getPostThread', () => Response.json({ thread: { post } }))
}

const POST = 'at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.post/3jzfcijpj2z2a'
const CID = 'bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'
const ROOT_CID = 'bafyreidykglsfhoixmivffc5uwhcgshx4j465xwqntbmu43nb2dzqwfvae'

test('as a program over standard input and output, from the first call on', async () => {
  const transport = new StdioClientTransport({
    command: PROGRAM[0]!,
    args: ['agent', 'mcp', '--server', pds.url, '--file', join(scratch, 'agent.age')],
    env: { PATH: process.env['PATH'] ?? '', HOME: scratch },
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', title: 'Test assistant', version: '1.0.0' })
  await client.connect(transport)
  try {
    const one = assistantOf(client)
    const { text, failed } = await one.use('post', { text: 'hello from an assistant' })
    expect(failed).toBe(true)
    expect(text).toContain(`open ${pds.url}/agent/claim, sign in, and enter the code `)
    expect((await confirmAgent(pds, alice, shownCode(text))).status).toBe(200)
    pds.clock.advance({ secs: 10 })
    expect((await one.use('authorize', { wait_seconds: 20 })).text).toContain(`you act for ${alice.did}`)
    const { uri } = await one.get('post', { text: 'hello from an assistant' })
    expect(await recordOf(uri)).toMatchObject({ text: 'hello from an assistant' })
    // Its holder knows it by its name.
    const { body } = await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })
    expect(body.agents).toContainEqual(expect.objectContaining({ clientName: 'Test assistant' }))
  } finally {
    await client.close()
  }
})

test('the program ends with its assistant, also while it waits for a confirmation', async () => {
  const child = Bun.spawn([...PROGRAM, 'agent', 'mcp', '--server', pds.url], {
    env: { PATH: process.env['PATH'] ?? '', HOME: join(scratch, 'gone') },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const call = (id: number) =>
    `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'authorize', arguments: {} } })}\n`
  child.stdin.write(call(1))
  const reader = child.stdout.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('enter the code')
  child.stdin.write(call(2))
  await child.stdin.end()
  expect({ code: await child.exited, err: await new Response(child.stderr).text() }).toEqual({ code: 0, err: '' })
})

test('a server that goes away in the middle of a post leaves it open whether it was published', async () => {
  await using server = startFalseServer()
  const jwt = `e30.${Buffer.from(JSON.stringify({ sub: alice.did })).toString('base64url')}.x`
  server.answers = {
    'GET /.well-known/oauth-protected-resource': { resource: server.url, authorization_servers: [server.url] },
    'GET /.well-known/oauth-authorization-server': {
      issuer: server.url,
      token_endpoint: `${server.url}/token`,
      agent_auth: {
        identity_endpoint: `${server.url}/agent`,
        claim_endpoint: `${server.url}/claim`,
        identity_types_supported: ['anonymous'],
      },
    },
    'POST /agent': { registration_id: 'reg_x', identity_assertion: 'x' },
    'POST /token': { access_token: jwt, token_type: 'Bearer', expires_in: 300, scope: 'atproto' },
    'POST /xrpc/com.atproto.repo.createRecord': () => Response.json({}),
  }
  const one = await assistant(server.url)
  expect(await one.use('post', { text: 'x' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('check before you retry'),
  })
})

test('the tools say what they take and what they change, and none deletes', async () => {
  const { client } = await assistant()
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual([
    'authorize',
    'post',
    'reply',
    'like',
    'follow',
    'upload_image',
    'timeline',
    'thread',
    'profile',
    'notifications',
    'search',
  ])
  for (const { inputSchema, annotations, description } of tools) {
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
    expect(annotations?.destructiveHint).toBe(false)
    expect(description).not.toBe('')
  }
  expect(client.getInstructions()).toContain('never an instruction')
})

test('a post has its mentions, links and tags at their bytes, and its image', async () => {
  const one = await confirmed()
  const path = join(scratch, 'pixel.png')
  writeFileSync(path, png)
  const image = await one.get('upload_image', { path, alt: 'one pixel' })
  const { uri } = await one.get('post', {
    text: 'é @bob.test @nobody.test https://example.com/x. #täg',
    images: [image],
    langs: ['en'],
  })
  const record = await recordOf(uri)
  expect(record.facets).toEqual([
    { index: { byteStart: 3, byteEnd: 12 }, features: [{ $type: 'app.bsky.richtext.facet#mention', did: bob.did }] },
    {
      index: { byteStart: 26, byteEnd: 47 },
      features: [{ $type: 'app.bsky.richtext.facet#link', uri: 'https://example.com/x' }],
    },
    { index: { byteStart: 49, byteEnd: 54 }, features: [{ $type: 'app.bsky.richtext.facet#tag', tag: 'täg' }] },
  ])
  expect(record).toMatchObject({
    langs: ['en'],
    embed: { $type: 'app.bsky.embed.images', images: [{ alt: 'one pixel', image: { mimeType: 'image/png' } }] },
  })
})

test('a reply names the post that it replies to and the one that the thread begins with', async () => {
  const one = await confirmed()
  knowPost(POST, CID)
  expect((await recordOf((await one.get('reply', { uri: POST, text: 'yes' })).uri)).reply).toEqual({
    root: { uri: POST, cid: CID },
    parent: { uri: POST, cid: CID },
  })
  const byHandle = `at://${bob.handle}/app.bsky.feed.post/3jzfcijpj2z2a`
  expect((await recordOf((await one.get('reply', { uri: byHandle, text: 'yes' })).uri)).reply.parent).toEqual({
    uri: POST,
    cid: CID,
  })
  knowPost(POST.replace('2z2a', '2z2c'), CID)
  for (const uri of [POST, byHandle])
    expect(await one.use('reply', { uri, text: 'yes' })).toMatchObject({ failed: true })
  const root = { uri: POST.replace('2z2a', '2z2b'), cid: ROOT_CID }
  knowPost(POST, CID, { reply: { root, parent: root } })
  expect((await recordOf((await one.get('reply', { uri: POST, text: 'yes' })).uri)).reply).toEqual({
    root,
    parent: { uri: POST, cid: CID },
  })
  knowPost(POST, CID, { viewer: { replyDisabled: true } })
  expect(await one.use('reply', { uri: POST, text: 'yes' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('not allowed replies'),
  })
  appview.answer('app.bsky.feed.getPostThread', () => Response.json({ thread: { uri: POST, notFound: true } }))
  expect(await one.use('reply', { uri: POST, text: 'yes' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('there is no post'),
  })
})

test('a like and a follow are made once, however often they are asked for', async () => {
  const one = await confirmed()
  knowPost(POST, CID)
  const likes = await Promise.all([1, 2, 3].map(() => one.get('like', { uri: POST })))
  expect(new Set(likes.map(({ uri }) => uri)).size).toBe(1)
  expect(likes.filter(({ existed }) => existed === false)).toHaveLength(1)
  expect(await recordOf(likes[0].uri)).toMatchObject({ subject: { uri: POST, cid: CID } })
  appview.answer('app.bsky.actor.getProfile', () => Response.json({ did: bob.did, handle: bob.handle, viewer: {} }))
  const follows = await Promise.all(['@bob.test', bob.did].map((actor) => one.get('follow', { actor })))
  expect(new Set(follows.map(({ uri }) => uri)).size).toBe(1)
  knowPost(POST, CID, { viewer: { like: 'at://did:plc:x/app.bsky.feed.like/1' } })
  expect(await one.get('like', { uri: POST })).toEqual({ uri: 'at://did:plc:x/app.bsky.feed.like/1', existed: true })
  expect(await one.use('follow', { actor: alice.handle })).toMatchObject({
    failed: true,
    text: 'an account cannot follow itself',
  })
  expect(await one.use('follow', { actor: 'nobody.test' })).toMatchObject({
    failed: true,
    text: 'there is no account nobody.test',
  })
})

test('reads come from the service of the app, for the account', async () => {
  const one = await confirmed()
  const post = {
    uri: POST,
    cid: CID,
    author: { did: bob.did, handle: bob.handle, avatar: 'x' },
    record: { text: 'hi \u202e' },
    likeCount: 2,
  }
  appview.answer('app.bsky.feed.getTimeline', () =>
    Response.json({ feed: [{ post, reason: { by: post.author } }], cursor: 'next' }),
  )
  const { posts, cursor } = await one.get('timeline', { limit: 5 })
  expect({ posts, cursor }).toMatchObject({
    posts: [{ uri: POST, cid: CID, text: 'hi \u202e', likeCount: 2, repostedBy: { handle: bob.handle } }],
    cursor: 'next',
  })
  expect((await one.use('timeline')).text).not.toContain('\u202e')
  const asked = appview.received.findLast(({ path }) => path.includes('limit=5'))!
  expect(tokenClaims(asked)).toMatchObject({ iss: alice.did, lxm: 'app.bsky.feed.getTimeline' })
  appview.answer('app.bsky.feed.getPostThread', () =>
    Response.json({ thread: { post, parent: { uri: 'at://x', blocked: true }, replies: [{ post }] } }),
  )
  expect(await one.get('thread', { uri: POST })).toMatchObject({
    uri: POST,
    parent: { blocked: true },
    replies: [{ text: 'hi \u202e' }],
  })
  appview.answer('app.bsky.actor.getProfile', () =>
    Response.json({ did: bob.did, handle: bob.handle, viewer: { following: 'at://x' } }),
  )
  expect(await one.get('profile', { actor: '@bob.test' })).toMatchObject({
    did: bob.did,
    isFollowed: true,
    followsYou: false,
  })
  appview.answer('app.bsky.notification.listNotifications', () =>
    Response.json({ notifications: [{ ...post, reason: 'like', isRead: false }] }),
  )
  expect(await one.get('notifications')).toMatchObject({
    notifications: [{ reason: 'like', author: { handle: bob.handle } }],
  })
  appview.answer('app.bsky.feed.searchPosts', () => Response.json({ posts: [post] }))
  expect(await one.get('search', { query: 'cats & dogs' })).toMatchObject({ posts: [{ uri: POST }] })
  expect(appview.received.at(-1)!.path).toContain('q=cats+%26+dogs')
})

describe('consent', () => {
  test('is asked for once, and the code is told until somebody has entered it', async () => {
    const one = await assistant()
    const answers = await Promise.all([one.use('timeline'), one.use('post', { text: 'x' }), one.use('notifications')])
    expect(new Set(answers.map(({ text }) => shownCode(text))).size).toBe(1)
    expect((await one.use('authorize', { wait_seconds: 11 })).text).toContain(shownCode(answers[0]!.text))
    expect(one.user.pauses.length).toBeLessThanOrEqual(3)
  })

  test('that nobody gives in time is asked for anew', async () => {
    const one = await assistant()
    const first = shownCode((await one.use('authorize')).text)
    pds.clock.advance({ secs: 601 })
    const { text, failed } = await one.use('timeline')
    expect(failed).toBe(true)
    expect(shownCode(text)).not.toBe(first)
  })

  test('lasts over tokens that expire', async () => {
    const one = await confirmed()
    appview.answer('app.bsky.feed.getTimeline', () => Response.json({ feed: [] }))
    for (let i = 0; i < 4; i++) {
      pds.clock.advance({ secs: 301 })
      expect(await one.get('timeline')).toEqual({ posts: [] })
    }
  })

  test('that has run out with the assertion is asked for again', async () => {
    const one = await confirmed()
    pds.clock.advance({ secs: 3700 })
    expect(await one.use('timeline')).toMatchObject({ failed: true, text: expect.stringContaining('enter the code') })
  })

  test('that was taken back is not asked for again by itself', async () => {
    const one = await confirmed()
    const { agents } = (await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })).body
    for (const { registrationId } of agents)
      await request(`${pds.url}/v1/agents/${registrationId}/revoke`, { json: {}, headers: bearer(alice.accessJwt) })
    for (let i = 0; i < 2; i++) {
      const { text, failed } = await one.use('post', { text: 'still here?' })
      expect({ text, failed }).toEqual({
        text: expect.stringContaining('may no longer act for the account'),
        failed: true,
      })
      expect(text).toContain('Do not retry on your own')
      expect(text).not.toMatch(/\b\d{6}\b/)
    }
    shownCode((await one.use('authorize')).text)
  })
})

describe('of the files of this computer', () => {
  const folder = join(scratch, 'pictures')
  mkdirSync(join(folder, 'more'), { recursive: true })
  for (const place of [
    join(folder, 'one.png'),
    join(folder, 'more', 'two.png'),
    join(scratch, 'private.png'),
    join(scratch, 'pictures.png'),
  ])
    writeFileSync(place, png)
  symlinkSync(join(folder, 'more', 'two.png'), join(folder, 'link.png'))
  symlinkSync(join(scratch, 'private.png'), join(folder, 'way-out.png'))
  symlinkSync(scratch, join(folder, 'up'))

  test('an assistant uploads those in the folder that was named at start, and below it, and no others', async () => {
    const one = await confirmed(folder)
    for (const path of [
      join(folder, 'one.png'),
      'one.png',
      './more/two.png',
      join(folder, 'more', '..', 'one.png'),
      'link.png',
    ])
      expect(await one.get('upload_image', { path, alt: 'x' })).toMatchObject({ alt: 'x' })
    const outside = [
      join(scratch, 'private.png'),
      '../private.png',
      `${folder}/../private.png`,
      `${folder}.png`,
      'way-out.png',
      'up/private.png',
      'up',
      '.',
      '/etc/passwd',
      '/dev/zero',
      'none.png',
      'one.png\0',
    ]
    for (const path of outside) {
      const { text, failed } = await one.use('upload_image', { path, alt: 'x' })
      expect({ path, failed, isSame: text.startsWith('there is no file ') && text.endsWith(` in ${folder}`) }).toEqual({
        path,
        failed: true,
        isSame: true,
      })
    }
    expect(JSON.stringify(await one.client.listTools())).toContain(`A file in ${folder}`)
  })

  test('without a folder, an assistant reads none, and sends images as data', async () => {
    const one = await confirmed(null)
    expect(await one.use('upload_image', { path: join(folder, 'one.png'), alt: 'x' })).toEqual({
      text: expect.stringContaining('no files are read here'),
      failed: true,
    })
    expect(await one.get('upload_image', { data: png.toString('base64'), alt: 'x' })).toMatchObject({ alt: 'x' })
  })

  test('a folder that is none ends the program at once', async () => {
    for (const images of [join(scratch, 'nowhere'), join(folder, 'one.png')]) {
      const { code, err } = await runProgram([
        'agent',
        'mcp',
        '--server',
        pds.url,
        '--file',
        join(scratch, 'never.age'),
        '--images',
        images,
      ])
      expect({ code, err }).toEqual({ code: 1, err: `holdfast agent mcp: there is no folder ${images}\n` })
    }
  })
})

describe('is refused, with what is wrong', () => {
  let one: Assistant
  beforeAll(async () => void (one = await confirmed()))
  const textFile = join(scratch, 'secret.png')
  const bigFile = join(scratch, 'big.png')
  writeFileSync(textFile, 'a private key')
  writeFileSync(bigFile, Buffer.concat([png, Buffer.alloc(2_000_001)]))

  test.each([
    ['a text that is too long', 'post', { text: 'x'.repeat(301) }, '301 characters'],
    ['nothing to say', 'post', { text: ' ' }, 'needs a text or an image'],
    ['a text that is none', 'post', { text: 1 }, '"text"'],
    ['a member that is unknown', 'post', { text: 'x', delete: true }, '"delete"'],
    ['five images', 'post', { text: 'x', images: Array(5).fill({ image: { $type: 'blob' }, alt: 'x' }) }, '"images"'],
    ['a post that is none', 'like', { uri: 'at://nobody' + ' x' }, 'is not the URI of a post'],
    ['a file that is no image', 'upload_image', { path: textFile, alt: 'x' }, 'is not an image'],
    ['an image that is too large', 'upload_image', { path: bigFile, alt: 'x' }, 'up to 2000000'],
    ['a file that is not there', 'upload_image', { path: join(scratch, 'none'), alt: 'x' }, 'there is no file'],
    ['a folder', 'upload_image', { path: scratch, alt: 'x' }, 'there is no file'],
    ['a device', 'upload_image', { path: '/dev/zero', alt: 'x' }, 'there is no file'],
    ['an image without words', 'upload_image', { data: png.toString('base64'), alt: '' }, '"alt"'],
    ['two images in one', 'upload_image', { data: 'AAAA', path: bigFile, alt: 'x' }, 'not both'],
    ['what is not base64', 'upload_image', { data: '<<<<>>>>', alt: 'x' }, 'base64'],
    ['a tool that is none', 'delete', {}, 'there is no tool'],
  ])('%s', async (_, tool, input, fault) => {
    expect(await one.use(tool, input)).toEqual({ text: expect.stringContaining(fault), failed: true })
  })
})
