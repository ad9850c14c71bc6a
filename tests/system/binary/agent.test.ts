/**
 * The executable as the program of an assistant, and as that of a script: both act for an account of a server that is
 * the same executable.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent } from '../../support/clients/agent.ts'
import { shownCode } from '../../support/clients/agent-user.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, runProgram, startProgram, type RunningServer } from '../../support/servers/program.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-agent-binary-'))
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

let server: RunningServer
let publicUrl: string
let alice: TestAccount

beforeAll(async () => {
  const env = {
    SERVICE_PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(scratch, 'data'),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_LOG_LEVEL: 'debug',
    SERVICE_AGENT_AUTH_ANONYMOUS_ENABLED: 'true',
  }
  mkdirSync(join(scratch, 'empty'))
  server = await startProgram(['dev'], env, join(scratch, 'empty'))
  publicUrl = server.url.replace('127.0.0.1', 'localhost')
  alice = await createAccount(server, 'alice')
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true, force: true })
})

const file = (name: string) => join(scratch, `${name}.age`)
const revokeAll = async () => {
  const { agents } = (await request(`${server.url}/v1/agents`, { headers: bearer(alice.accessJwt) })).body
  for (const { registrationId } of agents)
    await request(`${server.url}/v1/agents/${registrationId}/revoke`, { json: {}, headers: bearer(alice.accessJwt) })
}

test('an assistant posts with a picture, until the account holder ends it', async () => {
  const transport = new StdioClientTransport({
    command: PROGRAM[0]!,
    args: ['agent', 'mcp', '--server', publicUrl, '--file', file('assistant'), '--images', scratch],
    env: { HOME: scratch },
    stderr: 'pipe',
  })
  let errors = ''
  transport.stderr!.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport)
  let said = ''
  const use = async (name: string, input: object = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: { ...input } })
    const { text } = (content as [{ text: string }])[0]
    said += text
    return { text, failed: isError === true }
  }
  try {
    expect((await client.listTools()).tools).toHaveLength(11)
    const asked = await use('post', { text: 'too early' })
    expect(asked.failed).toBe(true)
    expect((await confirmAgent(server, alice, shownCode(asked.text))).status).toBe(200)
    expect((await use('authorize')).text).toContain(`you act for ${alice.did}`)

    writeFileSync(join(scratch, 'pixel.png'), png)
    const image = JSON.parse((await use('upload_image', { path: join(scratch, 'pixel.png'), alt: 'a pixel' })).text)
    const { uri } = JSON.parse((await use('post', { text: 'from @alice.test', images: [image] })).text)
    const [, , repo, collection, rkey] = uri.split('/') as [string, string, string, string, string]
    const read = await request(
      `${server.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams({ repo, collection, rkey })}`,
    )
    expect(read.body.value).toMatchObject({
      text: 'from @alice.test',
      facets: [{ features: [{ did: alice.did }] }],
      embed: { images: [{ alt: 'a pixel' }] },
    })

    const revoked = await runProgram(
      ['agent', 'revoke', '--account', 'alice.test', '--file', file('assistant')],
      { HOME: scratch },
      PROGRAM,
      PASSWORD,
    )
    expect(revoked).toMatchObject({ code: 0, err: '' })
    for (const text of ['still here?', 'and now?']) {
      const refused = await use('post', { text })
      expect(refused.failed).toBe(true)
      expect(refused.text).toMatch(
        /ended on this machine.* Tell the person. If they want it, "authorize" requests a new confirmation/,
      )
    }
    expect((await confirmAgent(server, alice, shownCode((await use('authorize')).text))).status).toBe(200)
    expect((await use('authorize')).text).toContain(`you act for ${alice.did}`)

    await revokeAll()
    for (const text of ['still here?', 'and now?'])
      expect(await use('post', { text })).toEqual({
        text: expect.stringContaining('may no longer act for the account'),
        failed: true,
      })
  } finally {
    await client.close()
  }
  const kept = readFileSync(file('assistant'), 'latin1')
  expect(kept).toStartWith('age-encryption.org/v1\n-> X25519 ')
  for (const text of [said, errors, kept, server.output()]) expect(text).not.toMatch(/eyJ[\w-]{20}|clm_[\w-]{20}/)
  expect(errors).toBe('')
}, 60_000)

test('an assistant that says what is no message gets on with the next one', async () => {
  const child = Bun.spawn([...PROGRAM, 'agent', 'mcp', '--server', publicUrl, '--file', file('confused')], {
    env: { HOME: scratch },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete_everything', arguments: {} } }
  for (const line of ['{', 'null', '[]', '{"jsonrpc":"1.0"}', '\u0000', 'x'.repeat(1_000_000), JSON.stringify(call)])
    child.stdin.write(`${line}\n`)
  const answers = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  let out = ''
  while (!out.includes('there is no tool')) {
    const { value, done } = await answers.read()
    if (done) break
    out += value
  }
  await child.stdin.end()
  expect(await child.exited).toBe(0)
  for (const line of out.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
  expect(out).toContain('there is no tool')
  expect(existsSync(file('confused'))).toBe(false)
}, 60_000)

test('a script registers, writes and is ended with the password of the account', async () => {
  const agent = (words: string[], input?: string) =>
    runProgram(['agent', ...words, '--file', file('script')], { HOME: scratch }, PROGRAM, input)
  const registered = await agent(['register', '--server', publicUrl])
  expect(registered).toMatchObject({ code: 0, err: '' })
  expect((await confirmAgent(server, alice, shownCode(registered.out))).status).toBe(200)
  expect(await agent(['wait'])).toMatchObject({ code: 0, out: expect.stringContaining(alice.did), err: '' })
  const record = { $type: 'app.bsky.feed.post', text: 'from a script', createdAt: new Date().toISOString() }
  const input = JSON.stringify({ repo: alice.did, collection: 'app.bsky.feed.post', record })
  expect(await agent(['call', 'com.atproto.repo.createRecord', '--post'], input)).toMatchObject({ code: 0, err: '' })
  const { out: token } = await agent(['token'])
  const seen = () => request(`${server.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(token.trim()) })
  expect((await seen()).status).toBe(200)
  expect(await agent(['revoke', '--account', 'alice.test'], `${PASSWORD}\n`)).toMatchObject({ code: 0, err: '' })
  expect((await seen()).status).toBe(401)
  expect(existsSync(file('script'))).toBe(false)
  expect(server.output()).not.toContain(token.trim())
}, 60_000)
