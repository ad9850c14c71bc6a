/**
 * The file with an agent's credential: damaged, shared by several programs, and written while the program is killed.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { AgentContents } from '../../../src/agent-client/agent-contents.ts'
import { Agent } from '../../../src/agent-client/agent.ts'
import { SealedFile } from '../../../src/base/sealed-file.ts'
import { AgentUser, shownCode } from '../../support/clients/agent-user.ts'
import { TestClock } from '../../support/clock.ts'
import { CLAIM, shownClaim, startFalseAgentServer } from '../../support/servers/false-agent-server.ts'
import type { FalseServer } from '../../support/servers/false-server.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { eventLoopTurns } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

const KILLS = 12

let server: FalseServer
let folder: string
let user: AgentUser
beforeEach(() => {
  server = startFalseAgentServer()
  folder = mkdtempSync(join(tmpdir(), 'holdfast-credential-'))
  user = new AgentUser(new TestClock())
})
afterEach(async () => {
  user[Symbol.dispose]()
  rmSync(folder, { recursive: true, force: true })
  await server[Symbol.asyncDispose]()
})

const path = () => join(folder, 'agent.age')
/** What the agent has written; the runtime may keep more in the home of a user. */
const files = () =>
  readdirSync(folder)
    .filter((name) => name.startsWith('agent'))
    .toSorted()
const keyOf = (file: string) => readFileSync(`${file}.key`, 'utf8').trim()
const contentsOf = (file: string): Promise<AgentContents> =>
  new SealedFile<AgentContents>(file, { name: 'agent', format: 1 }, { key: keyOf(file) }).read()
/** Run `holdfast agent` as a process of its own. */
const agent = (words: string[]) => runProgram(['agent', ...words, '--file', path()])

/** One sentence, and no stack of the program's own. */
const sentence = (text: string) => expect(text.trim().split('\n')).toHaveLength(1)

test('a file that is damaged is said to be so, and left as it is', async () => {
  await user.do(['register', '--server', server.url])
  const good = readFileSync(user.path)
  const damages: [string, Buffer][] = [
    ['empty', Buffer.alloc(0)],
    ...[1, 20, 60, 150, good.length - 17, good.length - 1].map((end): [string, Buffer] => [
      `cut at ${end}`,
      good.subarray(0, end),
    ]),
    ...[10, 40, 130, good.length - 100, good.length - 1].map((at): [string, Buffer] => {
      const flipped = Buffer.from(good)
      flipped[at]! ^= 1
      return [`changed at ${at}`, flipped]
    }),
    ['longer', Buffer.concat([good, Buffer.from('x')])],
  ]
  const asked = server.requests.length
  for (const [damage, bytes] of damages) {
    writeFileSync(user.path, bytes)
    for (const words of [['token'], ['call', 'com.atproto.server.getSession'], ['register'], ['wait']]) {
      const { code, out, err } = await user.run(words)
      expect({ damage, code, out, err }).toEqual({
        damage,
        code: 1,
        out: '',
        err: expect.stringContaining('the key does not open this agent'),
      })
      sentence(err)
    }
    expect(readFileSync(user.path).equals(bytes)).toBe(true)
  }
  expect(server.requests).toHaveLength(asked)
})

test('the file of another agent opens with its own key alone', async () => {
  await user.do(['register', '--server', server.url])
  using other = new AgentUser(new TestClock())
  await other.do(['register', '--server', server.url])
  copyFileSync(other.path, user.path)
  expect(await user.run(['token'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('the key does not open this agent'),
  })
})

test('what is no key is not registered with, nor shown', async () => {
  for (const wrong of ['', 'AGE-SECRET-KEY-1GARBAGE', 'a password that somebody has put there', '\u0000']) {
    writeFileSync(`${user.path}.key`, `${wrong}\n`, { mode: 0o600 })
    const { code, err } = await user.run(['register', '--server', server.url])
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`${user.path}.key holds no key`) })
    if (wrong !== '') expect(err).not.toContain(wrong)
    sentence(err)
  }
  expect(server.requests).toEqual([])
  expect(existsSync(user.path)).toBe(false)
})

test('a folder that cannot be written to is reported, and so is one in the place of the file', async () => {
  mkdirSync(path())
  const { code, err } = await agent(['register', '--server', server.url])
  expect(code).toBe(1)
  sentence(err)
})

test('only its owner reads what is written, whatever the umask', async () => {
  chmodSync(folder, 0o777)
  const { code } = await runProgram(['agent', 'register', '--server', server.url, '--file', path()], {}, [
    'sh',
    '-c',
    'umask 000; exec "$@"',
    'sh',
    ...PROGRAM,
  ])
  expect(code).toBe(0)
  expect(files().map((name) => [name, statSync(join(folder, name)).mode & 0o777])).toEqual([
    ['agent.age', 0o600],
    ['agent.age.key', 0o600],
  ])
})

test('several programs that register at once leave one agent, which opens', async () => {
  for (let round = 0; round < 2; round++) {
    rmSync(folder, { recursive: true })
    const runs = await Promise.all([1, 2, 3].map(() => agent(['register', '--server', server.url])))
    expect(runs.some(({ code }) => code === 0)).toBe(true)
    for (const { code, err } of runs) {
      expect([0, 1]).toContain(code)
      if (code === 1) {
        sentence(err)
        expect(err).toMatch(/already registered|another (program|command)|already exists|exists already/)
      }
    }
    expect((await contentsOf(path())).registration!.claimToken).toStartWith('clm_')
    expect(files()).toEqual(['agent.age', 'agent.age.key'])
    expect((await agent(['token'])).code).toBe(0)
  }
})

test('several assistants that start at once are one agent, with one code', async () => {
  let codes = 100_000
  server.answers[CLAIM] = () => Response.json(shownClaim({ user_code: String(++codes) }))
  server.answers['POST /oauth/token'] = () => Response.json({ error: 'authorization_pending' }, { status: 400 })
  const clients = await Promise.all(
    [1, 2, 3].map(async () => {
      const client = new Client({ name: 'test', version: '1.0.0' })
      const args = ['agent', 'mcp', '--server', server.url, '--file', path()]
      await client.connect(
        new StdioClientTransport({
          command: PROGRAM[0]!,
          args,
          env: { HOME: folder, PATH: process.env['PATH'] ?? '' },
        }),
      )
      return client
    }),
  )
  try {
    const ask = async (client: Client) =>
      ((await client.callTool({ name: 'timeline', arguments: {} })).content as { text: string }[])[0]!.text
    // One of them has registered; the others learn of it at the latest when they are asked again.
    await Promise.all(clients.map(ask))
    const told = await Promise.all(clients.map(ask))
    expect(new Set(told.map(shownCode)).size).toBe(1)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
})

test('a program that runs while another one registers at another server sends that registration nowhere else', async () => {
  await using elsewhere = startFalseAgentServer()
  await user.do(['register', '--server', server.url])
  await user.do(['wait'])
  const file = new SealedFile<AgentContents>(user.path, { name: 'agent', format: 1 }, { key: keyOf(user.path) })
  const running = new Agent(file, await file.read(), user)
  const method = 'com.atproto.server.getSession'
  for (const each of [server, elsewhere]) each.answers[`GET /xrpc/${method}`] = { handle: each.url }
  expect(await running.call(method, { method: 'GET' })).toEqual({ handle: server.url })
  await user.do(['register', '--replace', '--server', elsewhere.url])
  user.clock.advance({ secs: 300 })
  const before = server.requests.length
  expect(await running.call(method, { method: 'GET' })).toEqual({ handle: elsewhere.url })
  expect(server.requests.slice(before)).toEqual([])
})

test('a program whose file is deleted while it runs acts no longer, until somebody has it register again', async () => {
  await user.do(['register', '--server', server.url])
  await user.do(['wait'])
  const file = new SealedFile<AgentContents>(user.path, { name: 'agent', format: 1 }, { key: keyOf(user.path) })
  const running = new Agent(file, await file.read(), user)
  await running.access()
  rmSync(user.path)
  user.clock.advance({ secs: 300 })
  const before = server.requests.length
  for (let i = 0; i < 2; i++) expect(await thrownBy(running.access())).toThrow('the agent was ended on this machine')
  expect(server.requests).toHaveLength(before)
  expect(existsSync(user.path)).toBe(false)
  await running.register()
  expect((await running.access()).token).toStartWith('eyJ')
  expect((await contentsOf(user.path)).registration!.id).toBe(running.contents.registration!.id)
})

test(`after ${KILLS} kills of a program that writes it, the file holds the old registration or the new one`, async () => {
  expect((await agent(['register', '--server', server.url])).code).toBe(0)
  let before = (await contentsOf(path())).registration!.id
  for (let round = 0; round < KILLS; round++) {
    const child = Bun.spawn([...PROGRAM, 'agent', 'register', '--replace', '--server', server.url, '--file', path()], {
      env: { HOME: folder, PATH: process.env['PATH'] ?? '' },
      stdout: 'ignore',
      stderr: 'ignore',
    })
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    server.answers[CLAIM] = () => {
      resolve()
      return Response.json(shownClaim())
    }
    await Promise.race([answered, child.exited])
    // Later in each round: the answer arrives, is sealed, written, flushed and put in place.
    await eventLoopTurns(round * 40)
    child.kill('SIGKILL')
    await child.exited
    const { id } = (await contentsOf(path())).registration!
    const newest = `reg_${server.requests.filter((name) => name === 'POST /agent/identity').length}`
    expect([before, newest]).toContain(id)
    before = id
    for (const name of files()) expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0])
  }
  expect((await agent(['token'])).code).toBe(0)
}, 60_000)
