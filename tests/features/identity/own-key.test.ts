/** A key of the holder's own, above that of this server. */
import { expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { parseSecretMultikey } from '../../../src/protocol/secret-multikey.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { signIn } from '../../support/clients/browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { lastCode, noticesTo } from '../../support/servers/mail.ts'
import { useWorld } from '../../support/world.ts'

const { pds, line, freshPage } = useWorld({ line: true, browser: true, config: { rateLimit: { enabled: false } } })

const newKey = () => signingKey('p256', crypto.getRandomValues(new Uint8Array(32)))
const add = (holder: TestAccount, input: object) =>
  request(`${pds.url}/v1/rotation-keys`, { json: input, headers: bearer(holder.accessJwt) })
async function codeFor(holder: TestAccount): Promise<string> {
  await holder.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  return (await lastCode(pds, holder.email))!
}
const stateOf = async (did: string) => (await pds.ctx.plc.state(did as Did))!

test('with the mailed code a public key becomes the highest, and signs without this server', async () => {
  const anna = await createAccount(pds, 'anna')
  const before = await stateOf(anna.did)
  const own = newKey()
  const publicKey = formatDidKey(own.publicKey)
  expect((await add(anna, { publicKey, code: await codeFor(anna) })).status).toBe(200)
  const after = await stateOf(anna.did)
  expect(after).toEqual({ ...before, rotationKeys: [publicKey, ...before.rotationKeys] })

  const last = (await pds.ctx.plc.lastOperation(anna.did as Did))!
  const elsewhere = { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.test' } }
  await pds.ctx.plc.submit(anna.did as Did, signOperation(nextOperation(last, { services: elsewhere })!, own))
  expect((await stateOf(anna.did)).services).toEqual(elsewhere)
})

test('a wrong code, a wrong key and a key that is there change nothing', async () => {
  const bert = await createAccount(pds, 'bert')
  const publicKey = formatDidKey(newKey().publicKey)
  const code = await codeFor(bert)
  const { rotationKeys } = await stateOf(bert.did)
  const refused = [
    { publicKey, code: 'AAAAA-BBBBB' },
    { publicKey: 'did:key:zNothing', code },
    { publicKey: 'did:web:bert.test', code },
    { publicKey: rotationKeys[0], code },
  ]
  for (const input of refused) expect((await add(bert, input)).status).toBe(400)
  expect((await add(bert, { code })).status).toBe(422)
  expect(await stateOf(bert.did)).toMatchObject({ rotationKeys })
  expect((await add(bert, { publicKey, code })).status).toBe(200)
  expect((await add(bert, { publicKey: formatDidKey(newKey().publicKey), code })).status).toBe(400)
})

test('a key and a handle that are changed at once both take effect', async () => {
  const cleo = await createAccount(pds, 'cleo')
  const publicKey = formatDidKey(newKey().publicKey)
  const code = await codeFor(cleo)
  const rename = (handle: string) => cleo.call('com.atproto.identity.updateHandle', { json: { handle } })
  const answers = await Promise.all([rename('cleo-1.test'), add(cleo, { publicKey, code }), rename('cleo-2.test')])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  const { rotationKeys, alsoKnownAs } = await stateOf(cleo.did)
  expect([rotationKeys[0], alsoKnownAs]).toEqual([publicKey, ['at://cleo-2.test']])
})

/** From the first operation on, the directory takes what it is sent and answers nothing. */
function goSilent(): void {
  let isSent = false
  line.fate = ({ method }) => {
    isSent ||= method === 'POST'
    if (!isSent) return 'answered'
    return method === 'POST' ? 'answer lost' : 'question lost'
  }
}

test('the holder is told of a key that the directory may have, although its answer was lost', async () => {
  const gert = await createAccount(pds, 'gert')
  const publicKey = formatDidKey(newKey().publicKey)
  const code = await codeFor(gert)
  goSilent()
  try {
    expect((await add(gert, { publicKey, code })).status).toBeGreaterThanOrEqual(500)
  } finally {
    line.fate = () => 'answered'
  }
  expect((await stateOf(gert.did)).rotationKeys[0]).toBe(publicKey)
  const subjects = (await noticesTo(pds, gert.email)).map(({ subject }) => subject)
  expect(subjects).toEqual([expect.stringContaining('A key may have been added to your identity')])
})

/** The events of an account that are about its identity, oldest first. */
async function told({ accessJwt }: TestAccount): Promise<string[]> {
  const { body } = await request(`${pds.url}/v1/account/events`, { headers: bearer(accessJwt) })
  return body.events
    .map(({ event }: { event: string }) => event)
    .filter((event: string) => /^(ownKey|identity)/.test(event))
    .toReversed()
}

/** Lets the server look at what became of its operations, some seconds later. */
async function later(secs: number): Promise<void> {
  pds.clock.advance({ secs })
  await pds.runSteps()
}

test('once the directory answers again, the holder is told what became of the key, once', async () => {
  const ida = await createAccount(pds, 'ida')
  const publicKey = formatDidKey(newKey().publicKey)
  const code = await codeFor(ida)
  goSilent()
  try {
    expect((await add(ida, { publicKey, code })).status).toBeGreaterThanOrEqual(500)
    await later(3)
    expect(await told(ida)).toEqual(['ownKeyInDoubt'])
  } finally {
    line.fate = () => 'answered'
  }
  await later(60)
  await later(60)
  expect(await told(ida)).toEqual(['ownKeyInDoubt', 'ownKeyAdded'])
  const subjects = (await noticesTo(pds, ida.email)).map(({ subject }) => subject)
  expect(subjects.filter((subject) => subject.includes('A key was added'))).toHaveLength(1)
})

test('of a key that never reached the directory, nothing more is told', async () => {
  const jan = await createAccount(pds, 'jan')
  const code = await codeFor(jan)
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  try {
    expect((await add(jan, { publicKey: formatDidKey(newKey().publicKey), code })).status).toBeGreaterThanOrEqual(500)
    await later(3)
    await later(90)
  } finally {
    line.fate = () => 'answered'
  }
  await later(90)
  expect(await told(jan)).toEqual(['ownKeyInDoubt'])
  expect((await pds.rows('step', { did: jan.did })).filter(({ kind }) => kind === 'told-operation')).toEqual([])
})

test('a key that was added while the clock was ahead is not waited for once the clock is right', async () => {
  pds.clock.jump({ days: 365 })
  const kim = await createAccount(pds, 'kim')
  const code = await codeFor(kim)
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  try {
    expect((await add(kim, { publicKey: formatDidKey(newKey().publicKey), code })).status).toBeGreaterThanOrEqual(500)
  } finally {
    pds.clock.jump({ days: -365 })
    line.fate = () => 'answered'
  }
  await later(90)
  expect((await pds.rows('step', { did: kim.did })).filter(({ kind }) => kind === 'told-operation')).toEqual([])
})

test('a directory that refuses leaves nothing to tell', async () => {
  const hans = await createAccount(pds, 'hans')
  const code = await codeFor(hans)
  line.fate = ({ method }) => (method === 'POST' ? 400 : 'answered')
  try {
    expect((await add(hans, { publicKey: formatDidKey(newKey().publicKey), code })).status).not.toBe(200)
  } finally {
    line.fate = () => 'answered'
  }
  const subjects = (await noticesTo(pds, hans.email)).map(({ subject }) => subject)
  expect(subjects.filter((subject) => subject.includes('key'))).toEqual([])
})

test('no app password adds one', async () => {
  const carl = await createAccount(pds, 'carl')
  const made = await carl.call('com.atproto.server.createAppPassword', { json: { name: 'app', privileged: true } })
  const session = await logIn(pds, carl, made.body.password)
  const code = await codeFor(carl)
  expect((await add(session, { publicKey: formatDidKey(newKey().publicKey), code })).status).toBe(401)
})

test('the page makes a key, shows it once before it is added, and then says who controls the identity', async () => {
  const dora = await createAccount(pds, 'dora')
  const page = await freshPage()
  await signIn(page, pds, dora)
  await page.goto(`${pds.url}/account/identity`)
  await page.getByRole('button', { name: 'Make a key for me' }).click()
  const secret = parseSecretMultikey((await page.locator('.secret').innerText()).trim())!
  const publicKey = formatDidKey(secret.publicKey)
  expect(await page.locator('#own-key .copy').innerText()).toBe(publicKey)
  await page.getByLabel('Code from the email').fill('AAAAA-BBBBB')
  await page.getByRole('button', { name: 'Add this key' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('code is wrong')
  expect(await page.locator('.secret').count()).toBe(0)
  expect(await page.locator('#own-key .copy').innerText()).toBe(publicKey)
  await page.getByLabel('Code from the email').fill((await lastCode(pds, dora.email))!)
  await page.getByRole('button', { name: 'Add this key' }).click()
  expect(await page.getByRole('status').innerText()).toContain('The key is added')
  expect((await stateOf(dora.did)).rotationKeys[0]).toBe(publicKey)
  await page.goto(`${pds.url}/account/identity`)
  expect(await page.locator('body').innerText()).toContain('The highest key is outside this server')
  expect(await page.locator('#own-key').count()).toBe(0)
})

test('the page takes the public key of a wallet, and no secret key', async () => {
  const emil = await createAccount(pds, 'emil')
  const page = await freshPage()
  await signIn(page, pds, emil)
  await page.goto(`${pds.url}/account/identity`)
  await page.getByText('Use the key of a wallet').click()
  await page.getByLabel('Public key of the wallet').fill('z42tsomething')
  await page.getByRole('button', { name: 'Send a code' }).click()
  expect(await page.getByLabel('Public key of the wallet').getAttribute('aria-invalid')).toBe('true')
  const publicKey = formatDidKey(newKey().publicKey)
  await page.getByLabel('Public key of the wallet').fill(publicKey)
  await page.getByRole('button', { name: 'Send a code' }).click()
  expect(await page.locator('.secret').count()).toBe(0)
  await page.getByLabel('Code from the email').fill((await lastCode(pds, emil.email))!)
  await page.getByRole('button', { name: 'Add this key' }).click()
  expect((await stateOf(emil.did)).rotationKeys[0]).toBe(publicKey)
})
