/** Blobs that only moderators can read, until a time. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { thrownBy } from '../../support/thrown.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const TEN_DAYS = 864_000
const { pds } = useWorld({
  config: {
    rateLimit: { enabled: false },
    blobs: { tempTtlSecs: 60 },
    console: { sessionIdleSecs: TEN_DAYS, sessionSecs: TEN_DAYS },
  },
})
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))
const alice = setUp(() => Uploader.join(pds, 'alice'))

let count = 0
/** A blob that a record shows. */
async function shown(by: Uploader = alice) {
  const text = `picture ${++count}`
  const blob = await by.upload(text)
  await by.refer(`com.example.note/n${count}`, blob)
  return { text, blob, cid: blob.ref.$link, did: by.did }
}
const post = (path: string, json: object) => mona.operate(`/v1/admin/blobs/${path}`, { json })
const quarantine = ({ did, cid }: { did: string; cid: string }, more: object = {}) =>
  post('quarantine', { did, cid, secs: 60, ...more })
const content = ({ did, cid }: { did: string; cid: string }, as = mona) =>
  as.operate(`/v1/admin/accounts/${did}/data/blob?${new URLSearchParams({ cid })}`)
const statusOf = async (cid: string, headers = {}) => (await alice.read(cid, headers)).status
const pass = async () => {
  pds.clock.advance({ secs: 61 })
  await pds.runSweep('blob-quarantine')
}

test('a blob in quarantine is there for moderators alone, and for all again after its end', async () => {
  const one = await shown()
  expect(await statusOf(one.cid)).toBe(200)
  expect(await quarantine(one)).toMatchObject({ status: 200, body: { atEnd: 'release' } })
  for (const headers of [{}, bearer(alice.token), bearer(ADMIN_TOKEN)] as Record<string, string>[])
    expect(await statusOf(one.cid, headers)).toBe(400)
  const read = await content(one)
  expect([read.status, read.body]).toEqual([200, one.text])
  expect(read.headers.get('content-disposition')).toContain('attachment')
  expect(read.headers.get('cache-control')).not.toContain('public')
  expect((await content(one, ivo)).status).toBe(403)
  const { body } = await mona.operate('/v1/admin/audit?action=account_data_read')
  expect(body.events[0]).toMatchObject({ actor: `operator:${mona.did}`, subject: alice.did })
  const listed = await mona.operate('/v1/admin/blobs/quarantine')
  expect(listed.body.blobs).toMatchObject([{ cid: one.cid, handle: 'alice.test', atEnd: 'release' }])

  await pds.runSweep('blob-quarantine')
  expect(await statusOf(one.cid)).toBe(400)
  await pass()
  expect(await statusOf(one.cid)).toBe(200)
  expect((await mona.operate('/v1/admin/blobs/quarantine')).body.blobs).toEqual([])
})

test('a quarantine may end with a takedown, or before its time', async () => {
  const [one, two] = [await shown(), await shown()]
  await quarantine(one, { atEnd: 'takedown' })
  await quarantine(two)
  expect((await post('release', two)).status).toBe(200)
  expect((await post('release', two)).status).toBe(404)
  expect(await statusOf(two.cid)).toBe(200)
  await pass()
  expect(await statusOf(one.cid)).toBe(400)
  expect((await quarantine(one)).status).toBe(404)
})

test('a takedown takes the place of a quarantine, and its end does not lift it', async () => {
  const one = await shown()
  await quarantine(one)
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: one.did, cid: one.cid }
  const takedown = (applied: boolean) =>
    mona.operate('/xrpc/com.atproto.admin.updateSubjectStatus', { json: { subject, takedown: { applied } } })
  expect((await takedown(true)).status).toBe(200)
  await pass()
  expect(await statusOf(one.cid)).toBe(400)
  await takedown(false)
  expect(await statusOf(one.cid)).toBe(200)
})

test('records may refer to a blob in quarantine, which stays, and is not uploaded around it', async () => {
  const text = `picture ${++count}`
  const blob = await alice.upload(text)
  const one = { did: alice.did, cid: blob.ref.$link }
  await quarantine(one)
  expect((await alice.post(text)).body).toMatchObject({ error: 'InvalidRequest' })
  await alice.refer('com.example.note/held', blob)
  expect(await statusOf(one.cid)).toBe(400)
  await post('release', one)
  expect(await statusOf(one.cid)).toBe(200)

  const loose = await alice.upload(`picture ${++count}`)
  await quarantine({ did: alice.did, cid: loose.ref.$link }, { secs: 3600 })
  pds.clock.advance({ secs: 120 })
  await pds.runSweep('blob-gc')
  expect((await content({ did: alice.did, cid: loose.ref.$link })).status).toBe(200)
})

test('a case about a blob ends with a quarantine, which an appeal lifts', async () => {
  const one = await shown()
  const open = await mona.operate('/v1/admin/cases', { json: { subject: `${one.did}#${one.cid}`, reason: 'seen' } })
  expect(open.body).toMatchObject({ kind: 'blob', subject: `${one.did}#${one.cid}` })
  const decision = { act: 'quarantine', reason: 'To be looked at.', secs: 7200 }
  const decided = await mona.operate(`/v1/admin/cases/${open.body.id}/decision`, { json: decision })
  expect(decided).toMatchObject({ status: 200 })
  expect(Date.parse(decided.body.decision.actUntil) - Date.parse(decided.body.decision.decidedAt)).toBe(7_200_000)
  expect(await statusOf(one.cid)).toBe(400)
  await pds.runSteps()
  const [, code] = /appeal\?code=([\w-]+)/.exec(pds.mails.at(-1)!.text)!
  await request(`${pds.url}/v1/decisions/appeal`, { json: { code, text: 'It is my dog.' } })
  await mona.operate(`/v1/admin/cases/${open.body.id}/answer`, { json: { outcome: 'reversed', reason: 'It is.' } })
  expect(await statusOf(one.cid)).toBe(200)
})

test('a blob that two decisions put into quarantine is out of it once both are reversed, in whatever order', async () => {
  const decide = async (subject: string, secs: number) => {
    const { body } = await mona.operate('/v1/admin/cases', { json: { subject, reason: 'seen' } })
    const json = { act: 'quarantine', reason: 'To be looked at.', secs }
    const decided = await mona.operate(`/v1/admin/cases/${body.id}/decision`, { json })
    expect(decided.status).toBe(200)
    await pds.runSteps()
    const [, code] = /appeal\?code=([\w-]+)/.exec(pds.mails.at(-1)!.text)!
    return { id: body.id as number, code: code!, until: decided.body.decision.actUntil as string }
  }
  const reverse = async ({ id, code }: Awaited<ReturnType<typeof decide>>) => {
    await request(`${pds.url}/v1/decisions/appeal`, { json: { code, text: 'It is my dog.' } })
    const json = { outcome: 'reversed', reason: 'It is.' }
    expect((await mona.operate(`/v1/admin/cases/${id}/answer`, { json })).status).toBe(200)
  }
  for (const isReversed of [false, true]) {
    const one = await shown()
    const subject = `${one.did}#${one.cid}`
    // One that was released in between counts no more.
    await decide(subject, 9000)
    await post('release', one)
    pds.clock.advance({ secs: 1 })
    const made = [await decide(subject, 3600), await decide(subject, 7200)]
    const [first, second] = isReversed ? made.toReversed() : made
    await reverse(first!)
    expect(await statusOf(one.cid)).toBe(400)
    const { body } = await mona.operate('/v1/admin/blobs/quarantine')
    expect(body.blobs.find(({ cid }: { cid: string }) => cid === one.cid)).toMatchObject({ endsAt: second!.until })
    await reverse(second!)
    expect(await statusOf(one.cid)).toBe(200)
  }
})

test('a takedown with the reference of a quarantine is a takedown: no record may refer to its blob', async () => {
  const one = await shown()
  const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    headers: bearer(ADMIN_TOKEN),
    json: {
      subject: { $type: 'com.atproto.admin.defs#repoBlobRef', did: one.did, cid: one.cid },
      takedown: { applied: true, ref: 'quarantine' },
    },
  })
  expect(status).toBe(200)
  expect(await statusOf(one.cid)).toBe(400)
  expect(await thrownBy(alice.refer('com.example.note/again', one.blob))).toThrow('putRecord answered 400')
})

test('what is no blob is refused, and invite stewards are', async () => {
  const one = await shown()
  expect((await quarantine({ did: one.did, cid: 'bafkqaaa' })).status).toBe(404)
  expect((await quarantine({ did: 'alice', cid: one.cid })).status).toBe(400)
  expect((await quarantine(one, { secs: 1 })).status).toBe(422)
  expect((await content({ did: one.did, cid: 'none' })).status).toBe(400)
  for (const path of ['quarantine', 'release'])
    expect((await ivo.operate(`/v1/admin/blobs/${path}`, { json: { ...one, secs: 3600 } })).status).toBe(403)
})

test('the commands do the same', async () => {
  const one = await shown()
  const run = (...words: string[]) => runProgram([...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const given = ['blob', 'quarantine', 'alice', one.cid, '--days', '2', '--reason', 'to look at']
  expect(await run(...given)).toMatchObject({ code: 0 })
  expect((await run('blob', 'quarantined')).out).toContain(one.cid)
  const file = join(mkdtempSync(join(tmpdir(), 'holdfast-blob-')), 'blob')
  expect(await run('blob', 'read', 'alice', one.cid, file)).toMatchObject({ code: 0 })
  expect(readFileSync(file, 'utf8')).toBe(one.text)
  expect(await run('blob', 'read', 'alice', one.cid, file)).toMatchObject({ code: 1 })
  expect(await run('blob', 'release', 'alice', one.cid)).toMatchObject({ code: 0 })
  expect(await run('blob', 'quarantine', 'alice', one.cid, '--at-end', 'nothing')).toMatchObject({ code: 2 })
})
