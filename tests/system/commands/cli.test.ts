import { describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../../package.json'
import { loadCommands } from '../../../src/commands/commands.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, runProgram, SOURCE, startProgram, watchProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const SOFTWARE = `holdfast v${packageJson.version}`

function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

describe('help', () => {
  test.each([
    ['executable', PROGRAM],
    ['source', SOURCE],
  ])('help of the %s lists every command', async (_, program) => {
    const { code, out } = await runProgram(['--help'], {}, program)
    expect(code).toBe(0)
    for (const { name, summary } of await loadCommands())
      expect(out).toMatch(new RegExp(`^  ${name} .*${summary}$`, 'm'))
  })

  test('of a command is the same from both sides', async () => {
    const [before, after] = await Promise.all([
      runProgram(['help', 'config', 'check']),
      runProgram(['config', 'check', '--help']),
    ])
    expect(before).toEqual(after)
    expect(before.out).toContain('Usage: holdfast config check [--dev]')
  })

  test('of a word that several commands share lists them', async () => {
    const [before, after] = await Promise.all([runProgram(['help', 'invite']), runProgram(['invite', '--help'])])
    expect(before).toEqual(after)
    expect(before).toMatchObject({
      code: 0,
      out: expect.stringMatching(/\n  invite create +Create invite codes.\n  invite list .*\n  invite disable /),
    })
  })
})

test('version prints name and version', async () => {
  expect(await runProgram(['version'])).toEqual({ code: 0, out: `${SOFTWARE}\n`, err: '' })
})

test.each([
  [[], 'holdfast: a command is required'],
  [['srve'], 'holdfast: there is no command "srve"; did you mean "serve"?'],
  [['config'], 'holdfast: "config" needs one of: check, show, set'],
  [['dev', 'now'], 'holdfast: unexpected argument "now"'],
  [['version', '--colour'], "holdfast: Unknown option '--colour'"],
  [
    ['account'],
    'holdfast: "account" needs one of: identities, list, show, create, reset-password, takedown, restore, delete, usage, events, export, import-archive, agents, end-agents, ceremonies, recoveries, transfers, cancel-transfer, reset-factors, sessions, end-sessions, sign-ups, undo-sign-ups, change-address, change-handle, stop-invites, allow-invites, mail',
  ],
  [['account', 'show'], 'holdfast: <account> is missing'],
  [['firehose', 'nowhere'], 'holdfast: nowhere is not a URL'],
  [['firehose', '--cursor', 'x'], 'holdfast: --cursor takes a whole number of at least 0'],
  [['backup', '--dev', '--keep', '0', '/nowhere'], 'holdfast: --keep takes a whole number of at least 1'],
  [['backup', '--dev'], 'holdfast: name a destination for the backup, or set backup.destination'],
])('%p is refused with a sentence and status 2', async (words, sentence) => {
  const { code, out, err } = await runProgram(words)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err.split('\n')[0]).toBe(sentence)
})

describe('config check', () => {
  const env = {
    SERVICE_PUBLIC_URL: 'https://pds.example.com',
    SERVICE_AVAILABLE_USER_DOMAINS: 'example.com',
    SERVICE_DATA_DIR: '/nowhere',
    SERVICE_ADMIN_TOKEN: 'correct-horse-battery-staple',
  }

  test('prints the resolved configuration as TOML, without secrets', async () => {
    const { code, out, err } = await runProgram(['config', 'check'], env)
    expect(code).toBe(0)
    expect(Bun.TOML.parse(out)).toMatchObject({
      public_url: 'https://pds.example.com',
      admin_token: '***',
      oauth: { access_token_ttl_secs: 900 },
    })
    expect(out + err).not.toContain('horse')
    expect(out).toMatch(/^# reserved_handles has \d{3,} entries$/m)
    expect(err).toContain('warning: admin_token (SERVICE_ADMIN_TOKEN): is shorter than 32 characters')
  })

  test('says when sign-up needs invites and nobody can make them', async () => {
    const { SERVICE_ADMIN_TOKEN: _, ...without } = env
    const { code, err } = await runProgram(['config', 'check'], without)
    expect(code).toBe(0)
    expect(err).toContain('warning: admin_token (SERVICE_ADMIN_TOKEN): is not set, but sign-up requires invite codes')
  })

  test('points to --dev when that is what lacks', async () => {
    const { code, err } = await runProgram(['config', 'check'])
    expect(code).toBe(1)
    expect(err).toContain('add --dev')
    expect((await runProgram(['config', 'check', '--dev'])).code).toBe(0)
    expect((await runProgram(['config', 'check'], { SERVICE_PORT: 'x' })).err).not.toContain('--dev')
  })

  test('reports every problem and fails', async () => {
    const { code, out, err } = await runProgram(['config', 'check'], {
      ...env,
      SERVICE_PORT: 'x',
      SERVICE_PUBLIC_URL: 'http://a.example',
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain('configuration is invalid (2 problems)')
  })
})

describe('serve', () => {
  test('refuses to start without configuration, as plain text whatever the log format', async () => {
    using folder = temporaryFolder()
    const { code, out, err } = await runProgram(['serve'], {
      SERVICE_LOG_FORMAT: 'json',
      SERVICE_DATA_DIR: join(folder.path, 'data'),
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toStartWith('configuration is invalid (2 problems)\n- public_url (SERVICE_PUBLIC_URL): required\n')
  })

  test('points to variables of the reference PDS, also where they are all that there is, and never shows a value', async () => {
    const env = { PDS_HOSTNAME: 'pds.example.com', PDS_ADMIN_PASSWORD: 'hunter2' }
    const said =
      'PDS_ADMIN_PASSWORD, PDS_HOSTNAME: not read here, but by the reference PDS; set admin_token (SERVICE_ADMIN_TOKEN)'
    for (const words of [['serve'], ['config', 'check'], ['doctor']]) {
      const { code, out, err } = await runProgram(words, env)
      expect([words, code]).toEqual([words, 1])
      expect(err.split(said)).toHaveLength(2)
      expect(out + err).not.toContain('hunter2')
    }
    using folder = temporaryFolder()
    await using server = await startProgram(['dev'], { PORT: String(await freePort()), ...env }, folder.path)
    expect(server.output().split(said)).toHaveLength(2)
    expect(server.output()).not.toContain('hunter2')
  })

  test('says in one sentence that its port is taken', async () => {
    using folder = temporaryFolder()
    await using first = await startProgram(['dev'], { PORT: String(await freePort()) }, folder.path)
    const { code, err } = await runProgram(['dev'], { PORT: new URL(first.url).port })
    expect(code).toBe(1)
    expect(err.trim().split('\n')).toEqual([
      expect.stringMatching(/^holdfast dev: port \d+ of 127.0.0.1 is in use by another process: stop that process/),
    ])
  })
})

describe('serve --domain', () => {
  const start = async (folder: string, env: Record<string, string> = {}) =>
    startProgram(
      ['serve', '--domain', 'pds.example.com'],
      { SERVICE_BIND_ADDRESS: '127.0.0.1', SERVICE_PORT: String(await freePort()), SERVICE_CRAWLERS: '', ...env },
      folder,
    )

  test('needs no other configuration: it makes its own secrets, and keeps them', async () => {
    using folder = temporaryFolder()
    const token = join(folder.path, 'data/holdfast.admin-token')
    const inviteAt = (url: string) => runProgram(['invite', 'create', '--url', url, '--token-file', token])
    await using server = await start(folder.path)
    expect((await request(`${server.url}/xrpc/com.atproto.server.describeServer`)).body).toMatchObject({
      did: 'did:web:pds.example.com',
      availableUserDomains: ['.pds.example.com'],
      inviteCodeRequired: true,
    })
    for (const name of ['holdfast.admin-token', 'master.key'])
      expect((statSync(join(folder.path, 'data', name)).mode & 0o777).toString(8)).toBe('600')
    expect(await inviteAt(server.url)).toMatchObject({ code: 0, out: expect.stringMatching(/^pds-example-com-/) })
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(server.output()).toContain(
      `People sign up at https://pds.example.com/account/sign-up, with a code of: holdfast invite create --url ${server.url} --token-file data/holdfast.admin-token`,
    )
    expect(server.output()).not.toContain('admin_token')
    const kept = readFileSync(token, 'utf8')
    await using again = await start(folder.path)
    expect(readFileSync(token, 'utf8')).toBe(kept)
    expect((await inviteAt(again.url)).code).toBe(0)
  })

  test('leaves what is configured as it is, except the address', async () => {
    using folder = temporaryFolder()
    const env = {
      SERVICE_PUBLIC_URL: 'https://other.example.com',
      SERVICE_AVAILABLE_USER_DOMAINS: 'example.org',
      SERVICE_DATA_DIR: join(folder.path, 'kept'),
      SERVICE_ADMIN_TOKEN: 'a token of more than thirty-two characters',
    }
    await using server = await start(folder.path, env)
    expect((await request(`${server.url}/xrpc/com.atproto.server.describeServer`)).body).toMatchObject({
      did: 'did:web:pds.example.com',
      availableUserDomains: ['.example.org'],
    })
    expect(existsSync(join(folder.path, 'kept/holdfast.admin-token'))).toBe(false)
  })

  test('without it a configuration is needed, which init writes', async () => {
    expect(await runProgram(['serve'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^configuration is invalid \(3 problems\)\n[^]*"holdfast init" writes the configuration of a new server.\n$/,
      ),
    })
  })

  test('refuses what is no domain', async () => {
    expect(await runProgram(['serve', '--domain', 'https://pds.example.com'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('give the name alone, pds.example.com'),
    })
  })
})

test('health does not take another program at the port for the server', async () => {
  using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ version: '0.4.1' }) })
  const said = await runProgram(['health', '--dev', '--json'], { PORT: String(other.port) })
  expect(said.code).toBe(1)
  expect(JSON.parse(said.out)).toEqual({
    url: `http://127.0.0.1:${other.port}`,
    state: 'absent',
    software: '0.4.1',
    reason: 'another program responds: 0.4.1',
  })
})

test('health says in words that no server runs', async () => {
  const port = await freePort()
  expect(await runProgram(['health', '--dev'], { PORT: String(port) })).toMatchObject({
    code: 1,
    out: `http://127.0.0.1:${port}: no server is listening\n`,
  })
})

test('a second server leaves a data directory alone that the first one uses', async () => {
  using folder = temporaryFolder()
  const env = async () => ({ SERVICE_DATA_DIR: join(folder.path, 'data'), PORT: String(await freePort()) })
  await using first = await startProgram(['dev'], await env(), folder.path)
  expect(await runProgram(['dev'], await env())).toEqual({
    code: 1,
    out: '',
    err: `holdfast dev: ${join(folder.path, 'data')} is in use by another process: stop that process, or set data_dir to another folder\n`,
  })
  first.signal('SIGKILL')
  await first.exited
  await using next = await startProgram(['dev'], await env(), folder.path)
  expect((await fetch(`${next.url}/xrpc/_health`)).status).toBe(200)
})

test('the help of a takedown says what the holder may still do', async () => {
  const { out } = await runProgram(['account', 'takedown', '--help'])
  for (const word of [
    'export',
    'appeal',
    'move',
    'browsers, apps and wallets',
    'agents',
    'two hours',
    'account restore',
  ])
    expect(out).toContain(word)
})

describe('firehose', () => {
  test('prints the events of a server, one to a line', async () => {
    using folder = temporaryFolder()
    await using server = await startProgram(['dev'], { PORT: String(await freePort()) }, folder.path)
    const account = { handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' }
    const { body } = await request(`${server.url}/xrpc/com.atproto.server.createAccount`, { json: account })
    const printed = await watchProgram(['firehose', server.url, '--cursor', '0'], /#account.*\n/)
    expect(printed).toMatch(new RegExp(`^#identity .*did=${body.did} .*handle=alice.test`, 'm'))
  })

  test('says when there is nothing to read', async () => {
    const address = `http://127.0.0.1:${await freePort()}`
    const { code, err } = await runProgram(['firehose', address])
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`127.0.0.1`) })
  })
})

describe('dev', () => {
  const start = async (folder: string, env: Record<string, string> = {}) =>
    startProgram(['dev'], { PORT: String(await freePort()), ...env }, folder)

  test('needs no configuration, shows what to try, and names its version in its health', async () => {
    using folder = temporaryFolder()
    await using server = await start(folder.path)
    expect(await (await fetch(`${server.url}/xrpc/_health`)).json()).toMatchObject({ version: SOFTWARE, db: 'ok' })
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(server.output()).toMatch(
      /Open (http:\/\/localhost:\d+) in a browser.*\n\nCreate an account.*:\n  curl http.*\n\nPost:\n.*\n.*createRecord.*\n\nRead the firehose.*:\n  .* firehose http.*\n\nList the accounts.*:\n  .* account list --dev\n/,
    )
  })

  test('answers the commands of its operator, which find its token by themselves', async () => {
    using folder = temporaryFolder()
    const env = { SERVICE_DATA_DIR: join(folder.path, 'data'), PORT: String(await freePort()) }
    const early = await runProgram(['account', 'list', '--dev'], env)
    expect(early).toMatchObject({ code: 1, err: expect.stringContaining('no server is listening') })
    await using server = await startProgram(['dev'], env, folder.path)
    const account = { handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' }
    await request(`${server.url}/xrpc/com.atproto.server.createAccount`, { json: account })
    expect(await runProgram(['account', 'list', '--dev'], env)).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('alice.test'),
    })
    expect(await runProgram(['account', 'usage', 'alice', '--dev'], env)).toMatchObject({
      code: 0,
      out: expect.stringContaining('records'),
    })
    expect(
      await runProgram(['account', 'create', 'bob', 'ALICE@example.com', '--generate', '--dev'], env),
    ).toMatchObject({
      code: 1,
      err: expect.stringContaining('belongs to alice.test'),
    })
    expect(
      await runProgram(['account', 'list', '--dev'], { ...env, SERVICE_ADMIN_TOKEN: 'another token' }),
    ).toMatchObject({ code: 1 })
    expect((await request(`${server.url}/v1/admin/accounts`)).status).toBe(401)
    const file = join(folder.path, 'data', 'holdfast.admin-token')
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    expect(server.output()).not.toContain(readFileSync(file, 'utf8').trim())
    expect((await runProgram(['doctor', '--dev'], env)).out).toMatch(/^ok +operator +the admin token is set$/m)
  })

  test('logs JSON when asked to', async () => {
    using folder = temporaryFolder()
    await using server = await start(folder.path, { SERVICE_LOG_FORMAT: 'json' })
    const events = server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { message: string; level: string })
    expect(events).toContainEqual(expect.objectContaining({ message: 'listening', level: 'info' }))
  })

  test('ends at once with 130 at a second signal, while a request still runs', async () => {
    using folder = temporaryFolder()
    await using server = await start(folder.path)
    const { port } = new URL(server.url)
    const half = connect(Number(port), '127.0.0.1')
    half.on('error', () => {})
    half.write(
      'POST /xrpc/com.atproto.server.createSession HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    )
    await fetch(`${server.url}/xrpc/_health`)
    server.signal('SIGINT')
    await until(() => server.output().includes('stopping'))
    server.signal('SIGINT')
    expect(await server.exited).toBe(130)
    half.destroy()
  })
})
