/** Gates before sign-ups and first writes, and other values that operators replace while the server runs. */
import { expect, test } from 'bun:test'
import { parseHandle } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { begin, forCeremonies } from '../../support/clients/ceremony.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: forCeremonies })
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const oscar = setUp(() => roleHolder(pds, 'oscar', 'operator'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))

const keys = async (): Promise<{ name: string; value: string | null; from: string; replacedBy: string | null }[]> =>
  (await request(`${pds.url}/v1/admin/configuration`, { headers: bearer(ADMIN_TOKEN) })).body.keys
const key = async (name: string) => (await keys()).find((one) => one.name === name)!
const owner = { token: ADMIN_TOKEN }
const replace = (name: string, value: string | null, { token }: { token: string } = owner) =>
  request(`${pds.url}/v1/admin/configuration`, {
    json: { name, value },
    headers: { ...bearer(token), 'x-admin-reason': 'a%20wave' },
  })
/** Waits until each node of a cluster has it. */
async function set(name: string, value: string | null): Promise<void> {
  const { status, body } = await replace(name, value)
  expect(status).toBe(200)
  const { value: now } = body
  await until(async () => (await key(name)).value === now && (await key(name)).value === now)
}
const described = async () => (await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)).body
const signUp = (name: string, address = '203.0.113.7', domain = 'test') =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    headers: { 'x-forwarded-for': address },
    json: { handle: `${name}.${domain}`, email: `${name}@example.com`, password: 'a long password' },
  })
const post = ({ did, call }: Pick<TestAccount, 'did' | 'call'>) =>
  call('com.atproto.repo.createRecord', {
    json: {
      repo: did,
      collection: 'app.bsky.feed.post',
      record: { $type: 'app.bsky.feed.post', text: 'x', createdAt: '2026-01-01T00:00:00Z' },
    },
  })

test('only owners and operators replace values, and only those that are live', async () => {
  for (const [name, value] of [
    ['admin_token', 'mine'],
    ['public_url', 'https://evil.example'],
    ['constructor', 'x'],
    ['invite_code_required', 'perhaps'],
    ['signup.accounts_per_range_and_day', '-1'],
  ] as const)
    expect([name, (await replace(name, value)).status]).toEqual([name, 400])
  expect((await replace('invite_code_required', 'true', mona)).status).toBe(403)
  expect((await mona.operate('/v1/admin/configuration')).status).toBe(403)
  expect((await replace('signup.accounts_per_range_and_day', '100', oscar)).status).toBe(200)
  const { events } = (await oscar.operate('/v1/admin/audit?action=configuration_changed&limit=1')).body
  expect(events[0]).toMatchObject({ actor: `operator:${oscar.did}`, reason: 'a wave' })
})

test('a range of addresses makes a limited number of accounts in a day', async () => {
  await set('signup.accounts_per_range_and_day', '2')
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map((name, i) => signUp(`range-${name}`, `203.0.113.${i}`)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 429, 429])
  expect(answers.find(({ status }) => status === 429)!.body.error).toBe('RateLimitExceeded')
  expect((await signUp('range-elsewhere', '198.51.100.1')).status).toBe(200)
  expect((await signUp('range-here', '127.0.0.1')).status).toBe(200)
  pds.clock.advance({ secs: 25 * 3600 })
  expect((await signUp('range-later')).status).toBe(200)
  await set('signup.accounts_per_range_and_day', null)
  for (const name of ['x', 'y', 'z']) expect((await signUp(`range-${name}`)).status).toBe(200)
  pds.clock.advance({ secs: 25 * 3600 })
  await pds.runSweep('signup-places')
  expect(await pds.rows('signup_place')).toEqual([])
})

test('the first record waits for a confirmed address, if that is required', async () => {
  const former = await createAccount(pds, 'former')
  expect((await post(former)).status).toBe(200)
  await set('signup.require_confirmed_address', 'true')
  expect((await post(former)).status).toBe(200)
  const fresh = await createAccount(pds, 'fresh')
  expect(await post(fresh)).toMatchObject({ status: 403, body: { error: 'EmailNotConfirmed' } })
  expect((await fresh.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).status).toBe(200)
  const [token = ''] = /^[A-Z0-9]{5}-[A-Z0-9]{5}$/m.exec(pds.mails.at(-1)!.text) ?? []
  expect((await fresh.call('com.atproto.server.confirmEmail', { json: { email: fresh.email, token } })).status).toBe(
    200,
  )
  expect((await post(fresh)).status).toBe(200)
  await set('signup.require_confirmed_address', null)
})

test('invites are required from now on, without a restart, and after one', async () => {
  await set('invite_code_required', 'true')
  expect((await described()).inviteCodeRequired).toBe(true)
  expect(await signUp('uninvited')).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
  expect(await key('invite_code_required')).toMatchObject({ value: 'true', from: 'run time' })
  await pds.restart()
  expect((await described()).inviteCodeRequired).toBe(true)
  await set('invite_code_required', null)
  expect(await key('invite_code_required')).toMatchObject({ value: 'false', from: 'unknown' })
  expect((await signUp('invitee')).status).toBe(200)
})

test('a domain of handles is added, serves their proofs, and is kept while accounts have handles there', async () => {
  expect((await signUp('early', '203.0.113.7', 'holdfast-handles.dev')).status).toBe(400)
  await set('available_user_domains', 'test, holdfast-handles.dev')
  expect((await described()).availableUserDomains).toEqual(['.test', '.holdfast-handles.dev'])
  const { status, body } = await signUp('elsa', '203.0.113.7', 'holdfast-handles.dev')
  expect(status).toBe(200)
  const proof = await request(`${pds.url}/.well-known/atproto-did`, { headers: { host: 'elsa.holdfast-handles.dev' } })
  expect([proof.status, proof.body]).toEqual([200, body.did])
  for (const value of ['holdfast-handles.dev', null, ''])
    expect([value, (await replace('available_user_domains', value)).status]).toEqual([value, 400])
  expect((await replace('available_user_domains', 'test,not a domain')).body.error.message).toContain(
    'available_user_domains',
  )
})

test('a domain is kept while a wallet makes an account there', async () => {
  const domains = (await key('available_user_domains')).value!.replaceAll(/[[\]"]/g, '')
  await set('available_user_domains', `${domains}, wallets.dev`)
  await begin(pds, 'walt', { handle: parseHandle('walt.wallets.dev')! })
  expect(await replace('available_user_domains', domains)).toMatchObject({ status: 400 })
})

test('a command and a page replace a value', async () => {
  const run = (words: string[]) =>
    runProgram(['config', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  expect(await run(['set', 'blocked_handle_words', 'spam,scam'])).toMatchObject({
    code: 0,
    out: 'blocked_handle_words = ["scam", "spam"]\n',
  })
  await until(
    async () => (await key('blocked_handle_words')).from === 'run time' && (await signUp('ascam')).status === 400,
  )
  expect((await run(['set', 'blocked_handle_words', '--default'])).code).toBe(0)
  expect((await run(['set', 'blocked_handle_words'])).code).toBe(2)

  const desk = new ConsoleBrowser(pds)
  await desk.signIn(olivia.did)
  expect((await desk.act('configure', { name: 'invite_code_required', value: 'true' })).body).toContain('is replaced')
  const { body } = await desk.open('/admin/configuration')
  expect(body).toContain('from: run time')
  expect((await desk.act('configure', { name: 'invite_code_required', value: '' })).status).toBe(200)
})
