/** Accounts that operate the server: what each role may do, and how their sessions begin and end. */
import { expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { giveRole, operateAs, operatorSignIn, roleHolder } from '../../support/clients/role-holder.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const oscar = setUp(() => roleHolder(pds, 'oscar', 'operator'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))
const alice = setUp(() => createAccount(pds, 'alice'))

const denied = { status: 401, body: { error: { code: 'UNAUTHORIZED' } } }
const refused = { status: 403, body: { error: { code: 'FORBIDDEN' } } }
const askedAgain = { status: 403, body: { error: { code: 'PasswordRequired' } } }
const xrpc = (nsid: string) => `/xrpc/com.atproto.${nsid}`
const takedown = (did: string, applied = true) => ({
  json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, takedown: { applied } },
})
const audit = async (query: string) =>
  (await request(`${pds.url}/v1/admin/audit?${query}`, { headers: bearer(ADMIN_TOKEN) })).body.events
const repair = (did: string) => ({ json: { did, password: 'a new password' } })

test('each role may do what the table gives it, and nothing else', async () => {
  const acts: [path: string, init: Parameters<typeof request>[1], roles: string][] = [
    ['/v1/admin/me', {}, 'oomi'],
    ['/v1/admin/sessions', {}, 'oomi'],
    ['/v1/admin/health', {}, 'oom'],
    ['/v1/admin/audit', {}, 'oom'],
    ['/v1/admin/accounts', {}, 'oom'],
    [`/v1/accounts/${alice.did}/usage`, {}, 'oom'],
    [`${xrpc('admin.getAccountInfo')}?did=${alice.did}`, {}, 'oom'],
    [xrpc('admin.updateSubjectStatus'), takedown(alice.did, false), 'oom'],
    [`/v1/admin/accounts/${alice.did}/reset-mail`, { method: 'POST' }, 'oom'],
    [`/v1/admin/accounts/${alice.did}/reset-token`, { method: 'POST' }, 'oo'],
    [xrpc('admin.updateAccountPassword'), repair(alice.did), 'oo'],
    [`/v1/admin/accounts/${alice.did}/archive`, {}, 'oo'],
    ['/v1/admin/steps/retry', { json: { kind: 'mail' } }, 'oo'],
    ['/v1/admin/quota', { json: { records: 0 } }, 'oo'],
    ['/v1/admin/operators', {}, 'oo'],
    ['/v1/accounts/claim-codes', {}, 'ooi'],
    ['/v1/admin/waitlist', {}, 'ooi'],
    [xrpc('server.createInviteCode'), { json: { useCount: 1 } }, 'ooi'],
    ['/v1/admin/operators', { json: { account: alice.did, role: null } }, 'o'],
    ['/v1/admin/pairing-codes', { method: 'POST' }, 'o'],
  ]
  for (const [path, init, allowed] of acts) {
    const answers = []
    for (const who of [olivia, oscar, mona, ivo]) answers.push((await who.operate(path, init)).status)
    const expected =
      allowed === 'ooi' ? [200, 200, 403, 200] : [0, 1, 2, 3].map((i) => (i < allowed.length ? 200 : 403))
    expect([path, ...answers]).toEqual([path, ...expected])
  }
  expect(await mona.operate(xrpc('sync.getBlocks'), {})).not.toMatchObject({ status: 200 })
})

test('nobody raises themselves, and nobody acts on an account that does not stand below', async () => {
  for (const who of [oscar, mona, ivo])
    for (const role of ['owner', 'operator', null])
      expect(await who.operate('/v1/admin/operators', { json: { account: who.did, role } })).toMatchObject(refused)
  for (const above of [olivia, oscar, mona])
    expect(await mona.operate(xrpc('admin.updateSubjectStatus'), takedown(above.did))).toMatchObject({ status: 403 })
  for (const above of [olivia, oscar]) {
    expect(await oscar.operate(xrpc('admin.updateAccountPassword'), repair(above.did))).toMatchObject({ status: 403 })
    expect(await oscar.operate(xrpc('admin.deleteAccount'), { json: { did: above.did } })).toMatchObject({
      status: 403,
    })
    for (const act of ['reset-token', 'reset-mail', 'revoke-credentials'])
      expect(await oscar.operate(`/v1/admin/accounts/${above.did}/${act}`, { method: 'POST' })).toMatchObject(refused)
  }
  const record = { $type: 'com.atproto.admin.defs#repoBlobRef', did: olivia.did, cid: 'bafkqaaa' }
  const blob = { json: { subject: record, takedown: { applied: true } } }
  expect((await mona.operate(xrpc('admin.updateSubjectStatus'), blob)).status).not.toBe(200)
  // They are all as they were.
  for (const who of [olivia, oscar, mona]) expect((await operatorSignIn(pds, who.did)).status).toBe(200)
})

test('the last owner stays, whatever an owner wants; the admin token may end it', async () => {
  const end = (did: string) => olivia.operate('/v1/admin/operators', { json: { account: did, role: 'moderator' } })
  expect(await end(olivia.did)).toMatchObject(refused)
  expect(await olivia.operate(xrpc('admin.updateSubjectStatus'), takedown(olivia.did))).toMatchObject({ status: 403 })
  expect(await olivia.operate(xrpc('admin.deleteAccount'), { json: { did: olivia.did } })).toMatchObject({
    status: 403,
  })
  const second = await roleHolder(pds, 'second', 'owner')
  expect(await end(second.did)).toMatchObject({ status: 200, body: { role: 'moderator' } })
  expect((await giveRole(pds, second.did, null)).status).toBe(200)
})

test('two owners who remove each other do not both succeed', async () => {
  const [a, b] = [await roleHolder(pds, 'owner-a', 'owner'), await roleHolder(pds, 'owner-b', 'owner')]
  expect((await giveRole(pds, olivia.did, null)).status).toBe(200)
  const remove = (by: typeof a, other: typeof a) =>
    by.operate('/v1/admin/operators', { json: { account: other.did, role: null } })
  await Promise.all([remove(a, b), remove(b, a)])
  expect(await pds.count('operator_role', { role: 'owner' })).toBe(1)
  expect((await giveRole(pds, olivia.did, 'owner')).status).toBe(200)
  for (const { did } of [a, b]) await giveRole(pds, did, null)
  olivia.token = (await operatorSignIn(pds, olivia.did)).body.token
})

test('a session opens with the password of an account that has a role, and with nothing else', async () => {
  expect(await operatorSignIn(pds, alice.did, 'wrong')).toMatchObject(denied)
  expect(await operatorSignIn(pds, 'nobody.test')).toMatchObject(denied)
  expect(await operatorSignIn(pds, mona.did, 'x'.repeat(10_000))).toMatchObject(denied)
  const bob = await createAccount(pds, 'bob')
  expect(await operatorSignIn(pds, bob.did)).toMatchObject(refused)
  const { body } = await mona.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
  expect(await operatorSignIn(pds, mona.did, body.password)).toMatchObject(denied)
  for (const headers of [bearer(mona.accessJwt), basic(mona.did, PASSWORD), bearer('A'.repeat(43))])
    expect(await request(`${pds.url}/v1/admin/me`, { headers })).toMatchObject(denied)
  const signedIn = await operatorSignIn(pds, '@mona.test')
  expect(signedIn).toMatchObject({ status: 200, body: { did: mona.did, role: 'moderator' } })
  const me = await operateAs(pds, signedIn.body.token, '/v1/admin/me')
  expect(me.body).toMatchObject({ actor: `operator:${mona.did}` })
  expect(me.body.acts).toContain('moderate')
  expect(me.body.acts).not.toContain('manageRoles')
  // As commands send it.
  expect((await request(`${pds.url}/v1/admin/me`, { headers: basic('admin', signedIn.body.token) })).status).toBe(200)
  // It opens nothing of the account itself.
  expect((await operateAs(pds, signedIn.body.token, xrpc('server.getSession'))).status).not.toBe(200)
})

test('a session ends when it is idle, when it is old, and on a list', async () => {
  const open = async () => (await operatorSignIn(pds, mona.did)).body.token as string
  const me = (token: string) => operateAs(pds, token, '/v1/admin/me')
  const idle = await open()
  pds.clock.advance({ secs: 1860 })
  expect(await me(idle)).toMatchObject(denied)
  const busy = await open()
  for (let minutes = 0; minutes < 8 * 60 - 20; minutes += 20) {
    pds.clock.advance({ secs: 1200 })
    expect((await me(busy)).status).toBe(200)
  }
  pds.clock.advance({ secs: 1200 })
  expect(await me(busy)).toMatchObject(denied)
  pds.clock.advance({ days: 1 })
  await pds.runSweep('admin-nonce-sweep')
  expect(await pds.count('operator_session')).toBe(0)

  const [first, second] = [await open(), await open()]
  const own = (await operateAs(pds, first, '/v1/admin/sessions')).body.sessions
  expect(own).toHaveLength(2)
  const { id } = own.find(({ isThis }: { isThis: boolean }) => !isThis)
  const other = (await operatorSignIn(pds, ivo.did)).body.token as string
  expect(await operateAs(pds, other, `/v1/admin/sessions/${id}/end`, { method: 'POST' })).toMatchObject({ status: 404 })
  expect((await operateAs(pds, first, `/v1/admin/sessions/${id}/end`, { method: 'POST' })).status).toBe(200)
  expect(await me(second)).toMatchObject(denied)
  expect((await me(first)).status).toBe(200)
})

test('a session ends with the role, with the password, and with the account', async () => {
  const ends: ((did: string, account: Awaited<ReturnType<typeof roleHolder>>) => Promise<unknown>)[] = [
    (did) => giveRole(pds, did, null),
    (did) => giveRole(pds, did, 'invite-steward'),
    (did) =>
      request(`${pds.url}${xrpc('admin.updateAccountPassword')}`, { ...repair(did), headers: bearer(ADMIN_TOKEN) }),
    (did) =>
      request(`${pds.url}${xrpc('admin.updateSubjectStatus')}`, { ...takedown(did), headers: bearer(ADMIN_TOKEN) }),
    (did) => request(`${pds.url}${xrpc('admin.deleteAccount')}`, { json: { did }, headers: bearer(ADMIN_TOKEN) }),
    (_, account) => account.call(xrpc('server.deactivateAccount').slice('/xrpc/'.length), { json: {} }),
  ]
  for (const [i, end] of ends.entries()) {
    const holder = await roleHolder(pds, `leaver${i}`, 'moderator')
    expect((await holder.operate('/v1/admin/health')).status).toBe(200)
    await end(holder.did, holder)
    expect([i, (await holder.operate('/v1/admin/health')).status]).toEqual([i, 401])
  }
})

test('a session that a deactivation has ended stays ended when the account is activated again', async () => {
  const byOperator = (did: string, applied: boolean) =>
    request(`${pds.url}${xrpc('admin.updateSubjectStatus')}`, {
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, deactivated: { applied } },
      headers: bearer(ADMIN_TOKEN),
    })
  const listed = async (did: string) =>
    (await request(`${pds.url}/v1/admin/sessions?limit=100`, { headers: bearer(ADMIN_TOKEN) })).body.sessions.filter(
      (session: { did: string }) => session.did === did,
    )
  const holder = await roleHolder(pds, 'returner', 'moderator')
  const ways: [deactivate: () => Promise<unknown>, activate: () => Promise<unknown>][] = [
    [() => byOperator(holder.did, true), () => byOperator(holder.did, false)],
    [
      () => holder.call('com.atproto.server.deactivateAccount', { json: {} }),
      () => holder.call('com.atproto.server.activateAccount', { method: 'POST' }),
    ],
  ]
  for (const [deactivate, activate] of ways) {
    const { token } = (await operatorSignIn(pds, holder.did)).body
    const health = async () => (await operateAs(pds, token, '/v1/admin/health')).status
    expect(await health()).toBe(200)
    expect(await listed(holder.did)).not.toEqual([])
    expect(await deactivate()).toMatchObject({ status: 200 })
    expect([await health(), await listed(holder.did)]).toEqual([401, []])
    expect(await activate()).toMatchObject({ status: 200 })
    expect([await health(), await listed(holder.did)]).toEqual([401, []])
  }
})

test('what is dangerous takes a password that was entered just now', async () => {
  let token = (await operatorSignIn(pds, olivia.did)).body.token as string
  const reset = () => operateAs(pds, token, `/v1/admin/accounts/${alice.did}/reset-token`, { method: 'POST' })
  pds.clock.advance({ secs: 660 })
  expect(await reset()).toMatchObject(askedAgain)
  expect((await operateAs(pds, token, '/v1/admin/health')).status).toBe(200)
  const prove = (password: string) => operateAs(pds, token, '/v1/admin/sessions/prove', { json: { password } })
  expect(await prove('wrong')).toMatchObject(denied)
  expect(await reset()).toMatchObject(askedAgain)
  const before = token
  token = (await prove(PASSWORD)).body.token
  expect((await reset()).status).toBe(200)
  expect(await operateAs(pds, before, '/v1/admin/me')).toMatchObject(denied)
})

test('the audit log says who acted and why', async () => {
  const token = (await operatorSignIn(pds, mona.did)).body.token as string
  const act = (reason: string, applied: boolean) =>
    operateAs(pds, token, xrpc('admin.updateSubjectStatus'), {
      ...takedown(alice.did, applied),
      headers: { 'x-admin-reason': reason },
    })
  expect((await act(encodeURIComponent('Spam – see case\n7\u202e'), true)).status).toBe(200)
  expect(await act('%E0%A4%A', false)).toMatchObject({ status: 400 })
  expect((await act(encodeURIComponent('x'.repeat(3000)), false)).status).toBe(200)
  const [restored, taken] = await audit(`subject=${alice.did}&actor=${encodeURIComponent(`operator:${mona.did}`)}`)
  expect(taken).toMatchObject({ action: 'account_takedown', reason: 'Spam – see case7' })
  expect(restored.reason).toHaveLength(500)
})

test('a further takedown of an account is in the audit log with its reason, and replaces no more than the reference', async () => {
  const { did } = await createAccount(pds, 'twice')
  const events = new Subscriber(pds.url)
  await events.opened
  const { token } = (await operatorSignIn(pds, mona.did)).body
  const status = async () =>
    (await operateAs(pds, token, `${xrpc('admin.getSubjectStatus')}?did=${did}`)).body.takedown as { ref: string }
  const act = async (reason: string, applied: object) => {
    const { json } = takedown(did)
    const headers = { 'x-admin-reason': reason }
    const init = { json: { ...json, takedown: applied }, headers }
    expect((await operateAs(pds, token, xrpc('admin.updateSubjectStatus'), init)).status).toBe(200)
  }
  await act('spam', { applied: true, ref: 'case 1' })
  await act('threats', { applied: true, ref: 'case 2' })
  expect((await status()).ref).toBe('case 2')
  await act('more', { applied: true })
  expect((await status()).ref).toBe('case 2')
  for (const reason of ['appeal', 'again']) await act(reason, { applied: false })
  expect((await audit(`subject=${did}`)).map((event: object) => Object(event).reason)).toEqual([
    'appeal',
    'more',
    'threats',
    'spam',
  ])
  expect((await events.until(2)).map(({ body }) => body['status'])).toEqual(['takendown', undefined])
  events.close()
})

test('takedowns of records and blobs are in the audit log too', async () => {
  const $type = 'org.example.note'
  const writer = await createAccount(pds, 'writer')
  const written = await writer.call('com.atproto.repo.createRecord', {
    json: { repo: writer.did, collection: $type, record: { $type } },
  })
  const headers = bearer(ADMIN_TOKEN)
  const { uri, cid } = written.body
  const subject = { $type: 'com.atproto.repo.strongRef', uri, cid }
  for (const applied of [true, false])
    await request(`${pds.url}${xrpc('admin.updateSubjectStatus')}`, {
      json: { subject, takedown: { applied } },
      headers,
    })
  const events = await audit(`subject=${encodeURIComponent(uri)}`)
  expect(events.map(({ action }: { action: string }) => action)).toEqual(['record_restore', 'record_takedown'])
})

/** Of the operators' interface, what changes something and is open to other roles than owner and operator. */
const OPEN_TO: readonly [paths: RegExp, letters: 'mi' | 'm' | 'i'][] = [
  [/^sessions\/(?::id\/end|prove)$/, 'mi'],
  [/^waitlist\/(?:invite|remove)$/, 'i'],
  [/^accounts\/(?:lookup|:did\/(?:access\/end|reset-mail|revoke-credentials))$/, 'm'],
  [/^(?:cases|blobs|delegations|sign-ups)\b/, 'm'],
]

test('nothing that changes something is open to a moderator or an invite steward, but what is theirs', async () => {
  const endpoints = features
    .flatMap(({ routes = [] }) => routes)
    .flatMap((endpoint) => (endpoint.kind === 'route' && endpoint.path.startsWith('/v1/admin/') ? [endpoint] : []))
    .filter(({ method, path }) => method !== 'GET' && !/^\/v1\/admin\/(?:sessions|devices)$/.test(path))
  expect(endpoints.length).toBeGreaterThan(30)
  const tokens = [
    ['m', (await operatorSignIn(pds, mona.did)).body.token],
    ['i', (await operatorSignIn(pds, ivo.did)).body.token],
  ] as const
  for (const { method, path } of endpoints) {
    const at = path.replaceAll(/:\w+/g, 'none')
    const open = []
    for (const [letter, token] of tokens)
      if ((await operateAs(pds, token, at, { method, json: {} })).status !== 403) open.push(letter)
    const name = path.slice('/v1/admin/'.length)
    const expected = OPEN_TO.find(([paths]) => paths.test(name))?.[1] ?? ''
    expect([method, path, open.join('')]).toEqual([method, path, expected])
  }
})
