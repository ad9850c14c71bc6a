/** The program among others: at the end of a pipe, under a script runner, in front of a full disk. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import packageJson from '../../../package.json'
import { concurrently } from '../../../src/base/concurrently.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, readOutput, runProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const ROOT = join(import.meta.dir, '../../..')

function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-pipes-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const startDev = async (folder: string, env: Record<string, string> = {}) =>
  startProgram(['dev'], { PORT: String(await freePort()), ...env }, folder)

/** The program with a shell around it: `script` runs it as `"$@"`. */
const inShell = (script: string, words: string[], env: Record<string, string> = {}) =>
  runProgram(words, env, ['sh', '-c', script, 'sh', ...PROGRAM])

const FIRST_LINE = '{ "$@"; echo "status $?" >&2; } | head -n 1'

test('firehose ends when its reader has seen enough, though nothing more happens', async () => {
  using folder = temporaryFolder()
  await using server = await startDev(folder.path)
  const account = { handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' }
  await request(`${server.url}/xrpc/com.atproto.server.createAccount`, { json: account })
  expect(await inShell(FIRST_LINE, ['firehose', server.url, '--cursor', '0'])).toEqual({
    code: 0,
    out: expect.stringMatching(/^#identity .*\n$/),
    err: 'status 0\n',
  })
})

test.each([[['config', 'check', '--dev']], [['doctor', '--dev']], [['--help']]])(
  '%p says no more, and keeps its status, when its reader has seen enough',
  async (words) => {
    const whole = await runProgram(words)
    const { out, err } = await inShell(FIRST_LINE, words)
    expect(out.split('\n')).toHaveLength(2)
    expect(err).toBe(`${whole.err}status ${whole.code}\n`)
  },
)

test('output that cannot be written is a failure, said in one sentence', async () => {
  const { code, err } = await inShell('"$@" > /dev/full', ['config', 'check', '--dev'])
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^holdfast: standard output: .*ENOSPC.*\n$/) })
})

test('a server whose log meets a full disk works, and a stop is no failure', async () => {
  using folder = temporaryFolder()
  const port = await freePort()
  const server = Bun.spawn([...PROGRAM, 'dev'], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    stdout: Bun.file('/dev/full'),
    stderr: 'pipe',
  })
  const health = () => request(`http://127.0.0.1:${port}/xrpc/_health`).then(({ status }) => status === 200)
  await until(() => health().catch(() => false))
  server.kill('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(await new Response(server.stderr).text()).toMatch(/^holdfast: standard output: .*ENOSPC.*\n$/)
})

test('a server has the name of its executable in lists of processes', async () => {
  using folder = temporaryFolder()
  await using server = await startDev(folder.path)
  const name = readFileSync(`/proc/${server.pid}/comm`, 'utf8').trim()
  // The system keeps 15 characters.
  expect(name).toBe(basename(PROGRAM[0]!).slice(0, 15))
})

test('a server goes on when the reader of its log goes away', async () => {
  using folder = temporaryFolder()
  const port = await freePort()
  const pipeline = Bun.spawn(['sh', '-c', '"$@" & echo $!; wait', 'sh', ...PROGRAM, 'dev'], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port), SERVICE_LOG_LEVEL: 'debug' },
    stdout: 'pipe',
  })
  const reader = pipeline.stdout.getReader()
  let read = ''
  while (!read.includes('Read the firehose')) read += new TextDecoder().decode((await reader.read()).value)
  await reader.cancel()
  for (let i = 0; i < 3; i++) expect((await request(`http://localhost:${port}/xrpc/_health`)).status).toBe(200)
  process.kill(Number(/^\d+/m.exec(read)![0]), 'SIGTERM')
  await pipeline.exited
})

/** A server whose log goes into a pipe that is read only as far as `until` asks. */
async function startWithSlowReader(folder: string) {
  const port = await freePort()
  const fifo = join(folder, 'log')
  await Bun.$`mkfifo ${fifo}`
  const server = Bun.spawn(['sh', '-c', 'exec "$@" > log', 'sh', ...PROGRAM, 'dev'], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      PORT: String(port),
      SERVICE_LOG_LEVEL: 'debug',
      SERVICE_RATE_LIMIT_ENABLED: 'false',
    },
  })
  const reader = await open(fifo)
  const chunk = Buffer.alloc(64 * 1024)
  let text = ''
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    async readUntil(shows: RegExp) {
      while (!shows.test(text)) text += chunk.toString('utf8', 0, (await reader.read(chunk)).bytesRead)
      return text
    },
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL')
      await server.exited
      await reader.close()
    },
  }
}

const REQUESTS = 8000

test('while nothing reads the log, a server keeps a megabyte of lines, and counts the rest for when it is read', async () => {
  using folder = temporaryFolder()
  await using slow = await startWithSlowReader(folder.path)
  await slow.readUntil(/Read the firehose/)
  const did = `did:plc:${'a'.repeat(24)}`
  await concurrently(Array(REQUESTS).keys(), 50, async () => {
    await request(`${slow.url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)
  })
  const text = await slow.readUntil(/lines were dropped because standard output was read too slowly omitted=\d+\n/)
  const omitted = Number(/omitted=(\d+)/.exec(text)![1])
  const written = text.split('route=com.atproto.sync.getLatestCommit').length - 1
  expect(omitted).toBeGreaterThan(0)
  expect(written + omitted).toBeGreaterThanOrEqual(REQUESTS)
  // What waited, and what the pipe and the runtime had taken before.
  expect(text.length).toBeLessThan(1.5 * 1024 * 1024)
  await request(`${slow.url}/xrpc/com.atproto.sync.getHead?did=${did}`)
  await slow.readUntil(/route=com.atproto.sync.getHead/)
})

test('a log of errors alone also says how many lines were dropped', async () => {
  const script = `
    import { processLog } from ${JSON.stringify(join(ROOT, 'src/platform/running/log.ts'))}
    const log = processLog({ node: { name: null }, telemetry: { logFormat: 'text', logLevel: 'error' } })
    for (let i = 0; i < 20_000; i++) log.error('a'.repeat(100))`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  const text = await new Response(child.stdout).text()
  const [, omitted] = /ERROR .*: lines were dropped .* omitted=(\d+)\n$/.exec(text) ?? []
  expect(text.split('a'.repeat(100)).length - 1 + Number(omitted)).toBe(20_000)
})

test('a reader of the log that has stopped reading does not keep a server from ending', async () => {
  using folder = temporaryFolder()
  await using slow = await startWithSlowReader(folder.path)
  await slow.readUntil(/Read the firehose/)
  await concurrently(Array(1000).keys(), 50, async () => {
    await request(`${slow.url}/xrpc/_health`)
  })
  slow.server.kill('SIGTERM')
  expect(await slow.server.exited).toBe(0)
})

/** `npm run dev`, as npm does it: a shell for the script, which is sent the signals that npm gets. */
async function runDevScript(folder: string) {
  const child = Bun.spawn(['sh', '-c', packageJson.scripts.dev], {
    cwd: ROOT,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      npm_lifecycle_event: 'dev',
      PORT: String(await freePort()),
      SERVICE_DATA_DIR: join(folder, 'data'),
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { listening, ended, output } = readOutput(child.stdout, child.stderr)
  return { child, url: await listening, ended, output }
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a script runner that passes on %s ends the server, with status 0',
  async (signal) => {
    using folder = temporaryFolder()
    const { child, ended, output } = await runDevScript(folder.path)
    child.kill(signal)
    await ended
    expect({ code: await child.exited, output: output() }).toEqual({
      code: 0,
      output: expect.stringContaining('stopped\n'),
    })
  },
)

test('one Ctrl-C is one, though a script runner passes on what the terminal sent already', async () => {
  using folder = temporaryFolder()
  await using server = await startDev(folder.path, { npm_lifecycle_event: 'dev' })
  // Two kinds, for the system makes one of two alike.
  server.signal('SIGINT')
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
})

test('a closed terminal, which may send two signals, ends the server in order: what has begun is finished', async () => {
  using folder = temporaryFolder()
  await using server = await startDev(folder.path)
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const body = writable.getWriter()
  const answer = fetch(`${server.url}/xrpc/com.atproto.server.createAccount`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: readable,
  })
  const account = { handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' }
  const half = JSON.stringify(account)
  await body.write(Buffer.from(half.slice(0, 10)))
  await request(`${server.url}/xrpc/_health`)
  server.signal('SIGHUP')
  await until(() => server.output().includes('stopping reason=SIGHUP'))
  server.signal('SIGHUP')
  await body.write(Buffer.from(half.slice(10)))
  await body.close()
  expect((await answer).status).toBe(200)
  expect(await server.exited).toBe(0)
})

test('a server outlives its terminal if nohup has started it', async () => {
  using folder = temporaryFolder()
  const env = { PORT: String(await freePort()) }
  await using server = await startProgram(['dev'], env, folder.path, { program: ['nohup', ...PROGRAM] })
  server.signal('SIGHUP')
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(server.output()).toContain('stopping reason=SIGTERM')
})

test('a script runner that is killed leaves no server behind', async () => {
  using folder = temporaryFolder()
  const port = await freePort()
  const runner = Bun.spawn(['sh', '-c', '"$@"; :', 'sh', ...PROGRAM, 'dev'], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'] ?? '', npm_lifecycle_event: 'dev', PORT: String(port) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { listening, ended, output } = readOutput(runner.stdout, runner.stderr)
  await listening
  runner.kill('SIGKILL')
  await ended
  expect(output()).toContain('stopped\n')
})
