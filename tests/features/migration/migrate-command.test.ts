/** `holdfast migrate`, between two running servers. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { belongingsOf, settleIn } from '../../support/clients/migration.ts'
import { lastOperation } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { PROGRAM, runProgram, typeAtProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import type { Operation } from '../../../src/protocol/plc.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false }, signingKeyMasterKey: MASTER_KEY } })
const old = setUp(() =>
  startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false }, signingKeyMasterKey: MASTER_KEY }),
)
/** An old server that claims keys that are not its own. */
const host = setUp(startLyingHost)
const claiming = setUp(async () => {
  const behind = await startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }, { publicUrl: host.url })
  host.to = behind.url
  return behind
})
const folder = mkdtempSync(join(tmpdir(), 'migrate-'))
afterAll(() => rmSync(folder, { recursive: true }))

const NEW = 'another long enough password'
const run = (words: string[], ...lines: string[]) =>
  runProgram(['migrate', ...words, '--server', pds.url], {}, PROGRAM, lines.map((line) => `${line}\n`).join(''))
const unattended = ['--password-stdin', '--json']

test('a person at a terminal moves an account with one command', async () => {
  const from = await createAccount(old, 'anna')
  const words = ['migrate', 'in', from.did, '--server', pds.url, '--handle', 'anna-here.test']
  const { code: status, screen } = await typeAtProgram(words, {}, [
    ['Password at the old server', `${PASSWORD}\r`],
    ['Type yes', 'yes\r'],
    ['New password', `${NEW}\r`],
    ['has mailed to you', async () => `${await lastCode(old, from.email)}\r`],
  ])
  expect({ status, screen }).toMatchObject({ status: 0 })
  expect(screen).toContain('Comes along:')
  expect(screen).toContain('moved')
  const there = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
  expect(there.body).toMatchObject({ active: false })
})

test('a script begins a move, sees what it waits for, and continues it', async () => {
  const from = await createAccount(old, 'otto')
  const begun = await run(['in', from.did, '--handle', 'otto-here.test', '--yes', ...unattended], PASSWORD, NEW)
  expect(begun.code).toBe(1)
  const { needs, keys, agreement } = JSON.parse(begun.out)
  expect(needs).toBe('signature')
  expect(JSON.parse(begun.err.split('\n')[0]!)).toEqual({ keys })
  const agreed = ['--agreement', agreement]
  const wrong = await run(['continue', from.did, '--code', 'AAAAA-BBBBB', ...agreed, ...unattended], NEW)
  expect(wrong).toMatchObject({ code: 1, out: '' })
  const code = await lastCode(old, from.email)
  expect(await run(['continue', from.did, '--code', code, ...unattended], NEW)).toMatchObject({ code: 2 })
  const other = await run(['continue', from.did, '--code', code, '--agreement', 'bafy', ...unattended], NEW)
  expect(other).toMatchObject({ code: 1, out: '' })
  const continued = await run(['continue', from.did, '--code', code, ...agreed, ...unattended], NEW)
  expect({ ...continued, out: JSON.parse(continued.out) }).toMatchObject({ code: 0, out: { stage: 'done' } })
  const status = await run(['status', from.did, ...unattended], NEW)
  expect(JSON.parse(status.out)).toMatchObject({ stage: 'done', needs: null })
  // Each of the commands has ended its session.
  expect(await pds.rows('session', { did: from.did })).toEqual([])
})

test('a key that the old server claims stays if the person says so, and is shown before the code is asked for', async () => {
  const [own, other] = [deviceKey(), deviceKey()]
  const from = await createAccount(claiming, 'robbed', { recoveryKey: own.did })
  const { rotationKeys } = (await lastOperation({ directory: plc, account: from })) as Operation
  host.lie = (nsid) =>
    nsid === 'com.atproto.identity.getRecommendedDidCredentials' ? Response.json({ rotationKeys }) : null
  const move = ['in', from.did, '--handle', 'robbed-here.test', '--yes', '--password-stdin']
  expect(await run([...move, '--keep-key', other.did], PASSWORD, NEW)).toMatchObject({ code: 2 })
  const begun = await run(move, PASSWORD, NEW)
  expect(begun.code).toBe(1)
  expect(begun.out).toContain(`Keys that go:\n  ${own.did}  The old server says that it is its own`)
  const chosen = await run(['continue', from.did, '--keep-key', own.did, '--password-stdin'], NEW)
  expect(chosen.code).toBe(1)
  expect(chosen.out).toContain(`Keys that stay:\n  ${own.did}`)
  const { code: status, screen } = await typeAtProgram(['migrate', ...move.slice(0, 4), '--server', pds.url], {}, [
    ['Password at the old server', `${PASSWORD}\r`],
    ['Type yes', 'yes\r'],
    ['New password', `${NEW}\r`],
    ['has mailed to you', async () => `${await lastCode(claiming, from.email, 2)}\r`],
  ])
  expect({ status, screen }).toMatchObject({ status: 0 })
  expect(screen.split('Keys that go:')).toHaveLength(3)
})

test('a move is cancelled', async () => {
  const from = await createAccount(old, 'rosa')
  await run(['in', from.did, '--handle', 'rosa-here.test', '--yes', ...unattended], PASSWORD, NEW)
  expect(await run(['cancel', from.did, ...unattended], NEW)).toMatchObject({ code: 0 })
  expect(await pds.count('account', { did: from.did })).toBe(0)
  expect((await run(['status', from.did, ...unattended], NEW)).code).toBe(1)
})

test('an archive and a key move an account without the old server', async () => {
  const key = join(folder, 'recovery.key')
  const made = await runProgram(['migrate', 'key', key])
  expect(made).toMatchObject({ code: 0, err: '' })
  expect(statSync(key).mode & 0o777).toBe(0o600)
  expect(await runProgram(['migrate', 'key', key])).toMatchObject({ code: 1 })
  const from = await createAccount(old, 'ida', { recoveryKey: made.out.trim() })
  const archive = join(folder, 'ida.car')
  const exported = await fetch(`${old.url}/xrpc/com.atproto.sync.getRepo?did=${from.did}`)
  writeFileSync(archive, await exported.bytes())
  const wishes = ['--handle', 'ida-here.test', '--email', 'ida-here@example.com', '--yes']
  const moved = await run(['in', from.did, '--archive', archive, '--key', key, ...wishes, ...unattended], NEW)
  expect({ ...moved, out: JSON.parse(moved.out) }).toMatchObject({ code: 0, out: { stage: 'done' } })
})

test('the export of another server of this kind brings blobs and preferences too', async () => {
  const key = join(folder, 'export.key')
  const made = await runProgram(['migrate', 'key', key, '--json'])
  const { publicKey, path } = JSON.parse(made.out) as { publicKey: string; path: string }
  expect(path).toBe(key)
  const from = await createAccount(old, 'lena', { recoveryKey: publicKey })
  const agent = new AtpAgent({ service: old.url })
  await agent.login({ identifier: from.did, password: PASSWORD })
  await settleIn(agent)
  const archive = join(folder, 'lena.zip')
  const out = ['migrate', 'out', from.did, '--server', old.url, '--backup', archive, ...unattended]
  await runProgram(out, {}, PROGRAM, `${PASSWORD}\n`)
  const wishes = ['--handle', 'lena-here.test', '--email', 'lena-here@example.com', '--yes']
  const before = await belongingsOf(agent, plc.url)
  const moved = await run(['in', from.did, '--archive', archive, '--key', key, ...wishes, ...unattended], NEW)
  expect({ ...moved, out: JSON.parse(moved.out) }).toMatchObject({
    code: 0,
    out: { stage: 'done', blobs: { lost: 0 } },
  })
  const here = new AtpAgent({ service: pds.url })
  await here.login({ identifier: from.did, password: NEW })
  expect(await belongingsOf(here, plc.url)).toEqual(before)
})

test('a wallet signs instead of a mailed code, and knows the new server afterwards', async () => {
  const file = join(folder, 'wallet.age')
  const env = { HOLDFAST_WALLET_PASSPHRASE: 'a passphrase for tests', HOLDFAST_WALLET_WORK_FACTOR: '10' }
  const wallet = async (...words: string[]) => {
    const { code, out, err } = await runProgram(['wallet', ...words, '--file', file], env)
    expect({ code, err }).toMatchObject({ code: 0 })
    return out.trim()
  }
  const key = await wallet('key', '--server', old.url, '--directory', plc.url)
  const from = await createAccount(old, 'wanda', { recoveryKey: key })
  await wallet('adopt', from.handle)
  const words = ['migrate', 'in', from.did, '--handle', 'wanda-here.test', '--yes', '--wallet', file, ...unattended]
  const moved = await runProgram([...words, '--server', pds.url], env, PROGRAM, `${PASSWORD}\n${NEW}\n`)
  expect({ ...moved, out: JSON.parse(moved.out) }).toMatchObject({ code: 0, out: { stage: 'done' } })
  expect(JSON.parse(await wallet('show', '--json'))).toMatchObject({ server: pds.url, handle: 'wanda-here.test' })
})

test('the old server is prepared for a move, and left after it', async () => {
  const from = await createAccount(old, 'nora')
  const out = (...words: string[]) =>
    runProgram(['migrate', 'out', from.did, '--server', old.url, ...words, ...unattended], {}, PROGRAM, `${PASSWORD}\n`)
  const backup = join(folder, 'nora.zip')
  const before = await out('--backup', backup, '--mail')
  expect(before).toMatchObject({ code: 1, err: '' })
  expect(JSON.parse(before.out)).toMatchObject({ isHere: true, isActive: true, hasOwnKey: false, deleteAfter: null })
  expect(statSync(backup).mode & 0o777).toBe(0o600)
  expect(await out('--backup', backup)).toMatchObject({ code: 1, err: expect.stringContaining('already exists') })
  expect(await lastCode(old, from.email)).not.toBe('')
  expect(await out('--leave')).toMatchObject({ code: 1, out: '' })

  await run(['in', from.did, '--handle', 'nora-here.test', '--yes', ...unattended], PASSWORD, NEW)
  const code = await lastCode(old, from.email, 2)
  const continued = await run(['continue', from.did, '--code', code, '--yes', ...unattended], NEW)
  expect(continued).toMatchObject({ code: 0 })
  expect(continued.err).toContain('"owner":"this-server"')
  const after = await out('--leave', '--delete-after-days', '30')
  expect(after.code).toBe(0)
  expect(JSON.parse(after.out)).toMatchObject({
    isHere: false,
    host: new URL(pds.url).host,
    isActive: false,
    deleteAfter: expect.any(String),
  })
})

test('misuse exits with 2', async () => {
  expect((await runProgram(['migrate', 'in', 'anna.test'])).code).toBe(2)
  expect((await run(['in', 'anna.test', '--archive', 'a.car'])).code).toBe(2)
  expect((await run(['continue', 'anna.test', '--mail', '--retry'])).code).toBe(2)
})
