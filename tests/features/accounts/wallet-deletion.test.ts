/** Deleting an account with the proof of a wallet in place of the password. */
import { expect, spyOn, test } from 'bun:test'
import { deleteAccount as deleteWithoutAsking } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { base64url } from '../../../src/protocol/base64url.ts'
import { sovereignSessionEnvelope } from '../../../src/protocol/signed-envelope.ts'
import { PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import {
  askSession,
  deletionProof,
  deviceKey,
  proofBy,
  sessionRequest,
  sovereignAccount,
  type DeviceKey,
} from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

type Holder = TestAccount & { device: DeviceKey; token: string }

const { pds, line } = useWorld({
  line: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
  },
})

let names = 0
/** An account whose holder has the code by mail. */
async function leaving(input: Record<string, unknown> = { password: undefined }): Promise<Holder> {
  const account = await sovereignAccount(pds, `leaving${++names}`, input)
  expect((await account.call('com.atproto.server.requestAccountDelete', { method: 'POST' })).status).toBe(200)
  return { ...account, token: await lastCode(pds, account.email) }
}

const send = (json: object) => xrpc(pds, 'com.atproto.server.deleteAccount', { json })
const withProof = ({ did, token }: Pick<Holder, 'did' | 'token'>, proof: unknown, changes: object = {}) =>
  send({ did, token, password: '', custos: { proof }, ...changes })
const deletedBy = (holder: Holder) => withProof(holder, deletionProof(pds, holder))
const lives = async (did: string) => (await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).status === 200

/** What is refused, to the byte, without the date. */
async function wholeAnswer(json: object): Promise<string> {
  const response = await fetch(`${pds.url}/xrpc/com.atproto.server.deleteAccount`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
  const headers = [...response.headers].filter(([name]) => name !== 'date').map(([name, value]) => `${name}: ${value}`)
  return [response.status, ...headers, await response.text()].join('\n')
}

const INVALID_REQUEST = { status: 400, body: { error: 'InvalidRequest' } }

test('a proof and the mailed code delete the account, under either name of the extension, with a password or without', async () => {
  for (const [name, password] of [
    ['custos', undefined],
    ['extension', undefined],
    ['custos', PASSWORD],
  ] as const) {
    const holder = await leaving({ password })
    const proof = deletionProof(pds, holder)
    const answer = await send({
      did: holder.did,
      password: '',
      token: ` ${holder.token} `,
      [name]: { proof, other: 1 },
    })
    expect([name, answer.status, answer.body]).toEqual([name, 200, ''])
    expect(await lives(holder.did)).toBe(false)
    expect((await askSession(pds, sessionRequest(pds, holder))).status).toBe(401)
  }
})

test('a deactivated account is deleted too, and the identity stays with its owner', async () => {
  const holder = await leaving()
  await holder.call('com.atproto.server.deactivateAccount', { json: {} })
  expect((await deletedBy(holder)).status).toBe(200)
  expect(await pds.ctx.plc.auditLog(holder.did as Did)).toHaveLength(1)
})

test('a session alone asks for the code: a sovereign one too, and one of an app password never', async () => {
  const account = await sovereignAccount(pds, 'asker', { password: undefined })
  const ask = (jwt: string) =>
    xrpc(pds, 'com.atproto.server.requestAccountDelete', {
      method: 'POST',
      headers: { authorization: `Bearer ${jwt}` },
    })
  const { body } = await askSession(pds, sessionRequest(pds, account))
  expect((await ask(body.accessJwt)).status).toBe(200)
  const made = await account.call('com.atproto.server.createAppPassword', { json: { name: 'app', privileged: true } })
  const app = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: account.did, password: made.body.password },
  })
  expect(await ask(app.body.accessJwt)).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
})

test('without a code, or with neither password nor proof, nothing is looked at', async () => {
  const holder = await leaving({ password: PASSWORD })
  const proof = deletionProof(pds, holder)
  const { did, token } = holder
  for (const json of [
    { did, password: '', token },
    { did, password: '', token, custos: {} },
    { did, password: '', token, custos: { proof: null } },
    { did, password: '', token: '', custos: { proof } },
    { did, password: PASSWORD, token: ' ' },
    { did: '', password: '', token, custos: { proof } },
    { did: 'nobody', password: '', token, custos: { proof } },
    { did, token, custos: { proof } },
    { did, password: '', token, custos: proof.signature },
  ])
    expect([json, await send(json)]).toMatchObject([json, INVALID_REQUEST])
  expect((await withProof(holder, proof)).status).toBe(200)
})

test('each of these is refused with the same bytes, uses up neither code nor account, and asks nobody unless it is signed', async () => {
  const [holder, other] = [await leaving({ password: PASSWORD }), await leaving()]
  const { did, token } = holder
  const good = () => deletionProof(pds, holder)
  const now = Math.floor(pds.clock.now() / 1000)
  const spent = good()
  expect((await withProof({ did, token: 'AAAAA-AAAAA' }, spent)).status).toBe(401)
  line.arrived.length = 0
  const unsigned: Record<string, unknown> = {
    'a proof for a session': proofBy(pds, holder.device, did, sovereignSessionEnvelope),
    'a proof of another account': deletionProof(pds, other),
    'a proof for another server': deletionProof(pds, holder, { aud: 'did:web:other.test' }),
    'a clock that is behind': deletionProof(pds, holder, { timestamp: now - 75 }),
    'a clock that is ahead': deletionProof(pds, holder, { timestamp: now + 75 }),
    'half a second': { ...good(), timestamp: now + 0.5 },
    'a padded nonce': deletionProof(pds, holder, { nonce: `${spent.nonce}=` }),
    'a padded signature': { ...spent, signature: `${spent.signature}==` },
    'a DER signature': { ...spent, signature: base64url(Buffer.from('3006020101020101', 'hex')) },
    'another signature': { ...good(), signature: spent.signature },
    'no key': { ...good(), signingKey: 'did:key:z' },
    nothing: {},
    'a number': 0,
    'an empty text': '',
    false: false,
    'a list': [good()],
  }
  for (const name of Object.keys(spent) as (keyof typeof spent)[]) {
    const { [name]: value, ...rest } = good()
    unsigned[`no ${name}`] = rest
    unsigned[`null for ${name}`] = { ...rest, [name]: null }
    unsigned[`another type of ${name}`] = { ...rest, [name]: typeof value === 'number' ? String(value) : 7 }
  }
  const answers = new Map<string, string>()
  const tell = async (what: string, json: object) => answers.set(what, await wholeAnswer(json))
  const base = { did, token, password: '' }
  for (const [what, proof] of Object.entries(unsigned)) await tell(what, { ...base, custos: { proof } })
  await tell('a password beside a wrong proof', { ...base, password: PASSWORD, custos: { proof: {} } })
  await tell('a wrong proof beside a right one', { ...base, custos: { proof: {} }, extension: { proof: good() } })
  await tell('an unknown account', { ...base, did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', custos: { proof: good() } })
  await tell('a wrong password', { ...base, password: 'wrong password' })
  await tell('an endless password', { ...base, password: PASSWORD.repeat(1000) })
  await tell('no password on file', { did: other.did, token: other.token, password: 'wrong password' })
  expect(line.arrived).toEqual([])
  await tell('a proof that was used', { ...base, custos: { proof: spent } })
  await tell('a key that is not of the identity', {
    ...base,
    custos: { proof: deletionProof(pds, { did, device: deviceKey() }) },
  })
  expect(line.arrived).toHaveLength(2)
  await tell('a wrong code', { ...base, token: 'AAAAA-AAAAA', custos: { proof: good() } })
  await tell('the code of another account', { ...base, token: other.token, custos: { proof: good() } })
  const [first] = answers.values()
  for (const [what, answer] of answers) expect([what, answer]).toEqual([what, first!])
  expect(first).toStartWith('401\n')
  expect(first).toEndWith('{"error":"AuthenticationRequired","message":"Invalid did, password, proof or token"}')
  expect([await lives(did), await lives(other.did)]).toEqual([true, true])
  expect((await withProof(holder, good())).status).toBe(200)
})

test('a wrong code spends the proof, durably, and the right code then needs another one', async () => {
  const holder = await leaving()
  const proof = deletionProof(pds, holder)
  expect((await withProof({ ...holder, token: 'AAAAA-AAAAA' }, proof)).status).toBe(401)
  await pds.restart()
  expect((await withProof(holder, proof)).status).toBe(401)
  expect((await askSession(pds, sessionRequest(pds, holder, { nonce: proof.nonce }))).status).toBe(401)
  expect((await deletedBy(holder)).status).toBe(200)
})

test('an expired code deletes nothing', async () => {
  const holder = await leaving()
  pds.clock.advance({ secs: 3601 })
  expect((await deletedBy(holder)).status).toBe(401)
  expect(await lives(holder.did)).toBe(true)
})

test('while the directory does not answer nothing is spent', async () => {
  const holder = await leaving()
  const proof = deletionProof(pds, holder)
  line.fate = () => 'question lost'
  expect(await withProof(holder, proof)).toMatchObject({ status: 502, body: { error: 'PlcDirectoryError' } })
  line.fate = () => 'answered'
  expect((await withProof(holder, proof)).status).toBe(200)
})

test('of proofs that are sent together one deletes the account, and whoever comes too late is told that it is gone', async () => {
  const [twice, race] = [await leaving(), await leaving()]
  const proof = deletionProof(pds, twice)
  const replays = await Promise.all(Array.from({ length: 6 }, () => withProof(twice, proof)))
  expect(replays.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1)
  expect(new Set(replays.map(({ status }) => status)).difference(new Set([200, 401]))).toEqual(new Set())
  line.fate = async () => {
    await deleteWithoutAsking({ ctx: pds.ctx }, race.did as Did)
    return 'answered' as const
  }
  expect((await deletedBy(race)).status).toBe(200)
  for (const { did } of [twice, race]) {
    expect(await lives(did)).toBe(false)
    expect(pds.log.filter((line) => line.message === 'account deleted' && line.did === did)).toHaveLength(1)
  }
})

test('a password that is changed while it is compared deletes nothing', async () => {
  const holder = await leaving({ password: PASSWORD })
  const { did, token } = holder
  const { db } = pds.ctx
  const transaction = db.transaction.bind(db)
  const change = { json: { did, password: 'another long password' }, headers: basic('admin', ADMIN_TOKEN) }
  {
    using transactions = spyOn(db, 'transaction')
    transactions.mockImplementationOnce((work) =>
      xrpc(pds, 'com.atproto.admin.updateAccountPassword', change).then(() => transaction(work)),
    )
    expect((await send({ did, token, password: PASSWORD })).status).toBe(401)
  }
  expect((await send({ did, token, password: 'another long password' })).status).toBe(200)
})

test('the log says why, without what was sent', async () => {
  const holder = await leaving()
  const proof = deletionProof(pds, { did: holder.did, device: deviceKey() })
  await withProof(holder, proof)
  const failed = pds.log.filter(({ message, did }) => message === 'sign-in failed' && did === holder.did)
  expect(failed).toMatchObject([{ reason: 'wrong signature, or not a key of the identity' }])
  for (const secret of [proof.nonce, proof.signature, holder.token])
    expect(JSON.stringify(pds.log)).not.toContain(secret)
})
