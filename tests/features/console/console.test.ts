/** The operators' console: who gets in, what its pages show and do, and what they refuse. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { FactorHolder, passkeyOptionsOn } from '../../support/clients/factor-holder.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { PasskeyDevice } from '../../support/clients/passkey-device.ts'
import { giveRole, operatorSignIn, roleHolder } from '../../support/clients/role-holder.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, waitlist: { enabled: true } } })
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))
const alice = setUp(() => createAccount(pds, 'alice'))

const PAGES = [
  '',
  '/accounts',
  '/cases',
  '/invites',
  '/waitlist',
  '/work',
  '/network',
  '/configuration',
  '/requests',
  '/agents',
  '/pushes',
  '/audit',
  '/operators',
].map((path) => `/admin${path}`)

async function signedIn(account: { did: string }): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(pds)
  const answer = await browser.signIn(account.did)
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/admin'])
  return browser
}

const audit = async (query: string) =>
  (await request(`${pds.url}/v1/admin/audit?${query}`, { headers: bearer(ADMIN_TOKEN) })).body.events
const toSignIn = async (browser: ConsoleBrowser) => {
  const { status, headers } = await browser.open('/admin')
  return [status, headers.get('location')]
}

test('an account with a role signs in, and its cookie is for these pages alone', async () => {
  const browser = new ConsoleBrowser(pds)
  const { headers } = await browser.signIn('@olivia.test')
  const [cookie] = headers.getSetCookie()
  expect(cookie).toMatch(/^holdfast-operator=[\w-]{43}; Path=\/admin; HttpOnly; SameSite=Strict$/)
  for (const path of PAGES) {
    const { status, headers: answered, body } = await browser.open(path)
    expect([path, status]).toEqual([path, 200])
    expect(answered.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
    expect(answered.get('x-frame-options')).toBe('DENY')
    expect(answered.get('access-control-allow-origin')).toBeNull()
    expect(answered.get('cache-control')).toBe('no-store')
    expect(body.length).toBeLessThan(60_000)
  }
  const { token } = { token: browser.cookie.split('=')[1]! }
  // Another browser that has stolen the cookie, and a program with its token.
  expect(await toSignIn(Object.assign(new ConsoleBrowser(pds, 'curl/8'), { cookie: browser.cookie }))).toEqual([
    303,
    '/admin/sign-in',
  ])
  expect((await request(`${pds.url}/v1/admin/me`, { headers: bearer(token) })).status).toBe(401)
  expect((await request(`${pds.url}/v1/admin/me`, { headers: { cookie: browser.cookie } })).status).toBe(401)
})

test('who has no role, or another credential, does not get in', async () => {
  const browser = new ConsoleBrowser(pds)
  for (const [name, password] of [
    [alice.did, PASSWORD],
    [mona.did, 'wrong'],
    ['nobody.test', PASSWORD],
    ['', ''],
  ] as const) {
    const { status, body } = await browser.signIn(name, password)
    expect([name, status]).toEqual([name, 200])
    expect(body).toContain('role="alert" id="fault"')
    // Screen readers announce the fault: at its field, or where it stands if the credentials are right.
    const isOfField = /name="password"[^>]*aria-invalid="true" aria-describedby="fault"/.test(body)
    expect([name, isOfField]).toEqual([name, name !== alice.did])
    expect(body.includes('id="fault" tabindex="-1" autofocus')).toBe(!isOfField)
  }
  expect(browser.cookie).toBe('')
  for (const headers of [
    bearer(ADMIN_TOKEN),
    basic('admin', ADMIN_TOKEN),
    bearer(mona.token),
    bearer(alice.accessJwt),
  ]) {
    const { status, headers: answered } = await browser.open('/admin', headers)
    expect([status, answered.get('location')]).toEqual([303, '/admin/sign-in'])
  }
})

test('a session of the console ends with its time, its role, its password, and a sign-out', async () => {
  const browser = await signedIn(mona)
  pds.clock.advance({ secs: 31 * 60 })
  expect(await toSignIn(browser)).toEqual([303, '/admin/sign-in'])

  const out = await signedIn(mona)
  const before = out.cookie
  await out.send('/admin/sign-out', { console_token: await out.formToken() })
  expect(await toSignIn(Object.assign(new ConsoleBrowser(pds), { cookie: before }))).toEqual([303, '/admin/sign-in'])

  const again = await signedIn(mona)
  await giveRole(pds, mona.did, null)
  expect(await toSignIn(again)).toEqual([303, '/admin/sign-in'])
  await giveRole(pds, mona.did, 'moderator')
})

test('an account with a second factor is asked for it, and the configuration may demand one', async () => {
  await using other = await startPds({ rateLimit: { enabled: false }, console: { requiresFactor: true } })
  const fay = await createAccount(other, 'fay')
  await giveRole(other, fay.did, 'moderator')
  const browser = new ConsoleBrowser(other)
  expect((await browser.signIn(fay.did)).body).toContain('Operators need a second factor here')
  expect((await operatorSignIn(other, fay.did)).status).toBe(403)

  const holder = new FactorHolder(other, fay)
  await holder.signIn()
  await holder.addApp()
  expect((await browser.signIn(fay.did)).body).toContain('Code of your second factor')
  expect((await operatorSignIn(other, fay.did)).body.error.code).toBe('AuthFactorTokenRequired')
  const fields = { identifier: fay.did, password: PASSWORD }
  expect((await browser.send('/admin/sign-in', { ...fields, factor_code: '000000' })).body).toContain('role="alert"')
  expect(browser.cookie).toBe('')
  const code = holder.nextCode()
  expect((await browser.send('/admin/sign-in', { ...fields, factor_code: code })).status).toBe(303)
  expect((await browser.send('/admin/sign-in', { ...fields, factor_code: code })).status).toBe(200)
})

test('a form counts only if a page of this session sent it', async () => {
  const browser = await signedIn(mona)
  const token = await browser.formToken()
  const other = await (await signedIn(mona)).formToken()
  const fields = { act: 'takedown', did: alice.did, reason: 'none', back: '/admin' }
  for (const [proof, headers] of [
    [token, { 'sec-fetch-site': 'cross-site' }],
    [token, { 'sec-fetch-site': 'same-site' }],
    ['', {}],
    [other, {}],
    [`${token}x`, {}],
  ] as const)
    expect((await browser.send('/admin/act', { ...fields, console_token: proof }, headers)).status).toBe(403)
  const { status } = await request(`${pds.url}/admin/act`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://evil.example',
      cookie: browser.cookie,
      'user-agent': browser.agent,
    },
    body: new URLSearchParams({ ...fields, console_token: token }).toString(),
  })
  expect(status).toBe(403)
  expect(await audit(`subject=${alice.did}`)).toEqual([])
})

test.each(['', 'nothing', 'constructor', '__proto__'])('an act that there is not is refused: %p', async (act) => {
  const browser = await signedIn(mona)
  const fields = { act, did: alice.did, reason: 'none', back: '/admin', console_token: await browser.formToken() }
  expect((await browser.send('/admin/act', fields)).status).toBe(400)
})

test('a page is opened in a tab, on the host of the service', async () => {
  const browser = await signedIn(mona)
  for (const headers of [{ 'sec-fetch-dest': 'iframe' }, { 'sec-fetch-mode': 'cors' }] as Record<string, string>[])
    expect((await browser.open('/admin', headers)).status).toBe(400)
  for (const path of ['/admin', '/admin/sign-in'])
    expect((await browser.open(path, { host: 'alice.test' })).status).toBe(404)
})

test('a moderator takes an account down with a reason, and lifts the takedown', async () => {
  const browser = await signedIn(mona)
  expect((await browser.open(`/admin/account?did=${alice.did}`)).body).toContain('Take the account down')
  expect((await browser.act('takedown', { did: alice.did, reason: 'case 9 <b>' })).body).toContain('It is taken down.')
  const [event] = await audit(`subject=${alice.did}`)
  expect(event).toMatchObject({ actor: `operator:${mona.did}`, action: 'account_takedown', reason: 'case 9 <b>' })
  expect((await browser.open(`/admin/account?did=${alice.did}`)).body).toContain('because: case 9 &lt;b&gt;')
  expect((await browser.act('restore', { did: alice.did })).status).toBe(200)
})

test('nothing is done without a reason, whatever the browser lets through', async () => {
  const browser = await signedIn(mona)
  const zoe = await createAccount(pds, 'zoe')
  for (const reason of ['', '  ', '\u200b\u2060 \ufeff'])
    for (const act of ['takedown', 'end-access', 'disable-invites']) {
      const { status, body } = await browser.act(act, { did: zoe.did, reason })
      expect([act, status]).toEqual([act, 400])
      expect(body).toContain('Nothing was done')
    }
  expect(await zoe.call('com.atproto.server.getSession')).toMatchObject({ status: 200, body: { active: true } })
})

test('a form about a record or a blob that names none acts on no account', async () => {
  const browser = await signedIn(mona)
  const yara = await createAccount(pds, 'yara')
  const isActive = async () =>
    (await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${yara.did}`)).body.active
  for (const subject of ['', ' ', '\u00a0']) {
    const { status, body } = await browser.act('takedown', { did: yara.did, subject })
    expect([status, await isActive()]).toEqual([400, true])
    expect(body).toContain('AT URI or link of the record, or CID of the blob')
  }
  expect((await browser.act('takedown', { did: yara.did })).status).toBe(200)
  expect((await browser.act('restore', { did: yara.did, subject: ' ' })).status).toBe(400)
  expect(await isActive()).toBe(false)
})

test('the link of a record is enough to take it down, in this version and the later ones, and to restore it', async () => {
  const browser = await signedIn(mona)
  const xena = await createAccount(pds, 'xena')
  const at = { repo: xena.did, collection: 'app.bsky.feed.post', rkey: '3kaaaaaaaaa2a' }
  const post = async (text: string) => {
    const record = { $type: at.collection, text, createdAt: new Date().toISOString() }
    expect((await xena.call('com.atproto.repo.putRecord', { json: { ...at, record } })).status).toBe(200)
  }
  const shown = async () =>
    (await request(`${pds.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams(at)}`)).status
  await post('first')
  const about = { did: xena.did, subject: `https://bsky.app/profile/xena.test/post/${at.rkey}` }
  expect((await browser.act('takedown', about)).status).toBe(200)
  expect(await shown()).toBe(400)
  await post('second')
  expect(await shown()).toBe(400)
  expect((await browser.act('restore', about)).status).toBe(200)
  expect(await shown()).toBe(200)
  const unknown = { did: xena.did, subject: `at://${xena.did}/app.bsky.feed.post/none` }
  expect(await browser.act('takedown', unknown)).toMatchObject({
    status: 400,
    body: expect.stringContaining('Subject not found'),
  })
})

test('a quota that is no number changes none', async () => {
  const browser = await signedIn(olivia)
  const path = `${pds.url}/v1/admin/accounts/${alice.did}/quota`
  const own = async () => (await request(path, { headers: bearer(ADMIN_TOKEN) })).body.own
  expect((await browser.act('quota', { did: alice.did, records: '500', blobBytes: '' })).status).toBe(200)
  for (const given of ['10k', '2 000', '1e999', '-1', '1.5']) {
    const { status, body } = await browser.act('quota', { did: alice.did, records: given, blobBytes: '7' })
    expect([given, status, await own()]).toEqual([given, 400, { records: 500, blobBytes: null }])
    expect(body).toContain('0 is no limit')
  }
  expect((await browser.act('quota', { did: alice.did, records: 'default' })).status).toBe(200)
  expect(await own()).toEqual({ records: null, blobBytes: null })
})

test('a page permits no more than the interface does', async () => {
  const browser = await signedIn(mona)
  for (const [act, fields] of [
    ['delete', { did: alice.did }],
    ['reset-code', { did: alice.did }],
    ['address', { did: alice.did, email: 'mine@example.com' }],
    ['role', { account: mona.did, role: 'owner' }],
    ['takedown', { did: olivia.did }],
    ['end-access', { did: olivia.did }],
    ['sweep', { name: 'blob-gc' }],
  ] as const)
    expect([act, (await browser.act(act, fields)).status]).toEqual([act, 403])
  expect((await browser.act('no-such-act', {})).status).toBe(400)
  expect((await browser.act('end-session', { id: '../../operators' })).status).toBe(404)
  const steward = await signedIn(ivo)
  for (const path of ['/admin/accounts', '/admin/audit', `/admin/account?did=${alice.did}`])
    expect((await steward.open(path)).body).toContain('does not permit this')
  expect((await steward.act('invite', { uses: '2' })).body).toContain('Invite code')
  expect((await steward.act('claim', {})).body).toContain('Claim code')
})

test('what is dangerous asks for the password again, and then goes on', async () => {
  const browser = await signedIn(olivia)
  pds.clock.advance({ secs: 11 * 60 })
  const asked = await browser.act('reset-code', { did: alice.did })
  expect(asked.body).toContain('Enter your password again')
  const before = browser.cookie
  const { body } = await browser.act('reset-code', { did: alice.did, password: 'wrong' })
  expect(body).toMatch(/id="fault">That is not your password/)
  expect(body).toMatch(/name="password"[^>]*aria-invalid="true" aria-describedby="fault"/)
  const done = await browser.act('reset-code', { did: alice.did, password: PASSWORD })
  expect(done.body).toMatch(/class="secret">[A-Z2-7]{5}-[A-Z2-7]{5}</)
  expect(browser.cookie).not.toBe(before)
  expect(await toSignIn(Object.assign(new ConsoleBrowser(pds), { cookie: before }))).toEqual([303, '/admin/sign-in'])
})

test('an owner gives and removes roles, and ends sessions', async () => {
  const browser = await signedIn(olivia)
  const bob = await createAccount(pds, 'bob')
  expect((await browser.act('role', { account: '@bob.test', role: 'moderator' })).body).toContain(
    'The role is changed.',
  )
  const bobs = await signedIn(bob)
  expect((await browser.open('/admin/operators')).body).toContain('bob.test')
  const sessions = (await request(`${pds.url}/v1/admin/sessions`, { headers: bearer(ADMIN_TOKEN) })).body.sessions
  const { id } = sessions.find(({ did }: { did: string }) => did === bob.did)
  expect((await browser.act('end-session', { id })).status).toBe(200)
  expect(await toSignIn(bobs)).toEqual([303, '/admin/sign-in'])
  expect((await browser.act('role', { account: bob.did, role: '' })).status).toBe(200)
  expect((await bobs.signIn(bob.did)).body).toContain('is not an operator of this server')
})

test('what strangers write is shown as text', async () => {
  const script = '<script>alert(1)</script>'
  const browser = await signedIn(olivia)
  await request(`${pds.url}/waitlist`, { json: { email: `${script.replaceAll(' ', '')}@example.com` } })
  await request(`${pds.url}/v1/admin/sessions`, {
    json: { account: mona.did, password: PASSWORD },
    headers: { 'user-agent': script, origin: `https://${'x'.repeat(20)}.example"onload=alert(1)` },
  })
  await browser.act('mail', { did: alice.did, content: script, about: script, reason: script })
  for (const path of [
    ...PAGES,
    `/admin/account?did=${encodeURIComponent(script)}`,
    `/admin/accounts?q=${encodeURIComponent(`"${script}`)}`,
    `/admin/audit?actor=${encodeURIComponent(`"${script}`)}`,
  ])
    expect([path, (await browser.open(path)).body.includes('<script')]).toEqual([path, false])
  const back = await browser.act('restore', { did: alice.did, back: `javascript:alert(1)` })
  expect(back.body).toContain('href="/admin"')
  expect(back.body).not.toContain('javascript:')
  const away = await browser.act('restore', { did: alice.did, back: '/admin/../../evil' })
  expect(away.body).toContain('href="/admin"')
})

test('names of strangers do not change the direction of what is beside them', async () => {
  const [mirrored, hidden] = ['\u202eelpmaxe', 'exam\u200bple']
  const wendy = await createAccount(pds, 'wendy')
  for (const name of [mirrored, hidden])
    expect((await wendy.call('com.atproto.server.createAppPassword', { json: { name } })).status).toBe(200)
  await request(`${pds.url}/waitlist`, { json: { email: `a${mirrored}@example.com` } })
  const browser = await signedIn(olivia)
  const account = shownIn((await browser.open(`/admin/account?did=${wendy.did}`)).body)
  const waitlist = shownIn((await browser.open('/admin/waitlist')).body)
  expect(account).toContain('elpmaxe')
  expect(account).toContain('example')
  expect(waitlist).toContain('aelpmaxe@example.com')
  expect(account + waitlist).not.toMatch(/[\u200b\u202e]/)
})

/** The text of a page, without the fields of its forms. */
const shownIn = (body: string): string => body.replaceAll(/<[^>]*>/g, ' ')

test('lists are paged', async () => {
  const browser = await signedIn(ivo)
  for (let i = 0; i < 26; i++) await request(`${pds.url}/waitlist`, { json: { email: `waiting${i}@example.com` } })
  const listed: string[] = []
  for (let path = '/admin/waitlist', pages = 0; path !== ''; pages++) {
    expect(pages).toBeLessThan(5)
    const { body } = await browser.open(path)
    listed.push(...[...body.matchAll(/<strong>(waiting\d+)@/g)].map(([, name]) => name))
    path = /href="(\/admin\/waitlist\?cursor=\d+)">More/.exec(body)?.[1] ?? ''
  }
  expect(listed).toEqual(Array.from({ length: 26 }, (_, i) => `waiting${25 - i}`))
})

test('growth is counted by day', async () => {
  const { body } = await request(`${pds.url}/v1/admin/growth`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.days).toHaveLength(30)
  // Its clock was set ahead, and may have come to the next day.
  const [before, today] = body.days.slice(-2)
  expect(before.accounts + today.accounts).toBeGreaterThan(3)
})

test('accounts that wrote are counted for a day, a week and a month', async () => {
  await using other = await startPds({ rateLimit: { enabled: false } })
  const owner = await roleHolder(other, 'orla', 'owner')
  const writer = await createAccount(other, 'writer')
  const growth = async () => {
    other.clock.advance({ secs: 601 })
    return (await request(`${other.url}/v1/admin/growth`, { headers: bearer(ADMIN_TOKEN) })).body.active
  }
  expect(await growth()).toEqual({ day: 2, week: 2, month: 2 })
  other.clock.advance({ days: 8 })
  const again = await logIn(other, writer, writer.password)
  const record = { $type: 'com.example.note' }
  await again.call('com.atproto.repo.createRecord', {
    json: { repo: writer.did, collection: 'com.example.note', record, validate: false },
  })
  expect(await growth()).toEqual({ day: 1, week: 1, month: 2 })
  other.clock.advance({ days: 23 })
  expect(await growth()).toEqual({ day: 0, week: 0, month: 1 })
  const browser = new ConsoleBrowser(other)
  await browser.signIn(owner.did)
  expect((await browser.open('/admin')).body).toContain(
    'Accounts that wrote: 0 in the last day, 0 in a week, 1 in 30 days',
  )
})

test('the overview tells about accounts, storage, relays, work, backups, certificates, disk and nodes', async () => {
  const browser = await signedIn(mona)
  const findings = async () =>
    (await request(`${pds.url}/v1/admin/doctor`, { headers: bearer(ADMIN_TOKEN) })).body.findings as {
      check: string
      text: string
    }[]
  await browser.open('/admin')
  await until(async () => (await findings()).length > 0)
  const { body } = await browser.open('/admin')
  const facts = new Map(
    String(body)
      .matchAll(/<dt>([^<]+)<\/dt><dd>(.*?)<\/dd>/g)
      .map(([, name, value]) => [name!, value!.replaceAll(/<[^>]+>/g, '').replaceAll('&#x27;', "'")]),
  )
  for (const name of ['Accounts', 'Blobs', 'Subscribers of the event stream', 'Sweeps that have run', 'Nodes'])
    expect([name, facts.get(name)]).toEqual([name, expect.stringMatching(/./)])
  expect(facts.get('Free on the disk')).toMatch(/^[\d.,]+ [kMGT]B$/)
  expect(facts.get('Steps that wait')).toMatch(/^\d+$/)
  expect(facts.get('Certificates')).toBe('none of its own')
  const said = await findings()
  const texts = ['backups', 'relay'].map((check) => said.find((finding) => finding.check === check)!.text)
  expect([facts.get('Backups'), facts.get('Relays')]).toEqual(texts)
  expect(String(body).match(/<svg class="chart"/g)).toHaveLength(2)
})

test('the overview names damaged repositories, with the place of each fault', async () => {
  const browser = await signedIn(olivia)
  expect((await browser.open('/admin')).body).toContain('The running check has found none.')
  const finding = { did: alice.did, fault: 'record com.example.note/note7 is missing', found_at: 1, seen_at: 1 }
  await pds.plant('integrity_finding', finding)
  const { body } = await browser.open('/admin')
  expect(body).toContain('alice.test')
  expect(body).toContain('record com.example.note/note7 is missing')
  expect(body).toContain('There are 1 damaged repositories')
  await pds.lose('integrity_finding', { did: alice.did })
})

test('a console that is off is not there', async () => {
  await using other = await startPds({ console: { enabled: false } })
  expect((await request(`${other.url}/admin`)).status).toBe(404)
  expect((await request(`${other.url}/admin/sign-in`)).status).toBe(404)
})

test('the configuration in force is shown without secrets, to those who keep the server going', async () => {
  const browser = await signedIn(olivia)
  const { body } = await browser.open('/admin/configuration?section=repos')
  expect(body).toContain('repos.max_records_per_account')
  expect(body).toContain('Replaced while the server runs by: <code>holdfast quota set</code>')
  const sections = String(body)
    .matchAll(/\/admin\/configuration\?section=(\w+)/g)
    .map(([path]) => path)
  for (const path of new Set(sections)) {
    const page = await browser.open(path)
    expect([path, page.body.length < 60_000]).toEqual([path, true])
  }
  const { body: general } = await browser.open('/admin/configuration?section=general')
  expect(general).toContain('admin_token')
  expect(general).not.toContain(ADMIN_TOKEN)
  expect(general.length).toBeLessThan(60_000)
  expect((await (await signedIn(mona)).open('/admin/configuration')).body).toContain('does not permit this')
})

// Factors

/** An operator with an authenticator app, and one with a passkey, each signed in at the console. */
async function withFactor(name: string, add: (holder: FactorHolder) => Promise<unknown>) {
  const account = await createAccount(pds, name)
  await giveRole(pds, account.did, 'owner')
  const holder = new FactorHolder(pds, account)
  await holder.signIn()
  await add(holder)
  return { account, holder, browser: new ConsoleBrowser(pds) }
}

const later = () => pds.clock.advance({ secs: 11 * 60 })
let victims = 0
const deletion = async () => {
  const { did } = await createAccount(pds, `gone${++victims}`)
  return { did, fields: { did } }
}
const isThere = async (did: string) => (await pds.count('account', { did })) === 1

test('a dangerous act asks for the code of an app too, once the sign-in is some minutes old', async () => {
  const { account, holder, browser } = await withFactor('tom', (one) => one.addApp())
  const person = { identifier: account.did, password: PASSWORD }
  await browser.send('/admin/sign-in', { ...person, factor_code: holder.nextCode() })
  later()
  const { did, fields } = await deletion()
  const asked = await browser.act('delete', fields)
  expect(asked.body).toContain('Code of your second factor')
  const repeat = async (more: Record<string, string>) => browser.act('delete', { ...fields, ...more })
  expect((await repeat({ password: PASSWORD })).body).toContain('second factor')
  expect((await repeat({ password: PASSWORD, factor_code: '000000' })).body).toContain('This code is wrong')
  expect((await repeat({ password: 'wrong', factor_code: holder.nextCode() })).body).toContain('not your password')
  expect(await isThere(did)).toBe(true)
  expect((await repeat({ password: PASSWORD, factor_code: holder.nextCode() })).body).toContain(
    'The account is deleted',
  )
  expect(await isThere(did)).toBe(false)
})

test('a program shows the code too, or is told that it is missing', async () => {
  const { account, holder } = await withFactor('tina', (one) => one.addApp())
  const json = { account: account.did, password: PASSWORD, authFactorToken: holder.nextCode() }
  const { token } = (await request(`${pds.url}/v1/admin/sessions`, { json })).body
  later()
  const prove = (more: object) =>
    request(`${pds.url}/v1/admin/sessions/prove`, { json: { password: PASSWORD, ...more }, headers: bearer(token) })
  expect(await prove({})).toMatchObject({ status: 401, body: { error: { code: 'AuthFactorTokenRequired' } } })
  expect(await prove({ authFactorToken: '000000' })).toMatchObject({ status: 400 })
  const code = holder.nextCode()
  expect(await prove({ password: 'wrong', authFactorToken: code })).toMatchObject({ status: 401 })
  expect(await prove({ authFactorToken: code })).toMatchObject({ status: 200 })
})

test('an operator whose factor is a code from the mail gets one for a dangerous act', async () => {
  const { account, holder, browser } = await withFactor('mia', async () => null)
  await account.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  const json = { email: account.email, token: await lastCode(pds, account.email) }
  await account.call('com.atproto.server.confirmEmail', { json })
  await browser.signIn(account.did)
  expect((await holder.change('mail-on')).status).toBe(303)
  later()
  const { did, fields } = await deletion()
  expect((await browser.act('delete', fields)).body).not.toContain('Code of your second factor')
  expect((await browser.act('delete', { ...fields, password: PASSWORD })).body).toContain('We have mailed you a code')
  const factor_code = await lastCode(pds, account.email)
  expect((await browser.act('delete', { ...fields, password: PASSWORD, factor_code })).body).toContain('deleted')
  expect(await isThere(did)).toBe(false)
})

test('a passkey signs an operator in, and permits dangerous acts, each answer once', async () => {
  const device = new PasskeyDevice(pds.url)
  const { account, browser } = await withFactor('pat', (one) => one.addPasskey(device))
  const page = await browser.open('/admin/sign-in')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'; ")
  const passkey = device.get(passkeyOptionsOn(page.body)!)
  const stranger = new ConsoleBrowser(pds)
  expect((await stranger.send('/admin/sign-in', { passkey })).body).toContain('role="alert"')
  expect((await browser.send('/admin/sign-in', { passkey })).status).toBe(303)
  expect((await browser.send('/admin/sign-in', { passkey })).status).toBe(200)
  expect((await browser.open('/admin')).headers.get('content-security-policy')).not.toContain('script-src')

  later()
  const { did, fields } = await deletion()
  const asked = await browser.act('delete', fields)
  const options = passkeyOptionsOn(asked.body)!
  const lie = device.get(options, { origin: 'https://evil.example' })
  expect((await browser.act('delete', { ...fields, passkey: lie })).body).toContain('was not accepted')
  expect((await browser.act('delete', { ...fields, password: PASSWORD })).body).toContain('second factor')
  expect(await isThere(did)).toBe(true)
  const answer = device.get(options)
  // Of another session of the same operator, and for another page.
  const other = new ConsoleBrowser(pds)
  const { body } = await other.open('/admin/sign-in')
  await other.send('/admin/sign-in', { passkey: device.get(passkeyOptionsOn(body)!) })
  later()
  expect((await other.act('delete', { ...fields, passkey: answer })).body).toContain('too long')
  expect((await browser.act('delete', { ...fields, passkey: answer })).body).toContain('too long')
  const again = await browser.act('delete', fields)
  const right = device.get(passkeyOptionsOn(again.body)!)
  expect((await browser.act('delete', { ...fields, passkey: right })).body).toContain('The account is deleted')
  const next = await deletion()
  later()
  expect((await browser.act('delete', { ...next.fields, passkey: right })).body).not.toContain('is deleted')
  expect(await isThere(next.did)).toBe(true)
  expect(JSON.stringify(await audit(`subject=${account.did}`))).toContain('operator_signed_in')
})

test('a passkey of an account without a role opens no console', async () => {
  const holder = new FactorHolder(pds, await createAccount(pds, 'norole'))
  await holder.signIn()
  const device = await holder.addPasskey()
  const browser = new ConsoleBrowser(pds)
  const { body } = await browser.open('/admin/sign-in')
  const sent = await browser.send('/admin/sign-in', { passkey: device.get(passkeyOptionsOn(body)!) })
  expect(sent.body).toContain('is not an operator of this server')
  // What it answers at the account pages opens no console either.
  const mona2 = await withFactor('mona2', (one) => one.addPasskey(device))
  const open = await mona2.holder.browser.open('/account/sign-in')
  const passkey = device.get(passkeyOptionsOn(open.body)!)
  expect((await mona2.browser.send('/admin/sign-in', { passkey })).body).toContain('role="alert"')
  expect(mona2.browser.cookie).toBe('')
})
