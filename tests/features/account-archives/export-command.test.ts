/** `holdfast account export` and `account import-archive`, against a running server. */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { archiveIn } from '../../support/zip-reading.ts'

const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))
const folder = mkdtempSync(join(tmpdir(), 'export-'))
afterAll(() => rmSync(folder, { recursive: true }))

const run = (...words: string[]) => runAccount('export', ...words)
const runAccount = (...words: string[]) =>
  runProgram(['account', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })

test('it writes a private file with the archive of the account', async () => {
  const path = join(folder, 'alice.zip')
  const { code, out, err } = await run('alice', path, '--json')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(JSON.parse(out)).toEqual({ did: alice.did, handle: 'alice.test', file: path, bytes: statSync(path).size })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['alice.zip'])
  const files = await archiveIn(readFileSync(path)).contents()
  expect(JSON.parse(files.get('manifest.json')!.toString())).toMatchObject({ did: alice.did, service: pds.url })
})

const exports = async () =>
  (await request(`${pds.url}/v1/admin/audit?action=account_exported`, { headers: bearer(ADMIN_TOKEN) })).body.events

test('it does not replace a file, asks for nothing then, and leaves nothing behind when it fails', async () => {
  const path = join(folder, 'taken.zip')
  const before = await exports()
  expect(before.length).toBeGreaterThan(0)
  writeFileSync(path, 'mine')
  expect(await run('alice', path)).toMatchObject({ code: 1, err: `holdfast account export: ${path} already exists\n` })
  expect(readFileSync(path, 'utf8')).toBe('mine')
  expect(await exports()).toEqual(before)
  expect(readdirSync(folder).filter((name) => name.startsWith('taken.zip'))).toEqual(['taken.zip'])
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link.zip'))
  expect((await run('alice', join(folder, 'link.zip'))).err).toContain('already exists')
  expect(await run('nobody', join(folder, 'nobody.zip'))).toMatchObject({ code: 1 })
  expect(existsSync(join(folder, 'nobody.zip'))).toBe(false)
})

test('what somebody else has placed beside the file gets none of it', async () => {
  const [path, theirs] = [join(folder, 'shared.zip'), join(folder, 'theirs')]
  writeFileSync(theirs, 'theirs', { mode: 0o666 })
  symlinkSync(theirs, `${path}.part`)
  expect(await run('alice', path)).toMatchObject({ code: 0 })
  expect(readFileSync(theirs, 'utf8')).toBe('theirs')
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('of two exports to one file at once, one writes it, and it is whole', async () => {
  const path = join(folder, 'contested.zip')
  const codes = (await Promise.all([run('alice', path), run('alice', path)])).map(({ code }) => code)
  expect(codes.toSorted()).toEqual([0, 1])
  const files = await archiveIn(readFileSync(path)).contents()
  expect(JSON.parse(files.get('manifest.json')!.toString())).toMatchObject({ did: alice.did })
  expect(readdirSync(folder).filter((name) => name.startsWith('contested.zip'))).toEqual(['contested.zip'])
})

test('it writes to a file system that has no hard links, and replaces no file there either', async () => {
  const path = join(folder, 'linkless.zip')
  const program = [process.execPath, join(import.meta.dir, '../../support/faults/without-links.ts'), ...PROGRAM]
  const env = { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN }
  const linkless = () => runProgram(['account', 'export', 'alice', path, '--url', pds.url], env, program)
  expect(await linkless()).toMatchObject({ code: 0, err: '' })
  const before = readFileSync(path)
  await archiveIn(before).contents()
  expect(await linkless()).toMatchObject({ code: 1, err: expect.stringContaining('already exists') })
  expect(readFileSync(path)).toEqual(before)
})

test.each([
  ['an export', ['account', 'export', 'alice'], '/archive'],
  ['the reading of a blob', ['blob', 'read', 'alice', 'bafkqaaa'], '/data/blob'],
])('%s that is interrupted leaves nothing', async (_, command, route) => {
  await using host = startLyingHost()
  host.to = pds.url
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => controller.enqueue(new Uint8Array(1000))
  host.lie = (path) => (path.includes(route) ? new Response(new ReadableStream({ start })) : null)
  const own = mkdtempSync(join(folder, 'interrupted-'))
  const words = [...command, join(own, 'file'), '--url', host.url]
  const program = Bun.spawn([...PROGRAM, ...words], {
    env: { PATH: process.env['PATH'] ?? '', HOME: own, SERVICE_ADMIN_TOKEN: ADMIN_TOKEN },
    cwd: own,
  })
  await until(() => readdirSync(own).length > 0)
  program.kill('SIGINT')
  expect(await program.exited).toBe(130)
  expect(readdirSync(own)).toEqual([])
})

test('what it wrote is accepted by the import, which says what it restored', async () => {
  const path = join(folder, 'again.zip')
  await run('alice', path)
  expect(await runAccount('import-archive', 'alice', path)).toEqual({
    code: 0,
    out: `alice.test (${alice.did}) is restored: its repository, 0 blobs (0 were here already), 0 preferences.\n`,
    err: '',
  })
  writeFileSync(path, 'no archive')
  const { code, err } = await runAccount('import-archive', 'alice', path)
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringContaining('holdfast account import-archive: The archive is not usable'),
  })
  expect((await runAccount('import-archive', 'alice', join(folder, 'nothing.zip'))).err).toContain('does not exist')
})
