/** The page that says who can move an account away. */
import { expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { nextOperation, signOperation, tombstone } from '../../../src/protocol/plc.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const { pds, line } = useWorld({ line: true, config: { rateLimit: { enabled: false } } })

async function signIn(account: Pick<TestAccount, 'did'>): Promise<string> {
  const signedIn = await request(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ identifier: account.did, password: PASSWORD }).toString(),
  })
  return signedIn.headers.get('set-cookie')!.split(';')[0]!
}

async function identityPage(account: Pick<TestAccount, 'did'>): Promise<string> {
  const cookie = await signIn(account)
  const { status, body } = await request(
    `${pds.url}/account/identity?${new URLSearchParams({ account: account.did })}`,
    {
      headers: { cookie },
    },
  )
  expect(status).toBe(200)
  return body
}

test('an identity that only this server can change says so', async () => {
  const page = await identityPage(await createAccount(pds, 'tenant'))
  expect(page).toContain('Only this server can change your identity')
  expect(page).not.toContain('A key outside this server')
})

test('a key of the holder that ranks first is named as such', async () => {
  const owner = await sovereignAccount(pds, 'olga')
  const page = await identityPage(owner)
  expect(page).toContain('The highest key is outside this server')
  expect(page.indexOf(owner.device.did)).toBeGreaterThan(page.indexOf('A key outside this server'))
})

test('a key of the holder below that of the server is no comfort', async () => {
  const lodger = await sovereignAccount(pds, 'lodger')
  const last = (await pds.ctx.plc.lastOperation(lodger.did as Did))!
  const turned = signOperation(
    nextOperation(last, { rotationKeys: (last as { rotationKeys: string[] }).rotationKeys.toReversed() })!,
    lodger.device.key,
  )
  await pds.ctx.plc.submit(lodger.did as Did, turned)
  expect(await identityPage(lodger)).toContain('key ranks higher')
  await pds.ctx.plc.submit(lodger.did as Did, signOperation(tombstone(turned), lodger.device.key))
  expect(await identityPage(lodger)).toContain('This identity has ended')
})

test('while the directory does not respond, the page says that and nothing else', async () => {
  const patient = await sovereignAccount(pds, 'patient')
  line.fate = () => 'question lost'
  const page = await identityPage(patient)
  line.fate = () => 'answered'
  expect(page).toContain('is not responding')
  expect(page).not.toContain(patient.device.did)
})

test('a did:web belongs to whoever has the domain, and a hosted one to whoever is signed in', async () => {
  const did = 'did:web:owner.example.com' as Did
  const owner = await createAccount(pds, 'webster')
  await pds.damage('account', { did: owner.did }, { did })
  const page = await identityPage({ ...owner, did })
  expect(page).toContain('<strong>owner.example.com</strong>')
  expect(page).not.toContain('serves the document')
  await pds.plant('web_document', { did, document: '{}' })
  await pds.damage('web_document', { did }, { hosted_since: pds.clock.now() })
  const hosted = await identityPage({ ...owner, did })
  expect(hosted).toContain('serves the document')
  expect(hosted).toContain('https://owner.example.com/.well-known/did.json')
})

test('the holder of a did:web lets this server serve its document, and takes it back', async () => {
  const did = 'did:web:switch.example.com' as Did
  const owner = await createAccount(pds, 'switcher')
  await pds.damage('account', { did: owner.did }, { did })
  const cookie = await signIn({ did })
  const switchTo = async (enabled: string) => {
    const { body } = await request(`${pds.url}/account/identity?account=${did}`, { headers: { cookie } })
    const fields = { ...hiddenFields(body), account: did, enabled }
    return request(`${pds.url}/account/identity/hosting`, {
      method: 'POST',
      headers: { cookie, origin: pds.url, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    })
  }
  const isHosted = async () => (await pds.rows('web_document', { did }))[0]!.hosted_since !== null
  await pds.plant('web_document', { did, document: JSON.stringify({ id: did }) })
  expect((await switchTo('yes')).status).toBe(303)
  expect(await isHosted()).toBe(true)
  const served = await request(`${pds.url}/.well-known/did.json`, {
    headers: { 'x-forwarded-host': 'switch.example.com' },
  })
  expect([served.status, served.body]).toEqual([200, { id: did }])
  expect((await switchTo('no')).status).toBe(303)
  expect(await isHosted()).toBe(false)
})
