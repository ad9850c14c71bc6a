/** A burst of sign-ups is looked at, and undone together. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { giveRole, roleHolder } from '../../support/clients/role-holder.ts'
import { signedAs } from '../../support/clients/service-signer.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const TEN_DAYS = 864_000
const { pds, other } = useWorld({
  other: true,
  config: {
    rateLimit: { enabled: false },
    alerts: { signUpsPerHour: 3 },
    console: { sessionIdleSecs: TEN_DAYS, sessionSecs: TEN_DAYS },
  },
})
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))

const URL = '/v1/admin/sign-ups'
const time = (at: number) => new Date(at).toISOString()
let names = 0

/** Accounts that are made within a time in which no other is. */
async function burst(size: number) {
  pds.clock.advance({ secs: 7200 })
  const from = time(pds.clock.now() - 1000)
  const accounts = []
  for (let i = 0; i < size; i++) accounts.push(await createAccount(pds, `burst-${++names}`))
  return { window: { from, until: time(pds.clock.now() + 1000) }, accounts, dids: accounts.map(({ did }) => did) }
}
const list = (window: Record<string, string>, as = mona) => as.operate(`${URL}?${new URLSearchParams(window)}`)
const undo = (json: object, as = mona) => as.operate(`${URL}/undo`, { json })
const statusesOf = async (window: Record<string, string>) =>
  (await list(window)).body.accounts.map(({ status }: { status: string }) => status)

test('the accounts of a time are listed page by page, and busy hours are seen', async () => {
  const { window, dids, accounts } = await burst(3)
  const { body } = await list({ ...window, limit: '2' })
  expect(body).toMatchObject({ count: 3, burst: 3 })
  expect(body.accounts[0]).toMatchObject({ did: dids[0], handle: accounts[0]!.handle, emailDomain: 'example.com' })
  expect(JSON.stringify(body)).not.toContain(accounts[0]!.email)
  const rest = await list({ ...window, limit: '2', cursor: body.cursor })
  expect([...body.accounts, ...rest.body.accounts].map(({ did }: { did: string }) => did)).toEqual(dids)
  expect(body.hours.at(-1).count).toBeGreaterThanOrEqual(1)
  const wrongs: Record<string, string>[] = [
    { from: 'yesterday' },
    { from: window.until, until: window.from },
    { from: '2001-01-01T00:00:00Z' },
  ]
  for (const wrong of wrongs) expect((await list(wrong)).status).toBe(400)
})

test('they are taken down together, and restored, but not what was taken down before', async () => {
  const { window, dids } = await burst(3)
  await mona.operate('/xrpc/com.atproto.admin.updateSubjectStatus', {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: dids[2] }, takedown: { applied: true } },
  })
  expect((await undo({ ...window, act: 'takedown', dids })).body).toMatchObject({ done: 3 })
  expect((await undo({ ...window, act: 'takedown', dids })).body).toMatchObject({ done: 3 })
  expect(await statusesOf(window)).toEqual(['takendown', 'takendown', 'takendown'])
  expect((await undo({ ...window, act: 'restore', dids })).body).toMatchObject({ done: 2 })
  expect(await statusesOf(window)).toEqual(['active', 'active', 'takendown'])
  const { body } = await olivia.operate('/v1/admin/audit?action=sign_ups_undone')
  expect(body.events[0]).toMatchObject({
    actor: `operator:${mona.did}`,
    detail: expect.stringContaining('restore of 3'),
  })
  const each = await olivia.operate(`/v1/admin/audit?subject=${dids[0]}`)
  expect(each.body.events.map(({ action }: { action: string }) => action)).toEqual([
    'account_restore',
    'account_takedown',
  ])
})

test('what was made at another time, and what operates the server, is kept', async () => {
  const { window, dids, accounts } = await burst(2)
  await giveRole(pds, dids[1]!, 'moderator')
  const later = await createAccount(pds, `later-${++names}`)
  pds.clock.advance({ secs: 10 })
  const before = await burst(1)
  const { body } = await undo({ ...window, act: 'takedown', dids: [...dids, ...before.dids, 'nonsense', mona.did] })
  expect(body.done).toBe(1)
  expect(body.accounts.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
    'done',
    'kept',
    'kept',
    'kept',
    'kept',
  ])
  expect((await logIn(pds, accounts[1]!, PASSWORD)).did).toBe(dids[1]!)
  expect((await logIn(pds, later, PASSWORD)).did).toBe(later.did)
})

test('deleting takes a role that may, and the password of just now', async () => {
  const { window, dids } = await burst(2)
  expect((await undo({ ...window, act: 'delete', dids })).status).toBe(403)
  expect((await undo({ ...window, act: 'delete', dids }, olivia)).body.error.code).toBe('PasswordRequired')
  const { body } = await olivia.operate('/v1/admin/sessions/prove', { json: { password: PASSWORD } })
  const proved = (json: object) => request(`${pds.url}${URL}/undo`, { json, headers: bearer(body.token) })
  expect((await proved({ ...window, act: 'delete', dids })).body).toMatchObject({ done: 2 })
  expect((await list(window)).body).toMatchObject({ count: 0 })
  for (const path of [URL, `${URL}/undo`]) expect((await ivo.operate(path, { method: 'POST' })).status).not.toBe(200)
  expect((await list(window, ivo)).status).toBe(403)
})

test('what moved here from another server is taken down and restored with the others, and not deleted', async () => {
  const { window, dids } = await burst(1)
  const lxm = 'com.atproto.server.createAccount'
  const { did } = await createAccount(pds, `moved-${++names}`, { did: other.did }, bearer(signedAs(other, pds, lxm)))
  expect((await list(window)).body.accounts).toMatchObject([{ arrived: false }, { did, arrived: true }])
  for (const act of ['takedown', 'restore'])
    expect((await undo({ ...window, act, dids: [...dids, did] })).body.done).toBe(2)
  const { body } = await request(`${pds.url}${URL}/undo`, {
    json: { ...window, act: 'delete', dids: [...dids, did] },
    headers: bearer(ADMIN_TOKEN),
  })
  expect(body).toMatchObject({ done: 1, accounts: [{ outcome: 'done' }, { did, outcome: 'kept' }] })
  expect((await list(window)).body.accounts).toMatchObject([{ did, records: 0 }])
})

test('a page of the console undoes those that are ticked', async () => {
  const { window, dids } = await burst(2)
  const browser = new ConsoleBrowser(pds)
  await browser.signIn(mona.did)
  const shown = await browser.open(`/admin/sign-ups?${new URLSearchParams(window)}`)
  expect([shown.status, shown.body.includes(`value="${dids[0]}"`), shown.body.includes('>delete<')]).toEqual([
    200,
    true,
    false,
  ])
  const answer = await browser.act('undo-sign-ups', { ...window, undoing: 'takedown', 'did-1': dids[1]! })
  expect(answer.status).toBe(200)
  expect(await statusesOf(window)).toEqual(['active', 'takendown'])
})

test('commands show them, and undo them but for those that are named', async () => {
  const { window, accounts } = await burst(3)
  const given = ['--from', window.from, '--until', window.until, '--url', pds.url]
  const env = { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN }
  const run = (...words: string[]) => runProgram(['account', ...words, ...given], env)
  expect((await run('sign-ups')).out).toContain(accounts[0]!.handle)
  expect((await run('undo-sign-ups', 'takedown', '--dry-run')).out).toContain('3 accounts')
  expect(await run('undo-sign-ups', 'takedown')).toMatchObject({ code: 2 })
  expect(await statusesOf(window)).toEqual(['active', 'active', 'active'])
  for (const name of ['--from', '--until'])
    expect(await runProgram(['account', 'undo-sign-ups', 'delete', '--yes', ...given, name, ''], env)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining(`${name} takes a time`),
    })
  // Who is misspelt, or named without the domain, would not be kept.
  for (const list of [accounts[0]!.handle.split('.')[0]!, `${accounts[0]!.handle},x`])
    expect(await run('undo-sign-ups', 'delete', '--yes', '--except', list)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('is not among these accounts; nothing was done'),
    })
  expect(await statusesOf(window)).toEqual(['active', 'active', 'active'])
  const undone = await run(
    'undo-sign-ups',
    'takedown',
    '--yes',
    '--except',
    `@${accounts[0]!.handle.toUpperCase()}, `,
    '--reason',
    'a flood',
  )
  expect(undone).toMatchObject({ code: 0 })
  expect(undone.out).toContain('takedown: 2 accounts')
  expect(await statusesOf(window)).toEqual(['active', 'takendown', 'takendown'])
  expect(await run('undo-sign-ups', 'delete', '--yes')).toMatchObject({ code: 0 })
  expect((await list(window)).body.count).toBe(0)
})
