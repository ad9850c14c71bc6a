/** The doctor as a command: as lines for people and for scripts, once or again and again. */
import { expect, test } from 'bun:test'
import { doctorCommand } from '../../../src/commands/server/doctor-command.ts'
import { changed } from '../../../src/features/operations/doctor/doctor.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'

const NOWHERE = 'http://127.0.0.1:1'

/** Runs the command on a server; `rounds` happen one after another, before each further round. */
async function examined(
  pds: TestPds,
  { flags = [], ...options }: { flags?: string[]; every?: string },
  ...rounds: (() => Promise<unknown>)[]
) {
  const { port, dataDir, databaseUrl, publicUrl } = pds.ctx.config
  const env = {
    SERVICE_PORT: String(port),
    SERVICE_DATA_DIR: dataDir,
    SERVICE_DATABASE_URL: databaseUrl,
    SERVICE_PUBLIC_URL: publicUrl,
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_APPVIEW_URL: NOWHERE,
  }
  const lines: string[] = []
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const pauses: number[] = []
  const terminal = {
    ...quietTerminal(env, lines),
    outputClosed: () => closed,
    async pause(millis: number) {
      pauses.push(millis)
      const next = rounds.shift()
      if (next !== undefined) return void (await next())
      close()
      await closed
    },
  }
  const code = await doctorCommand.run({ terminal, positionals: [], options, flags: new Set(['dev', ...flags]) })
  return { code, lines, pauses }
}

test('with --json, each check is an object on a line of its own', async () => {
  await using pds = await startPds()
  const { code, lines } = await examined(pds, { flags: ['json'] })
  const findings = lines.map((line) => JSON.parse(line))
  expect(code).toBe(findings.some(({ state }) => state === 'fault') ? 1 : 0)
  expect(findings).toContainEqual({
    at: expect.stringMatching(/Z$/),
    check: 'server',
    state: 'ok',
    text: expect.any(String),
    remedy: null,
    was: null,
  })
  expect(findings.find(({ check }) => check === 'relay')).toMatchObject({
    state: 'warning',
    remedy: expect.any(String),
  })
})

test('with --watch, a round prints what has changed, and nothing else', async () => {
  await using pds = await startPds()
  const { config } = pds.ctx
  const { lines, pauses } = await examined(
    pds,
    { flags: ['json', 'watch'], every: '30' },
    async () => {},
    () => pds.stop(),
    () => pds.restart({ port: config.port }),
  )
  const changes = lines.map((line) => JSON.parse(line)).filter(({ was }) => was !== null)
  expect(changes.filter(({ check }) => check === 'server').map(({ was, state }) => [was, state])).toEqual([
    ['ok', 'fault'],
    ['fault', 'ok'],
  ])
  expect(changes.filter(({ check }) => check === 'proxy').map(({ was, state }) => [was, state])).toEqual([
    ['ok', 'skipped'],
    ['skipped', 'ok'],
  ])
  expect(changes.filter(({ check }) => ['disk', 'dns', 'operator'].includes(check))).toEqual([])
  expect(pauses).toEqual([30_000, 30_000, 30_000, 30_000])
})

test('people see when a change was found; the exit status is that of the last round', async () => {
  await using pds = await startPds()
  const { code, lines, pauses } = await examined(pds, { flags: ['watch'], every: '999999999' }, () => pds.stop())
  expect(lines.find((line) => line.includes('no server listens'))).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d {2}FAULT server +no server listens/,
  )
  expect(code).toBe(1)
  // A timer of months would end at once, and again and again.
  expect(pauses).toEqual([86_400_000, 86_400_000])
})

test('another figure is no news; another state or fault is', () => {
  const fault = (text: string) => ({ state: 'fault' as const, text, remedy: '' })
  expect(changed(fault('0.1 GiB free'), fault('0.2 GiB free'))).toBe(false)
  expect(changed(fault('0.1 GiB free'), fault('not writable'))).toBe(true)
  expect(changed(fault('0.1 GiB free'), { state: 'ok', text: '0.1 GiB free' })).toBe(true)
})
