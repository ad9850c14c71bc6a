/** What operators do is done and recorded together, by those who still may, and leaves an owner who can sign in. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { giveRole, roleHolder, type RoleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const xrpc = (method: string) => `/xrpc/com.atproto.admin.${method}`
const subject = (did: string) => ({ $type: 'com.atproto.admin.defs#repoRef', did })
const applied = { applied: true }

/** What takes an account away from its holder. */
const endings: Readonly<Record<string, (did: string) => [path: string, init: { json: object }]>> = {
  delete: (did) => [xrpc('deleteAccount'), { json: { did } }],
  deactivate: (did) => [xrpc('updateSubjectStatus'), { json: { subject: subject(did), deactivated: applied } }],
  'take down': (did) => [xrpc('updateSubjectStatus'), { json: { subject: subject(did), takedown: applied } }],
  demote: (did) => ['/v1/admin/operators', { json: { account: did, role: null } }],
}

let pairs = 0

/** Two owners, beside whom there is none. */
async function twoOwners(): Promise<[RoleHolder, RoleHolder]> {
  pairs++
  const { body } = await request(`${pds.url}/v1/admin/operators?limit=100`, { headers: bearer(ADMIN_TOKEN) })
  for (const { did } of body.operators) await giveRole(pds, did, null)
  return [await roleHolder(pds, `one${pairs}`, 'owner'), await roleHolder(pds, `other${pairs}`, 'owner')]
}

const canOperate = async ({ operate }: RoleHolder) => (await operate('/v1/admin/me')).status === 200

test.each(Object.entries(endings))('of two owners who %s each other at once, one stays', async (_, ending) => {
  const [one, other] = await twoOwners()
  const answers = await Promise.all([one.operate(...ending(other.did)), other.operate(...ending(one.did))])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect([await canOperate(one), await canOperate(other)].filter(Boolean)).toHaveLength(1)
})

test.each(Object.entries(endings))('the last owner who can sign in does not %s themselves', async (_, ending) => {
  for (const away of ['deactivate', 'take down'] as const) {
    const [one, other] = await twoOwners()
    expect((await one.operate(...endings[away]!(other.did))).status).toBe(200)
    expect(await one.operate(...ending(one.did))).toMatchObject({ status: 403 })
    expect(await canOperate(one)).toBe(true)
    // The one who is away is not needed.
    expect((await one.operate(...endings.demote!(other.did))).status).toBe(200)
  }
})

test('an act whose reason cannot be recorded is not done', async () => {
  const [owner] = await twoOwners()
  const alice = await createAccount(pds, 'alice')
  const acts = [
    ...Object.values(endings).map((ending) => ending(alice.did)),
    [xrpc('updateAccountPassword'), { json: { did: alice.did, password: 'a password of mine' } }],
    [xrpc('updateAccountHandle'), { json: { did: alice.did, handle: 'mallory.test' } }],
    [xrpc('updateAccountEmail'), { json: { account: alice.did, email: 'mallory@example.com' } }],
    [`/v1/admin/accounts/${alice.did}/reset-token`, { method: 'POST' }],
  ] as const
  for (const [path, init] of acts) {
    const answer = await owner.operate(path, { ...init, headers: { 'x-admin-reason': '%E0%A4%A' } })
    expect([path, answer.status]).toEqual([path, 400])
  }
  const kept = await alice.call('com.atproto.server.getSession')
  expect(kept.body).toMatchObject({ active: true, handle: 'alice.test', email: alice.email })
  const { body } = await request(`${pds.url}/v1/admin/audit?subject=${alice.did}`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.events).toEqual([])
})

test('codes are disabled of those who stand below, and the log says whose', async () => {
  const [owner] = await twoOwners()
  const steward = await roleHolder(pds, 'steward', 'invite-steward')
  const [bea, cleo] = [await createAccount(pds, 'bea'), await createAccount(pds, 'cleo')]
  const disable = (json: object) => steward.operate(xrpc('disableInviteCodes'), { json })
  const codeOf = async (forAccount?: string): Promise<string> =>
    (
      await request(`${pds.url}/xrpc/com.atproto.server.createInviteCode`, {
        json: { useCount: 1, forAccount },
        headers: bearer(ADMIN_TOKEN),
      })
    ).body.code
  const disabledOf = async (codes: readonly string[]): Promise<boolean[]> => {
    const { body } = await request(`${pds.url}${xrpc('getInviteCodes')}?limit=500`, { headers: bearer(ADMIN_TOKEN) })
    const all = new Map<string, boolean>(
      body.codes.map((one: { code: string; disabled: boolean }) => [one.code, one.disabled]),
    )
    return codes.map((code) => all.get(code)!)
  }
  const [ofOwner, ofBea, alsoOfBea, ofCleo] = [
    await codeOf(owner.did),
    await codeOf(bea.did),
    await codeOf(bea.did),
    await codeOf(cleo.did),
  ]
  const ofNobody = [await codeOf(), await codeOf()]
  for (const refused of [
    { accounts: [owner.did] },
    { codes: [ofOwner] },
    { codes: [ofBea, ofOwner, ofCleo] },
    { codes: [ofBea], accounts: [owner.did] },
  ])
    expect((await disable(refused)).status).toBe(403)
  expect((await disable({ accounts: ['bea.test'] })).status).toBe(400)
  expect((await disable({ codes: Array<string>(1000).fill(ofBea), accounts: [bea.did] })).status).toBe(400)
  expect(await disabledOf([ofOwner, ofBea, alsoOfBea, ofCleo])).toEqual([false, false, false, false])

  const without = await createAccount(pds, 'without')
  const accounts = [bea.did, without.did, bea.did]
  for (let i = 0; i < 2; i++)
    expect((await disable({ codes: [...ofNobody, ofCleo, ofBea, 'none'], accounts })).status).toBe(200)
  expect(await disabledOf([ofBea, alsoOfBea, ofCleo, ...ofNobody])).toEqual([true, true, true, true, true])
  expect(await disabledOf([ofOwner])).toEqual([false])
  const query = `action=invites_disabled&actor=${encodeURIComponent(`operator:${steward.did}`)}`
  const { body } = await request(`${pds.url}/v1/admin/audit?${query}`, { headers: bearer(ADMIN_TOKEN) })
  const entries = body.events.map(({ subject: of, detail }: { subject?: string; detail: string }) => [of, detail])
  expect(new Map(entries)).toEqual(
    new Map([
      [undefined, '2 codes'],
      [bea.did, '2 codes'],
      [cleo.did, '1 code'],
    ]),
  )
  expect(entries).toHaveLength(3)
})

test('an import that fails half-way is in the audit log', async () => {
  const alice = await createAccount(pds, 'importer')
  const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/zip' }
  const path = `/v1/admin/accounts/${alice.did}/archive`
  expect(await request(`${pds.url}${path}`, { method: 'POST', headers, body: 'no archive' })).toMatchObject({
    status: 400,
  })
  const { body } = await request(`${pds.url}/v1/admin/audit?subject=${alice.did}`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.events).toMatchObject([{ action: 'account_imported' }])
})

test('a device that is revoked while its request arrives does nothing more', async () => {
  using _ = atOneNode(pds, 'the server has to have the first half of the request')
  const device = await OperatorDevice.paired(pds)
  const alice = await createAccount(pds, 'kept')
  const [path, { json }] = endings.delete!(alice.did)
  const body = Buffer.from(JSON.stringify(json))
  const arriving = new TransformStream<Uint8Array, Uint8Array>()
  const writer = arriving.writable.getWriter()
  const answer = fetch(`${pds.url}${path}`, {
    method: 'POST',
    headers: { ...device.headers(path, { method: 'POST', json }), 'content-type': 'application/json' },
    body: arriving.readable,
  })
  await writer.write(body.subarray(0, 10))
  const headers = bearer(ADMIN_TOKEN)
  await request(`${pds.url}/v1/admin/devices`, { headers })
  await request(`${pds.url}/v1/admin/devices/${device.id}/revoke`, { method: 'POST', headers })
  await writer.write(body.subarray(10))
  await writer.close()
  expect((await answer).status).toBe(403)
  expect((await alice.call('com.atproto.server.getSession')).status).toBe(200)
})

test('a device revokes itself', async () => {
  const device = await OperatorDevice.paired(pds)
  expect(await device.request(`/v1/admin/devices/${device.id}/revoke`, { method: 'POST' })).toMatchObject({
    status: 200,
    body: { device: { status: 'revoked' } },
  })
})
