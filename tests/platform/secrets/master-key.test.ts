/** The master key: what opens, what refuses, and changing it. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import { sql } from '../../../src/platform/database/database.ts'
import { wrappedColumns } from '../../../src/platform/secrets/rewrap.ts'
import { Secret } from '../../../src/base/secret.ts'
import { Vault } from '../../../src/platform/secrets/vault.ts'
import vectors from '../../vectors/contract/wrapped-secret-v1.json' with { type: 'json' }
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { moveIn, stranger } from '../../support/clients/stranger.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { READER_DID, READER_METHOD, TokenReader } from '../../support/clients/token-reader.ts'
import { setUp } from '../../support/set-up.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorldOnFile()
const alice = setUp(() => createAccount(pds, 'alice'))
/** Has a key of the other curve. */
const moved = setUp(async () => moveIn(pds, await stranger(pds, 'k256'), 'moved'))

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const first = randomBytes(32)
const second = randomBytes(32)

async function rewrap(env: Record<string, string>) {
  const lines: string[] = []
  const terminal = quietTerminal(
    { SERVICE_DATA_DIR: pds.dataDir, SERVICE_PUBLIC_URL: pds.url, SERVICE_LOG_LEVEL: 'error', ...env },
    lines,
  )
  return { code: await runCommand(terminal, ['rewrap', '--dev']), text: lines.join('\n') }
}

/** Everybody writes, and signs with the key that their identity names. */
async function isSigning(): Promise<boolean> {
  for (const account of [alice, moved]) {
    const session = await logIn(pds, account, PASSWORD)
    expect(
      await session.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'org.example.note', record: { text: 'signed' } },
      }),
    ).toMatchObject({ status: 200 })
    const { body } = await session.call(`com.atproto.server.getServiceAuth?aud=${READER_DID}&lxm=${READER_METHOD}`)
    expect(await new TokenReader(pds.url).read(body.token)).toBe(account.did)
  }
  return true
}

test.each(vectors.accept)('stored secrets open: $name', ({ stored, plaintextHex }) => {
  expect(hex(new Vault(Buffer.from(vectors.masterKeyHex, 'hex')).unwrap(stored))).toBe(plaintextHex)
})

test.each(vectors.reject)('stored secrets that are not whole do not open: $name', ({ stored, masterKeyHex }) => {
  expect(() => new Vault(Buffer.from(masterKeyHex, 'hex')).unwrap(stored)).toThrow()
})

test('every column of the schema that holds wrapped secrets is in the inventory', async () => {
  const columns = await pds.ctx.db.all<{ column: string }>(sql`
    SELECT m.name || '.' || c.name AS column FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name LIKE '%wrapped%'`)
  expect(columns.map(({ column }) => column).toSorted()).toEqual(wrappedColumns.toSorted())
})

test('another key than the one the secrets are under refuses to start, and says what to do', async () => {
  await pds.stop()
  expect(await thrownBy(pds.restart({ signingKeyMasterKey: new Secret(first) }))).toThrow(
    'does not decrypt the secrets of this database',
  )
  const file = join(pds.dataDir, 'master.key')
  renameSync(file, `${file}.away`)
  expect(await thrownBy(pds.restart())).toThrow('there is no master key')
  expect(existsSync(file)).toBe(false)
  writeFileSync(file, hex(first).slice(2))
  expect(await thrownBy(pds.restart())).toThrow(`${file} is not a master key`)
  renameSync(`${file}.away`, file)
  await pds.restart()
  expect(await isSigning()).toBe(true)
})

/** Stops a server and changes its key, as far as a change comes that is killed before it removes the former key. */
async function rewrappedButForTheFile(server: Awaited<ReturnType<typeof startPdsOnFile>>) {
  await server.stop()
  const file = join(server.dataDir, 'master.key')
  const former = readFileSync(file)
  const env = { SERVICE_DATA_DIR: server.dataDir, SERVICE_REWRAP_NEW_MASTER_KEY: hex(first) }
  expect(await rewrap(env)).toMatchObject({ code: 0 })
  writeFileSync(file, former)
  return { file, former, env }
}

test('a change that was killed before it removed the file of the former key ends with the next run', async () => {
  await using other = await startPdsOnFile({})
  const { file, env } = await rewrappedButForTheFile(other)
  expect(await rewrap(env)).toMatchObject({ code: 1, text: expect.stringContaining('completed the change') })
  expect(existsSync(file)).toBe(false)
  expect(await rewrap(env)).toMatchObject({ code: 1, text: expect.stringContaining('it completed the change') })
})

test('the file of the former key stays while a secret needs it', async () => {
  await using other = await startPdsOnFile({})
  await createAccount(other, 'bob')
  const { file, former, env } = await rewrappedButForTheFile(other)
  const strange = new Vault(Buffer.from(former.toString().trim(), 'hex')).wrap(randomBytes(32))
  using database = new Database(join(other.dataDir, 'holdfast.db'))
  database.run('UPDATE account SET signing_key_wrapped = ?', [strange])
  expect(await rewrap(env)).toMatchObject({ code: 1 })
  expect(readFileSync(file)).toEqual(former)
})

test('secrets move from the file to a configured key and on to another, and keep their meaning', async () => {
  const running = await rewrap({ SERVICE_REWRAP_NEW_MASTER_KEY: hex(first) })
  expect(running).toMatchObject({ code: 1, text: expect.stringContaining('in use by another process') })
  await pds.stop()
  expect(await rewrap({})).toMatchObject({
    code: 1,
    text: expect.stringContaining('SERVICE_REWRAP_NEW_MASTER_KEY is required'),
  })
  expect(await rewrap({ SERVICE_REWRAP_NEW_MASTER_KEY: 'short' })).toMatchObject({
    code: 1,
    text: expect.stringContaining('64 hexadecimal'),
  })
  expect(await rewrap({ SERVICE_REWRAP_NEW_MASTER_KEY: hex(first) })).toMatchObject({
    code: 0,
    text: expect.stringContaining('account.signing_key_wrapped: 2'),
  })
  expect(existsSync(join(pds.dataDir, 'master.key'))).toBe(false)
  await pds.restart({ signingKeyMasterKey: new Secret(first) })
  expect(await isSigning()).toBe(true)

  await pds.stop()
  const keys = (old: Uint8Array, next: Uint8Array) => ({
    SERVICE_REWRAP_OLD_MASTER_KEY: hex(old),
    SERVICE_REWRAP_NEW_MASTER_KEY: hex(next),
  })
  expect(await rewrap(keys(first, first))).toMatchObject({ code: 1, text: expect.stringContaining('the same') })
  expect(await rewrap(keys(randomBytes(32), second))).toMatchObject({
    code: 1,
    text: expect.stringContaining('nothing was changed'),
  })
  expect(await rewrap(keys(first, second))).toMatchObject({ code: 0 })
  expect(await rewrap(keys(first, second))).toMatchObject({
    code: 1,
    text: expect.stringContaining('an earlier run completed the change'),
  })
  await pds.restart({ signingKeyMasterKey: new Secret(second) })
  expect(await isSigning()).toBe(true)
  // Refused changes are not counted.
  expect(await pds.rows('kek_generation', {}, ['generation'])).toEqual([{ generation: 2 }])
})
