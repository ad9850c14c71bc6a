/** Gates before sign-ups and first writes, and other values that operators replace while the server runs. */
import { expect, spyOn, test } from 'bun:test'
import { PlcDirectoryError } from '../../../src/platform/network/directory-client.ts'
import { parseHandle } from '../../../src/protocol/identifiers.ts'
import { workBits } from '../../../src/protocol/proof-of-work.ts'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { begin, forCeremonies } from '../../support/clients/ceremony.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
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

test('a sign-up that makes no account does not count for its range of addresses', async () => {
  await set('signup.accounts_per_range_and_day', '1')
  using _ = atOneNode(pds, 'the directory of one node fails')
  {
    using submissions = spyOn(pds.ctx.plc, 'submit')
    submissions.mockImplementation(() => Promise.reject(new PlcDirectoryError(503, 'out of order')))
    for (let tries = 0; tries < 2; tries++) expect((await signUp('range-outage')).status).toBe(502)
  }
  expect([(await signUp('range-outage')).status, (await signUp('range-second')).status]).toEqual([200, 429])
  await set('signup.accounts_per_range_and_day', null)
  pds.clock.advance({ secs: 25 * 3600 })
})

test('a range of addresses makes a limited number of accounts in a day', async () => {
  await set('signup.accounts_per_range_and_day', '2')
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map((name, i) => signUp(`range-${name}`, `203.0.113.${i}`)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 429, 429])
  const { body, headers } = answers.find(({ status }) => status === 429)!
  const told = ['ratelimit-policy', 'ratelimit-remaining', 'retry-after'].map((name) => headers.get(name))
  expect([body.error, ...told]).toEqual(['RateLimitExceeded', '2;w=86400', '0', '86400'])
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

const needs = async () => (await request(`${pds.url}/v1/sign-up`)).body
const signUpWith = (name: string, extension: unknown, member = 'extension') =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: {
      handle: `${name}.test`,
      email: `${name}@example.com`,
      password: 'a long password',
      ...(extension !== undefined && { [member]: extension }),
    },
  })

test('a question is asked of new accounts, and has several answers', async () => {
  expect((await replace('signup.question', 'Which river runs through our town?')).body.error.message).toContain(
    'signup.answers first',
  )
  await set('signup.answers', 'Isar, the Isar')
  await set('signup.question', 'Which river runs through our town?')
  expect(await needs()).toEqual({ inviteCodeRequired: false, question: 'Which river runs through our town?' })
  for (const extension of [
    undefined,
    {},
    { signUp: {} },
    { signUp: { answer: '' } },
    { signUp: { answer: 'Rhine' } },
    { signUp: { answer: `isar${' '.repeat(300)}` } },
    { signUp: { answer: '<b>isar</b>' } },
  ])
    expect(await signUpWith('stranger', extension)).toMatchObject({ status: 400, body: { error: 'AnswerRequired' } })
  // An app that knows nothing of questions shows the message.
  expect((await signUpWith('stranger', undefined)).body.message).toContain(`${pds.url}/account/sign-up`)
  for (const signUp of [null, [], 'isar', { answer: 1 }, { proofOfWork: 'x' }])
    expect(await signUpWith('stranger', { signUp })).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect((await signUpWith('neighbour', { signUp: { answer: '  THE   isar ' } })).status).toBe(200)
  expect((await signUpWith('wallet-user', { signUp: { answer: 'Isar' } }, 'custos')).status).toBe(200)
  await set('signup.question', null)
  expect((await signUpWith('anyone', undefined)).status).toBe(200)
  await set('signup.answers', null)
})

/** The nonce for an address, found as the script of the page finds it. */
function prove(challenge: string, email: string, bits: number): string {
  for (let nonce = 0; ; nonce++)
    if (workBits({ challenge, subject: email, nonce: String(nonce) }) >= bits) return String(nonce)
}
const proofFor = async (email: string) => {
  const { challenge, bits } = (await needs()).proofOfWork
  return { challenge, nonce: prove(challenge, email, bits) }
}

test('a proof of work is for one address, and lasts an hour', async () => {
  await set('signup.proof_of_work_bits', '9')
  const proofOfWork = await proofFor('worker@example.com')
  const { challenge } = proofOfWork
  const [expires = '', mac = ''] = challenge.split('.')
  const later = `${Number(expires) + 1}.${mac}`
  const small = Array.from({ length: 100 }, (_, i) => String(i)).find(
    (one) => workBits({ challenge, subject: 'worker@example.com', nonce: one }) < 9,
  )!
  for (const given of [
    undefined,
    { challenge, nonce: small },
    { challenge: later, nonce: prove(later, 'worker@example.com', 9) },
    { challenge: 'x', nonce: prove('x', 'worker@example.com', 9) },
    { challenge: '', nonce: prove('', 'worker@example.com', 9) },
    { challenge, nonce: prove(challenge, 'other@example.com', 9) + '0'.repeat(60) },
    await proofFor('other@example.com'),
  ])
    expect(await signUpWith('worker', { signUp: { proofOfWork: given } })).toMatchObject({
      status: 400,
      body: { error: 'ProofOfWorkRequired' },
    })
  pds.clock.advance({ secs: 3601 })
  expect((await signUpWith('worker', { signUp: { proofOfWork } })).body.error).toBe('ProofOfWorkRequired')
  const fresh = await proofFor('worker@example.com')
  const answers = await Promise.all([1, 2, 3].map(() => signUpWith('worker', { signUp: { proofOfWork: fresh } })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400])
  // Its holder gives the address up, and the proof for it is spent.
  const { accessJwt } = answers.find(({ status }) => status === 200)!.body
  const left = await xrpc(pds, 'com.atproto.server.updateEmail', {
    headers: bearer(accessJwt),
    json: { email: 'elsewhere@example.com' },
  })
  expect(left.status).toBe(200)
  const again = (proofOfWork: unknown) =>
    xrpc(pds, 'com.atproto.server.createAccount', {
      json: {
        handle: 'worker-again.test',
        email: 'worker@example.com',
        password: 'a long password',
        extension: { signUp: { proofOfWork } },
      },
    })
  expect((await again(fresh)).body.error).toBe('ProofOfWorkRequired')
  // Challenges of the same second are the same.
  pds.clock.advance({ secs: 1 })
  expect((await again(await proofFor('worker@example.com'))).status).toBe(200)
  await set('invite_code_required', 'true')
  expect(await needs()).toEqual({ inviteCodeRequired: true })
  await set('invite_code_required', null)
  await set('signup.proof_of_work_bits', null)
})

test('a proof for one server is worthless at another', async () => {
  await set('signup.proof_of_work_bits', '8')
  await using other = await startPds({ rateLimit: { enabled: false }, signup: { proofOfWorkBits: 8 } })
  const email = 'traveller@example.com'
  const proofOfWork = await proofFor(email)
  const json = { handle: 'traveller.test', email, password: PASSWORD, extension: { signUp: { proofOfWork } } }
  const answer = await request(`${other.url}/xrpc/com.atproto.server.createAccount`, { json })
  expect(answer).toMatchObject({ status: 400, body: { error: 'ProofOfWorkRequired' } })
  expect((await request(`${pds.url}/xrpc/com.atproto.server.createAccount`, { json })).status).toBe(200)
  await set('signup.proof_of_work_bits', null)
})

test('a challenge made while the clock was ahead proves nothing', async () => {
  await set('signup.proof_of_work_bits', '4')
  pds.clock.jump({ secs: 7200 })
  const proofOfWork = await proofFor('ahead@example.com')
  pds.clock.jump({ secs: -7200 })
  expect((await signUpWith('ahead', { signUp: { proofOfWork } })).body.error).toBe('ProofOfWorkRequired')
  await set('signup.proof_of_work_bits', null)
})

test('the waiting list opens and closes', async () => {
  const join = () => request(`${pds.url}/waitlist`, { json: { email: 'waiting@example.com' } })
  const offers = async () => (await described()).extension.capabilities.includes('waitlist')
  expect([await offers(), (await join()).status]).toEqual([false, 404])
  await set('waitlist.enabled', 'true')
  expect([await offers(), (await join()).status]).toEqual([true, 200])
  await set('waitlist.enabled', null)
  expect([await offers(), (await join()).status]).toEqual([false, 404])
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
