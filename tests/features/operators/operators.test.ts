/** Operator credentials: the token, paired devices, and the audit of what they do. */
import { expect, test } from 'bun:test'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const DEVICES = '/v1/admin/devices'
const denied = { status: 401, body: { error: { code: 'UNAUTHORIZED' } } }
const mintCode = async () =>
  (await request(`${pds.url}/v1/admin/pairing-codes`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })).body
    .pairingCode as string
const audit = async (query = '') =>
  (await request(`${pds.url}/v1/admin/audit${query}`, { headers: bearer(ADMIN_TOKEN) })).body

test('the token opens the door as bearer and as the password of admin; nothing else does', async () => {
  expect(await request(pds.url + DEVICES, { headers: bearer(ADMIN_TOKEN) })).toMatchObject({ status: 200 })
  expect(await request(pds.url + DEVICES, { headers: basic('admin', ADMIN_TOKEN) })).toMatchObject({ status: 200 })
  for (const headers of [
    {},
    bearer('wrong'),
    bearer(''),
    basic('root', ADMIN_TOKEN),
    basic('admin', ''),
    { authorization: ADMIN_TOKEN },
  ])
    expect(await request(pds.url + DEVICES, { headers: headers as Record<string, string> })).toMatchObject(denied)
})

test('without a configured token nobody is an operator', async () => {
  await using other = await startPds({ adminToken: null })
  expect(await request(other.url + DEVICES, { headers: bearer('') })).toMatchObject(denied)
  expect(await request(other.url + DEVICES, { headers: bearer('null') })).toMatchObject(denied)
})

test('a paired device signs its requests, and each of them once', async () => {
  const device = await OperatorDevice.paired(pds)
  expect(await device.request(`${DEVICES}?limit=1`)).toMatchObject({ status: 200 })
  const headers = device.headers(DEVICES)
  const answers = await Promise.all([0, 1, 2, 3].map(() => request(pds.url + DEVICES, { headers })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401])
})

test('a device is not believed outside the window, beyond its key, or after its revocation', async () => {
  const device = await OperatorDevice.paired(pds)
  const nowSecs = Math.floor(pds.clock.now() / 1000)
  expect(await device.request(DEVICES, { timestampSecs: nowSecs - 58 })).toMatchObject({ status: 200 })
  expect(await device.request(DEVICES, { timestampSecs: nowSecs + 58 })).toMatchObject({ status: 200 })
  for (const timestampSecs of [nowSecs - 63, nowSecs + 65])
    expect(await device.request(DEVICES, { timestampSecs })).toMatchObject(denied)
  expect(await device.request(DEVICES, { nonce: 'with space' })).toMatchObject(denied)
  expect(await device.request(DEVICES, { nonce: 'x'.repeat(129) })).toMatchObject(denied)
  expect(await request(`${pds.url}/v1/admin/audit`, { headers: device.headers(DEVICES) })).toMatchObject(denied)

  const other = await OperatorDevice.paired(pds)
  const revoked = await other.request(`${DEVICES}/${device.id}/revoke`, { method: 'POST' })
  expect(revoked).toMatchObject({ status: 200, body: { device: { id: device.id, status: 'revoked' } } })
  expect(await device.request(DEVICES)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } })
  const [first] = (await audit(`?subject=${device.id}&action=device_revoked`)).events
  expect(first).toMatchObject({ actor: `device:${other.id}`, action: 'device_revoked', outcome: 'ok' })
  await other.request(`${DEVICES}/${device.id}/revoke`, { method: 'POST' })
  expect((await audit(`?subject=${device.id}&action=device_revoked`)).events).toHaveLength(1)
})

test('a device mints no pairing codes', async () => {
  const device = await OperatorDevice.paired(pds)
  expect(await device.request('/v1/admin/pairing-codes', { method: 'POST' })).toMatchObject(denied)
})

test('a wrong content type costs no nonce, a broken body does', async () => {
  const device = await OperatorDevice.paired(pds)
  const path = '/v1/admin/pairing-codes'
  const headers = { ...device.headers(path, { method: 'POST', json: 'x' }), 'content-type': 'text/plain' }
  expect(await request(pds.url + path, { method: 'POST', headers, body: '"x"' })).toMatchObject({
    status: 415,
    body: { error: { code: 'InvalidRequest' } },
  })
  const count = () => pds.count('operator_nonce', { device_id: device.id })
  expect(await count()).toBe(0)
  await request(pds.url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '"x"',
  })
  expect(await count()).toBe(1)
})

test('a pairing code survives a wrong signature, expires, and pairs one device', async () => {
  const code = await mintCode()
  const devices = [new OperatorDevice(pds), new OperatorDevice(pds)] as const
  expect(await devices[0].register(code, 'another-code')).toMatchObject(denied)
  const answers = await Promise.all(devices.map((device) => device.register(code)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401])
  const stale = await mintCode()
  pds.clock.advance({ secs: 301 })
  expect(await devices[0].register(stale)).toMatchObject(denied)
})

test('the audit is paged downwards and refuses what it does not know', async () => {
  await mintCode()
  await mintCode()
  const first = await audit('?limit=1')
  const second = await audit(`?limit=1&cursor=${first.cursor}`)
  expect(first.events[0].id).not.toBe(second.events[0].id)
  const bad = await request(`${pds.url}/v1/admin/audit?action=nothing`, { headers: bearer(ADMIN_TOKEN) })
  expect(bad).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
})

test('nonces are forgotten after their age', async () => {
  const device = await OperatorDevice.paired(pds)
  await device.request(DEVICES)
  pds.clock.advance({ secs: 3601 })
  expect((await pds.runSweep('admin-nonce-sweep')).swept).toBeGreaterThan(0)
})

test('a change and its audit row vanish together', async () => {
  await using other = await startPds()
  const device = await OperatorDevice.paired(other)
  const restore = await other.hide('operator_audit')
  const failed = await request(`${other.url + DEVICES}/${device.id}/revoke`, {
    method: 'POST',
    headers: bearer(ADMIN_TOKEN),
  })
  expect(failed.status).toBe(500)
  await restore()
  expect(await device.request(DEVICES)).toMatchObject({ status: 200 })
})
