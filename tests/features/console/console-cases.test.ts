/** The rooms of the console in which moderators decide cases. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))
const alice = setUp(() => createAccount(pds, 'alice'))
const HOSTILE = `<script>alert(1)</script><img src=x onerror=alert(1)> "' onfocus=alert(1)`

async function signedIn(account: { did: string }): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(pds)
  expect((await browser.signIn(account.did)).status).toBe(303)
  return browser
}
const report = (subject: string, reason: string, reasonType = `com.example.<b>#${'r'.repeat(20)}`) =>
  alice.call('com.atproto.moderation.createReport', {
    headers: { 'atproto-proxy': `${pds.ctx.config.serverDid}#atproto_labeler` },
    json: {
      reasonType,
      reason,
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: subject },
    },
  })
const idIn = (body: string) => /\/admin\/case\?id=(\d+)/.exec(body)![1]!

test('a moderator notes, postpones, decides and answers, and what strangers wrote runs nowhere', async () => {
  const bob = await createAccount(pds, 'bob')
  expect((await report(bob.did, HOSTILE)).status).toBe(200)
  const browser = await signedIn(mona)
  const list = await browser.open('/admin/cases')
  expect(list.body).toContain('1 case waits')
  const id = idIn(list.body)
  const page = async () => (await browser.open(`/admin/case?id=${id}`)).body as string
  const act = async (name: string, fields: Record<string, string>) => {
    const answer = await browser.act(name, { id, reason: '', back: `/admin/case?id=${id}`, ...fields })
    expect([name, answer.status, answer.body.includes('>Done<')]).toEqual([name, 200, true])
  }
  await act('case-note', { note: HOSTILE })
  const exported = (format: string) => browser.open(`/admin/case/export?id=${id}&format=${format}`)
  expect((await exported('text')).body).toContain('The case has not been decided')
  const hasty = await browser.act('case-deadline', { id, reason: '', days: '3' })
  expect([hasty.status, hasty.body.includes('Nothing was done')]).toEqual([400, true])
  const blank = await browser.act('case-deadline', { id, reason: 'the holder asked', days: ' ' })
  expect([blank.status, blank.body.includes('Days from now')]).toEqual([400, true])
  await act('case-deadline', { days: '3', reason: 'the holder asked' })
  await act('case-decide', { decision: 'takedown', why: HOSTILE })
  expect(await bob.call('com.atproto.server.getSession')).toMatchObject({ status: 400 })
  const back = await logIn(pds, bob, PASSWORD, { allowTakendown: true })
  await back.call('com.atproto.moderation.createReport', {
    headers: { 'atproto-proxy': `${pds.ctx.config.serverDid}#atproto_labeler` },
    json: {
      reasonType: 'com.atproto.moderation.defs#reasonAppeal',
      reason: HOSTILE,
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: bob.did },
    },
  })
  await act('case-answer', { outcome: 'reversed', why: HOSTILE })
  const shown = await page()
  expect(shown.match(/&lt;script&gt;/g)!.length).toBeGreaterThanOrEqual(5)
  for (const bad of ['<script', '<img', 'onfocus=alert(1)"']) expect([bad, shown.includes(bad)]).toEqual([bad, false])
  expect(shown).toContain('reversed')
  expect(shown).toContain(`href="/admin/case/export?id=${id}&amp;format=json"`)
  const file = await exported('json')
  expect(file.headers.get('content-disposition')).toBe(`attachment; filename="case-${id}.json"`)
  expect(file.body).toMatchObject({ subject: bob.did, decision: { act: 'takedown', appeal: { outcome: 'reversed' } } })
  const text = await exported('text')
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(String(text.body)).toStartWith(`Decision on case ${id} of `)
  for (const { body } of [file, text]) expect(JSON.stringify(body)).not.toContain(alice.did)
  expect((await browser.open('/admin/audit')).body).not.toContain('<script')
  expect((await logIn(pds, bob, PASSWORD)).did).toBe(bob.did)
})

test('a case with many long reports and notes is shown in pieces', async () => {
  const carol = await createAccount(pds, 'carol')
  const long = 'x'.repeat(2000)
  for (let i = 0; i < 12; i++) expect((await report(carol.did, long, `com.example.reason#${i}`)).status).toBe(200)
  const browser = await signedIn(mona)
  const id = idIn((await browser.open(`/admin/cases?did=${carol.did}`)).body)
  for (let i = 0; i < 11; i++) await browser.act('case-note', { id, reason: '', note: long })
  const shown = async (place: string) => (await browser.open(`/admin/case?id=${id}${place}`)).body as string
  const first = await shown('')
  expect(Buffer.byteLength(first)).toBeLessThan(60_000)
  expect(first).toContain(`href="/admin/case?id=${id}&amp;reports=10"`)
  expect(first).toContain(`href="/admin/case?id=${id}&amp;notes=10"`)
  const longOnes = (body: string) => body.match(/x{2000}/g)!.length
  expect([longOnes(first), longOnes(await shown('&reports=10&notes=10'))]).toEqual([20, 3])
})

test('a decision that does not fit is refused on a page, and a stranger case is none', async () => {
  const browser = await signedIn(mona)
  const opened = await browser.act('case-open', { subject: alice.did, why: 'seen' })
  expect(opened.status).toBe(200)
  const id = idIn((await browser.open('/admin/cases')).body)
  for (const [name, fields] of [
    ['case-decide', { id, decision: 'takedown-account', why: 'x' }],
    ['case-decide', { id, decision: 'warn', why: ' ' }],
    ['case-decide', { id, decision: 'warn', why: '\u200b' }],
    ['case-decide', { id: '../accounts', decision: 'warn', why: 'x' }],
    ['case-deadline', { id, days: 'many' }],
    ['case-answer', { id, outcome: 'upheld', why: 'x' }],
    ['case-open', { subject: 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb', why: 'x' }],
  ] as const) {
    const { status, body } = await browser.act(name, { ...fields })
    expect([name, status >= 400, body.includes('role="alert"')]).toEqual([name, true, true])
  }
  expect((await browser.open('/admin/case?id=999999')).status).toBe(404)
  expect((await browser.open('/admin/case?id=..%2Faccounts')).status).toBe(404)
})

test('a blob is set aside, opened, and released', async () => {
  const uploader = Uploader.at(pds, alice.did as Did, alice.accessJwt)
  const blob = await uploader.upload('a picture')
  const cid = blob.ref.$link
  await uploader.refer('com.example.note/shown', blob)
  const browser = await signedIn(mona)
  const fields = { did: alice.did, cid }
  expect((await browser.act('blob-quarantine', { ...fields, days: '2', end: 'takedown' })).status).toBe(200)
  expect((await uploader.read(cid)).status).toBe(400)
  const list = (await browser.open('/admin/cases')).body as string
  const [, address] = /href="([^"]*\/data\/blob[^"]*)"/.exec(list)!
  expect((await browser.open(address!.replaceAll('&amp;', '&'))).body).toBe('a picture')
  expect((await browser.act('blob-release', fields)).status).toBe(200)
  expect((await uploader.read(cid)).status).toBe(200)
  expect((await browser.act('blob-release', fields)).status).toBe(404)
})

test('an invite steward has no such room', async () => {
  const browser = await signedIn(ivo)
  expect((await browser.open('/admin')).body).not.toContain('/admin/cases')
  for (const path of ['/admin/cases', '/admin/case/export?id=1'])
    expect((await browser.open(path)).body).toContain('does not permit')
  expect((await browser.act('case-open', { subject: alice.did, why: 'x' })).status).toBe(403)
})
