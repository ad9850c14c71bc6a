/** Cases: how they begin, what is decided about them, and how the person answers. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { NOTICE, signedAs } from '../../support/clients/service-signer.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, labeler, moderation, other } = useWorld({
  labeler: true,
  moderation: true,
  other: true,
  config({ labeler, moderation }) {
    // Before the first pass of the sweep, which remembers the document.
    labeler.services['atproto_labeler'] = labeler.url
    return {
      rateLimit: { enabled: false },
      moderation: { reportUrl: moderation.url, reportDid: moderation.did },
      labeler: { watched: [{ did: labeler.did, labels: [] }] },
      cases: { noticeAuthorities: [labeler.did] },
    }
  },
})
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const alice = setUp(() => createAccount(pds, 'alice'))

const CASES = '/v1/admin/cases'
const createReport = 'com.atproto.moderation.createReport'
const HOSTILE = '<script>alert(1)</script>\u202e\u0000 "\'&'
const account = (did: string) => ({ $type: 'com.atproto.admin.defs#repoRef', did })

let names = 0
const person = () => createAccount(pds, `person-${++names}`)
const here = () => ({ 'atproto-proxy': `${pds.ctx.config.serverDid}#atproto_labeler` })
const say = (by: TestAccount, subject: object, reason = 'It is spam.', more: object = {}) =>
  by.call(createReport, {
    headers: here(),
    json: { reasonType: 'com.atproto.moderation.defs#reasonSpam', reason, subject, ...more },
  })
const post = (path: string, json: object) => mona.operate(`${CASES}${path}`, { json })
const casesOf = async (did: string, state = 'waiting') =>
  (await mona.operate(`${CASES}?did=${did}&state=${state}`)).body.cases
const caseOf = async (did: string) => (await mona.operate(`${CASES}/${(await casesOf(did, 'all'))[0].id}`)).body
const reported = async (by = alice as TestAccount) => {
  const bob = await person()
  expect((await say(by, account(bob.did))).status).toBe(200)
  return { bob, id: (await casesOf(bob.did))[0].id as number }
}
const audit = async (query: string) =>
  (await request(`${pds.url}/v1/admin/audit?${query}`, { headers: bearer(ADMIN_TOKEN) })).body.events
const mailTo = async (to: TestAccount) => {
  await pds.runSteps()
  return pds.mails.findLast((mail) => mail.to === to.email)!
}
const codeIn = (text: string) => /appeal\?code=([\w-]+)/.exec(text)![1]!
const decisions = (path: string, json: object) => request(`${pds.url}/v1/decisions/${path}`, { json })
const write = async (by: TestAccount, text: string) =>
  (
    await by.call('com.atproto.repo.createRecord', {
      json: { repo: by.did, collection: 'com.example.note', record: { text } },
    })
  ).body as { uri: string; cid: string }

// How cases begin

test('a report that is addressed to this server becomes a case, and goes nowhere else', async () => {
  const bob = await person()
  const answer = await say(alice, account(bob.did), `He said: ${HOSTILE}`)
  expect(answer).toMatchObject({ status: 200, body: { reportedBy: alice.did, subject: account(bob.did) } })
  const found = await caseOf(bob.did)
  expect(found).toMatchObject({ state: 'open', kind: 'account', subject: bob.did, handle: bob.handle, decision: null })
  expect(found.reports).toMatchObject([
    { id: answer.body.id, source: 'report', by: alice.did, text: 'He said: <script>alert(1)</script> "\'&' },
  ])
  expect(Date.parse(found.deadlineAt) - Date.parse(found.openedAt)).toBe(7 * 86_400_000)
  expect([moderation.received.length, labeler.received.length]).toEqual([0, 0])
})

test('reports of one subject are one case, and what one person repeats counts once', async () => {
  const { bob, id } = await reported()
  await say(alice, account(bob.did), 'once more')
  await say(mona, account(bob.did))
  await say(alice, account(bob.did), '', { reasonType: 'com.atproto.moderation.defs#reasonRude' })
  const found = await caseOf(bob.did)
  expect(found.id).toBe(id)
  expect(found.reports.map(({ by, reason }: { by: string; reason: string }) => [by, reason.split('#')[1]])).toEqual([
    [alice.did, 'reasonSpam'],
    [mona.did, 'reasonSpam'],
    [alice.did, 'reasonRude'],
  ])
})

test('a report that names no service is sent on as before, and copied if its subject is here', async () => {
  const bob = await person()
  moderation.answer(createReport, () => Response.json({ id: 77 }))
  const report = (did: string, headers = {}) =>
    alice.call(createReport, {
      headers,
      json: { reasonType: 'com.atproto.moderation.defs#reasonSpam', subject: account(did) },
    })
  expect(await report(bob.did)).toMatchObject({ status: 200, body: { id: 77 } })
  expect(await casesOf(bob.did)).toHaveLength(1)
  expect((await report('did:plc:bbbbbbbbbbbbbbbbbbbbbbbb')).status).toBe(200)
  expect(moderation.received.length).toBe(2)

  // What a person tells a labeler is no business of the host.
  const carol = await person()
  other.services['atproto_labeler'] = other.url
  other.answer(createReport, () => Response.json({ id: 78 }))
  expect(await report(carol.did, { 'atproto-proxy': `${other.did}#atproto_labeler` })).toMatchObject({
    status: 200,
    body: { id: 78 },
  })
  expect(await casesOf(carol.did, 'all')).toEqual([])
})

test('a report about something else than an account or a record is sent on, and is no case about its author', async () => {
  const bob = await person()
  moderation.answer(createReport, () => Response.json({ id: 79 }))
  const before = moderation.received.length
  const message = { $type: 'chat.bsky.convo.defs#messageRef', did: bob.did, messageId: 'x', convoId: 'y' }
  for (const subject of [message, { ...message, did: { a: 1 } }, { ...message, did: 5 }]) {
    const json = { reasonType: 'com.atproto.moderation.defs#reasonRude', subject }
    expect(await alice.call(createReport, { json })).toMatchObject({ status: 200, body: { id: 79 } })
    expect(await say(alice, subject)).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  }
  expect(moderation.received.length - before).toBe(3)
  expect(await casesOf(bob.did, 'all')).toEqual([])
})

test('what is not here is no case, and one account does not report without end', async () => {
  expect(await say(alice, account('did:plc:bbbbbbbbbbbbbbbbbbbbbbbb'))).toMatchObject({ status: 400 })
  const bob = await person()
  const uri = `at://${bob.did}/com.example.note/none`
  const record = { $type: 'com.atproto.repo.strongRef', uri, cid: 'bafyreid' + 'a'.repeat(51) }
  expect((await say(alice, record)).status).toBe(400)
  const loud = await person()
  let last = 0
  for (let i = 0; i <= 100; i++)
    last = (await say(loud, account(bob.did), '', { reasonType: `com.example.a#r${i}` })).status
  expect(last).toBe(429)
})

test('an account of another server reports with a token of its own, as much as one address may', async () => {
  const bob = await person()
  const report = (token: string) =>
    request(`${pds.url}/xrpc/${createReport}`, {
      headers: bearer(token),
      json: { reasonType: 'com.atproto.moderation.defs#reasonRude', reason: HOSTILE, subject: account(bob.did) },
    })
  const token = signedAs(other, pds, createReport)
  expect(await report(token)).toMatchObject({ status: 200, body: { reportedBy: other.did } })
  expect((await caseOf(bob.did)).reports).toMatchObject([{ source: 'report', by: other.did }])
  expect((await report(signedAs(other, pds, NOTICE))).status).toBe(401)
  expect((await report(`${token.slice(0, -6)}AAAAAA`)).status).toBe(401)
  await using limited = await startPds({}, { alone: 'a node charges no more than its share at once' })
  const eve = await createAccount(limited, 'eve')
  await limited.ctx.limits.charge({ name: 'foreignReport', key: '127.0.0.1', cost: 100 })
  const last = await request(`${limited.url}/xrpc/${createReport}`, {
    headers: bearer(signedAs(other, limited, createReport)),
    json: { reasonType: 'com.atproto.moderation.defs#reasonRude', subject: account(eve.did) },
  })
  expect(last.status).toBe(429)
})

test('a new label of a watched labeler opens a case once', async () => {
  const bob = await person()
  labeler.answer('com.atproto.label.queryLabels', () =>
    Response.json({ labels: [{ src: labeler.did, uri: bob.did, val: '<b>spam', cts: '2026-01-01T00:00:00.000Z' }] }),
  )
  expect(await pds.runSweep('labeler-watch')).toEqual({ swept: 1, errors: 0 })
  await pds.runSweep('labeler-watch')
  const found = await caseOf(bob.did)
  expect(found.reports).toMatchObject([{ source: 'label', by: labeler.did, reason: '<b>spam' }])
})

test('a notice of a trusted authority becomes cases; of others it is refused', async () => {
  const bob = await person()
  const { uri } = await write(bob, 'bad')
  const token = signedAs(labeler, pds)
  const notice = {
    noticeId: 12,
    authority: labeler.did,
    subjects: [
      { accountDid: bob.did, records: [{ uri }] },
      { accountDid: 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb', blobCids: ['bafkqaaa'] },
    ],
    abuseType: 'spam',
    comment: HOSTILE,
  }
  const send = (json: object, by = token) => request(`${pds.url}/v1/abuse-notices`, { json, headers: bearer(by) })
  const answer = await send(notice)
  expect(answer).toMatchObject({ status: 200, body: { noticeId: 12, unknown: [{ item: 'bafkqaaa' }] } })
  expect((await send(notice)).body.cases).toEqual(answer.body.cases)
  const found = await caseOf(bob.did)
  expect(found).toMatchObject({ kind: 'record', subject: uri })
  expect(found.reports).toMatchObject([{ source: 'notice', by: labeler.did, reason: 'spam (notice 12)' }])
  expect((await post(`/${found.id}/decision`, { act: 'nothing', reason: 'A joke.' })).status).toBe(200)
  expect((await send(notice)).body.cases).toEqual([found.id])
  expect(await casesOf(bob.did)).toEqual([])
  expect((await send({ ...notice, noticeId: 13 })).body.cases).not.toEqual([found.id])

  const stranger = signedAs(other, pds)
  expect((await send({ ...notice, authority: other.did }, stranger)).status).toBe(401)
  expect((await send({ ...notice, authority: other.did })).status).toBe(400)
  expect((await send({ ...notice, subjects: [] })).status).toBe(422)
  expect((await send({ ...notice, subjects: [{ accountDid: alice.did, records: [{ uri }] }] })).status).toBe(400)
  expect((await request(`${pds.url}/v1/abuse-notices`, { json: notice })).status).toBe(401)
})

// What is decided

test('an account is taken down, its holder hears why, appeals once, and is believed', async () => {
  const { bob, id } = await reported()
  expect((await post(`/${id}/notes`, { text: 'Looks bad.' })).status).toBe(200)
  expect((await post(`/${id}/deadline`, { inSecs: 3600 })).status).toBe(200)
  const decided = await post(`/${id}/decision`, { act: 'takedown', reason: `Spam. ${HOSTILE}` })
  expect(decided).toMatchObject({ status: 200, body: { state: 'decided', acts: [] } })
  expect(decided.body.decision).toMatchObject({ act: 'takedown', decidedBy: `operator:${mona.did}`, mailed: true })
  expect((await logIn(pds, bob, PASSWORD, { allowTakendown: true })).did).toBe(bob.did)
  expect(await bob.call('com.atproto.server.getSession')).toMatchObject({ status: 400 })

  const mail = await mailTo(bob)
  expect(mail.subject).toContain(`case ${id}`)
  expect(mail.text).toContain('Spam. <script>')
  const code = codeIn(mail.text)
  const seen = await decisions('view', { code })
  expect(seen).toMatchObject({ status: 200, body: { case: id, mayAppeal: true, act: 'takedown' } })
  expect(JSON.stringify(seen.body)).not.toContain(mona.did)
  expect(JSON.stringify(seen.body)).not.toContain(alice.did)

  expect((await decisions('appeal', { code, text: ' ' })).status).toBe(400)
  const appealed = await decisions('appeal', { code, text: `It was a joke. ${HOSTILE}` })
  expect(appealed).toMatchObject({ status: 200, body: { mayAppeal: false } })
  expect(await decisions('appeal', { code, text: 'Again.' })).toMatchObject({ status: 409 })
  expect((await casesOf(bob.did))[0]).toMatchObject({ id, state: 'appealed' })

  expect((await post(`/${id}/answer`, { outcome: 'reversed', reason: 'It was.' })).status).toBe(200)
  expect((await post(`/${id}/answer`, { outcome: 'upheld', reason: 'No.' })).status).toBe(409)
  expect((await mailTo(bob)).text).toContain('Your appeal was right')
  expect((await logIn(pds, bob, PASSWORD)).did).toBe(bob.did)
  expect((await decisions('view', { code })).body.appeal).toMatchObject({ outcome: 'reversed', answer: 'It was.' })

  const events = await audit(`subject=case:${id}`)
  expect(events.map(({ action, actor, reason }: Record<string, string>) => [action, actor, reason])).toEqual([
    ['case_appeal_answered', `operator:${mona.did}`, 'It was.'],
    ['case_decided', `operator:${mona.did}`, expect.stringContaining('Spam.')],
    ['case_deadline_set', `operator:${mona.did}`, undefined],
    ['case_noted', `operator:${mona.did}`, undefined],
  ])
  expect((await audit(`subject=${bob.did}`)).map(({ action }: { action: string }) => action)).toEqual([
    'account_restore',
    'account_takedown',
  ])
})

test('a record is taken down alone, and a warning takes nothing; a case is decided once', async () => {
  const bob = await person()
  const { uri, cid } = await write(bob, 'rude')
  await say(alice, { $type: 'com.atproto.repo.strongRef', uri, cid })
  const { id, acts } = await caseOf(bob.did)
  expect(acts).toContain('takedown-account')
  const twice = await Promise.all([1, 2].map(() => post(`/${id}/decision`, { act: 'takedown', reason: 'Rude.' })))
  expect(twice.map(({ status }) => status).toSorted()).toEqual([200, 409])
  const read = () =>
    request(
      `${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${bob.did}&collection=com.example.note&rkey=${uri.split('/').at(-1)}`,
    )
  expect((await read()).status).toBe(400)
  expect((await bob.call('com.atproto.server.getSession')).status).toBe(200)

  const warned = await post('', { subject: bob.did, reason: 'Seen myself.' })
  expect(warned).toMatchObject({ status: 200, body: { kind: 'account', state: 'open' } })
  expect((await post(`/${warned.body.id}/decision`, { act: 'takedown-account', reason: 'x' })).status).toBe(400)
  expect((await post(`/${warned.body.id}/decision`, { act: 'constructor', reason: 'x' })).status).toBe(400)
  expect((await post(`/${warned.body.id}/decision`, { act: 'warn', reason: '' })).status).toBe(400)
  expect((await post(`/${warned.body.id}/decision`, { act: 'warn', reason: 'Be kind.' })).status).toBe(200)
  expect((await bob.call('com.atproto.server.getSession')).status).toBe(200)
  expect((await mailTo(bob)).text).toContain('This is a warning')
})

test('a reversal lifts no takedown that is not of its decision', async () => {
  const { bob, id } = await reported()
  await post(`/${id}/decision`, { act: 'takedown', reason: 'Spam.' })
  const status = (applied: boolean) =>
    mona.operate('/xrpc/com.atproto.admin.updateSubjectStatus', {
      json: { subject: account(bob.did), takedown: { applied } },
    })
  await status(false)
  await status(true)
  await decisions('appeal', { code: codeIn((await mailTo(bob)).text), text: 'Why?' })
  await post(`/${id}/answer`, { outcome: 'reversed', reason: 'Right.' })
  const { body } = await mona.operate(`/xrpc/com.atproto.admin.getSubjectStatus?did=${bob.did}`)
  expect(body.takedown.applied).toBe(true)
})

test('a reversal lifts no takedown of a record that stood before its decision', async () => {
  const bob = await person()
  const { uri } = await write(bob, 'rude')
  const decide = async (act: string) => {
    const { body } = await post('', { subject: uri, reason: 'Seen.' })
    expect((await post(`/${body.id}/decision`, { act, reason: 'Rude.' })).status).toBe(200)
    return { id: body.id as number, code: codeIn((await mailTo(bob)).text) }
  }
  const isDown = async () =>
    (await mona.operate(`/xrpc/com.atproto.admin.getSubjectStatus?uri=${encodeURIComponent(uri)}`)).body.takedown
      .applied
  const [first, second] = [await decide('takedown'), await decide('takedown')]
  for (const [{ id, code }, left] of [
    [second, true],
    [first, false],
  ] as const) {
    await decisions('appeal', { code, text: 'Why?' })
    expect((await post(`/${id}/answer`, { outcome: 'reversed', reason: 'Right.' })).status).toBe(200)
    expect(await isDown()).toBe(left)
  }
})

test('what two decisions took down comes back once both are reversed, whichever is reversed first', async () => {
  const bob = await person()
  const { uri } = await write(bob, 'rude')
  const decide = async (subject: string, act: string) => {
    const { body } = await post('', { subject, reason: 'Seen.' })
    expect((await post(`/${body.id}/decision`, { act, reason: 'Rude.' })).status).toBe(200)
    return { id: body.id as number, code: codeIn((await mailTo(bob)).text) }
  }
  const isDown = async (subject: string) =>
    (await mona.operate(`/xrpc/com.atproto.admin.getSubjectStatus?${subject}`)).body.takedown.applied
  const record = `uri=${encodeURIComponent(uri)}`
  const whole = `did=${bob.did}`
  for (const [subject, cases] of [
    [record, [await decide(uri, 'takedown'), await decide(uri, 'takedown')]],
    [whole, [await decide(bob.did, 'takedown'), await decide(uri, 'takedown-account')]],
  ] as const)
    for (const [{ id, code }, left] of [
      [cases[0], true],
      [cases[1], false],
    ] as const) {
      await decisions('appeal', { code, text: 'Why?' })
      expect((await post(`/${id}/answer`, { outcome: 'reversed', reason: 'Right.' })).status).toBe(200)
      expect([subject, await isDown(subject)]).toEqual([subject, left])
    }
})

test('a person who was taken down appeals by the standard method too, and reports nothing else', async () => {
  const { bob, id } = await reported()
  await post(`/${id}/decision`, { act: 'takedown', reason: 'Spam.' })
  const back = await logIn(pds, bob, PASSWORD, { allowTakendown: true })
  // With the session from before the takedown as well.
  for (const by of [back, bob])
    expect(await say(by, account(alice.did))).toMatchObject({ status: 400, body: { error: 'AccountTakedown' } })
  const reasonType = 'com.atproto.moderation.defs#reasonAppeal'
  expect(await say(back, account(bob.did), 'Please look again.', { reasonType })).toMatchObject({
    status: 200,
    body: { id },
  })
  expect((await caseOf(bob.did)).decision.appeal).toMatchObject({ text: 'Please look again.' })
  expect((await say(back, account(bob.did), 'And again.', { reasonType })).status).toBe(400)
})

test('an appeal comes too late after its time, and codes of strangers lead nowhere', async () => {
  const { bob, id } = await reported()
  await post(`/${id}/decision`, { act: 'warn', reason: 'Careful.' })
  const code = codeIn((await mailTo(bob)).text)
  expect((await decisions('view', { code: 'A'.repeat(43) })).status).toBe(404)
  expect((await decisions('view', { code: `${code}x` })).status).toBe(404)
  const span = { secs: 181 * 86_400 }
  pds.clock.jump(span)
  expect(await decisions('appeal', { code, text: 'Sorry?' })).toMatchObject({ status: 409 })
  pds.clock.jump({ secs: -span.secs })
})

test('the page shows a decision to whom it was mailed, takes one answer, and no script of a stranger', async () => {
  const { bob, id } = await reported()
  await post(`/${id}/decision`, { act: 'warn', reason: `Careful. ${HOSTILE}` })
  const code = codeIn((await mailTo(bob)).text)
  const page = `${pds.url}/account/appeal`
  const open = (query: string, language = 'en') =>
    request(`${page}?${query}`, { headers: { 'accept-language': language } })
  const send = (fields: Record<string, string>) =>
    request(page, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams(fields).toString(),
    })
  const shown = await open(`code=${code}`)
  expect(shown.status).toBe(200)
  expect(shown.body).toContain('Careful. &lt;script&gt;')
  expect(shown.body).not.toContain('<script')
  expect(shown.body).toContain('name="text"')
  expect((await open(`code=${code}`, 'de')).body).toContain('Das ist eine Verwarnung')
  expect(await open('code=none')).toMatchObject({ status: 404, body: expect.stringContaining('role="alert"') })
  expect((await send({ code, text: ' ' })).status).toBe(400)
  const sent = await send({ code, text: `No.\n${HOSTILE}` })
  expect(sent.status).toBe(200)
  expect(sent.body).toContain('No.<br>&lt;script&gt;')
  expect(sent.body).not.toContain('name="text"')
  expect((await send({ code, text: 'Again.' })).status).toBe(409)
  const stranger = {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' },
  }
  expect((await request(page, { ...stranger, body: `code=${code}&text=x` })).status).toBe(403)
})

test('a decision is exported, as JSON and as text, without the names of those who reported', async () => {
  const { bob, id } = await reported()
  const file = (query = '') => mona.operate(`${CASES}/${id}/export${query}`)
  expect((await file()).status).toBe(400)
  await post(`/${id}/decision`, { act: 'takedown', reason: 'Spam.\nDecision: nothing' })
  const { body } = await file()
  expect(body).toMatchObject({
    service: pds.ctx.config.publicUrl,
    subject: bob.did,
    grounds: [{ source: 'report', reports: 1 }],
    decision: { act: 'takedown', reason: 'Spam.\nDecision: nothing' },
  })
  expect(JSON.stringify(body)).not.toContain(alice.did)
  const text = await file('?format=text')
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(text.body.split('\n').filter((line: string) => line.startsWith('Decision:'))).toHaveLength(1)
})

test('moderators look after cases, and nobody who stands below them or beside them', async () => {
  const { id } = await reported()
  for (const path of ['', `/${id}`, `/${id}/export`])
    expect([path, (await ivo.operate(CASES + path)).status]).toEqual([path, 403])
  const acts = {
    '': { subject: alice.did, reason: 'x' },
    [`/${id}/notes`]: { text: 'x' },
    [`/${id}/deadline`]: { inSecs: 1 },
    [`/${id}/decision`]: { act: 'nothing', reason: 'x' },
    [`/${id}/answer`]: { outcome: 'upheld', reason: 'x' },
  }
  for (const [path, json] of Object.entries(acts))
    expect([path, (await ivo.operate(CASES + path, { json })).status]).toEqual([path, 403])
  // A moderator does not decide about an owner, except that there is nothing in it.
  await say(alice, account(olivia.did))
  const about = (await casesOf(olivia.did))[0].id
  for (const act of ['warn', 'takedown'])
    expect((await post(`/${about}/decision`, { act, reason: 'x' })).status).toBe(403)
  expect((await casesOf(olivia.did))[0]).toMatchObject({ state: 'open' })
  expect((await post(`/${about}/decision`, { act: 'nothing', reason: 'x' })).status).toBe(200)
  for (const wrong of ['/0', '/x', '/99999999']) expect((await mona.operate(CASES + wrong)).status).toBe(404)
  expect((await mona.operate(`${CASES}?state=nonsense`)).status).toBe(400)
})

test('cases are kept for two years after they were decided, and open ones longer', async () => {
  const [old, open] = [await reported(), await reported()]
  await post(`/${old.id}/decision`, { act: 'warn', reason: 'Careful.' })
  // A first pass after the clock was set is skipped.
  const pass = async () => {
    await pds.runSweep('case-retention')
    await pds.runSweep('case-retention')
  }
  await pass()
  const span = { secs: 731 * 86_400 }
  pds.clock.jump(span)
  await pass()
  pds.clock.jump({ secs: -span.secs })
  expect((await mona.operate(`${CASES}/${old.id}`)).status).toBe(404)
  expect((await mona.operate(`${CASES}/${open.id}`)).body.reports).toHaveLength(1)
  expect(await pds.count('case_decision', { did: old.bob.did })).toBe(0)
})

test('cases about a deleted account go with it, and its name goes from what it reported', async () => {
  const reporter = await person()
  const { bob, id } = await reported(reporter)
  const { bob: other } = await reported(reporter)
  for (const { did } of [reporter, other]) {
    const deleted = await olivia.operate('/xrpc/com.atproto.admin.deleteAccount', { json: { did } })
    expect(deleted.status).toBe(200)
  }
  expect((await mona.operate(`${CASES}/${id}`)).body.reports).toMatchObject([{ by: '', source: 'report' }])
  expect(await casesOf(bob.did)).toHaveLength(1)
  expect(await casesOf(other.did, 'all')).toEqual([])
})

test('the number of a case that was deleted with its account is not given again', async () => {
  const { bob, id } = await reported()
  expect((await olivia.operate('/xrpc/com.atproto.admin.deleteAccount', { json: { did: bob.did } })).status).toBe(200)
  expect((await mona.operate(`${CASES}/${id}`)).status).toBe(404)
  expect((await reported()).id).toBeGreaterThan(id)
  expect((await mona.operate(`${CASES}/${id}`)).status).toBe(404)
})
