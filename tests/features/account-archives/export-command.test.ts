/** `holdfast account export` and `account import-archive`, against a running server. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
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
  expect(existsSync(`${path}.part`)).toBe(false)
  const files = await archiveIn(readFileSync(path)).contents()
  expect(JSON.parse(files.get('manifest.json')!.toString())).toMatchObject({ did: alice.did, service: pds.url })
})

test('it does not replace a file, and leaves nothing behind when it fails', async () => {
  const path = join(folder, 'taken.zip')
  writeFileSync(path, 'mine')
  expect(await run('alice', path)).toMatchObject({ code: 1, err: `holdfast account export: ${path} already exists\n` })
  expect(readFileSync(path, 'utf8')).toBe('mine')
  expect(existsSync(`${path}.part`)).toBe(false)
  expect(await run('nobody', join(folder, 'nobody.zip'))).toMatchObject({ code: 1 })
  expect(existsSync(join(folder, 'nobody.zip'))).toBe(false)
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
