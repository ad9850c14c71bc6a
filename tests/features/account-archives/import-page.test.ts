/** Restoring an account on its page: in a real browser without scripts, and from clients that no browser is like. */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { axeFaults } from '../../support/clients/accessibility.ts'
import { signIn } from '../../support/clients/browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { settleIn } from '../../support/clients/migration.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { OTHER_NODE } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const PATH = '/account/archive/import'
const MIB = 1024 ** 2
/** Most bytes of an archive here: what may be in it beside repository and blobs is a gigabyte. */
const MAX_BLOB_BYTES = 50 * MIB

const { pds, freshPage } = useWorld({
  browser: true,
  config: { rateLimit: { enabled: false }, blobs: { maxStoragePerAccount: MAX_BLOB_BYTES } },
})
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
let archive: Buffer
beforeAll(async () => {
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: alice.did, password: PASSWORD })
  await settleIn(agent)
  const exported = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(alice.accessJwt) })
  archive = Buffer.from(await exported.arrayBuffer())
})

/** A browser that is signed in, and the form of its page. */
async function formOf(account: TestAccount) {
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: account.handle, password: PASSWORD })
  const { body } = await browser.open(PATH)
  const form_token = /name="form_token" value="([^"]+)"/.exec(body)![1]!
  return { browser, fields: { account: account.did, form_token, sure: 'yes' } as Record<string, string> }
}

function filled(fields: Record<string, string>, files: readonly Uint8Array[]): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  for (const file of files) form.append('file', new Blob([file as Uint8Array<ArrayBuffer>]), 'archive.zip')
  return form
}

const records = async ({ did, call }: TestAccount): Promise<number> => {
  const { body } = await call(`com.atproto.repo.listRecords?repo=${did}&collection=com.example.note`)
  return body.records.length
}

const note = ({ did, call }: TestAccount, text = 'since then') =>
  call('com.atproto.repo.createRecord', {
    json: { repo: did, collection: 'com.example.note', record: { $type: 'com.example.note', text } },
  })

test('a person restores the account in a browser, and reads what was taken over', async () => {
  await note(alice)
  expect(await records(alice)).toBe(1)
  const page = await freshPage()
  await signIn(page, pds, alice)
  await page.goto(`${pds.url}/account`)
  await page.locator('#archive').evaluate((part) => (part.closest('details')!.open = true))
  await page.getByRole('link', { name: 'Restore your account from an archive' }).click()
  await page.getByText('What you have written since the export is lost').waitFor()
  await page.getByLabel('Replace my posts').check()
  await page
    .getByLabel('The archive', { exact: true })
    .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') })
  await page.getByRole('button', { name: 'Restore my account' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('no ZIP file')
  await page.getByLabel('Replace my posts').check()
  await page
    .getByLabel('The archive', { exact: true })
    .setInputFiles({ name: 'a.zip', mimeType: 'application/zip', buffer: archive })
  await page.getByRole('button', { name: 'Restore my account' }).click()
  await page.getByText('The whole archive has been taken over').waitFor()
  expect(await page.getByText('0 added, 3 were here already').count()).toBe(1)
  expect(await records(alice)).toBe(0)
})

test('people who use a keyboard or a screen reader can use the page, with a fault and without', async () => {
  const page = await freshPage({ javaScriptEnabled: true })
  await signIn(page, pds, alice)
  await page.goto(pds.url + PATH)
  expect(await axeFaults(page)).toEqual([])
  await page.getByLabel('Replace my posts').check()
  await page
    .getByLabel('The archive', { exact: true })
    .setInputFiles({ name: 'a.zip', mimeType: 'application/zip', buffer: Buffer.from('x') })
  await page.getByRole('button', { name: 'Restore my account' }).click()
  await page.getByRole('alert').waitFor()
  expect(await axeFaults(page)).toEqual([])
})

/** By what is wrong: the form, and the words. */
const refused: Record<string, [make: (fields: Record<string, string>) => FormData, status: number, words: string]> = {
  'has no file': [(fields) => filled(fields, []), 400, 'choose the file'],
  'has two files': [(fields) => filled(fields, [archive, archive]), 400, 'one file only'],
  'has a file that is no archive': [(fields) => filled(fields, [Buffer.alloc(MIB, 'x')]), 400, 'no ZIP file'],
  'has half an archive': [(fields) => filled(fields, [archive.subarray(0, 2000)]), 400, 'not usable'],
  'has no consent': [(fields) => filled({ ...fields, sure: 'no' }, [archive]), 400, 'confirm'],
  'has no token': [(fields) => filled({ ...fields, form_token: '' }, [archive]), 403, ''],
  'has too many fields': [
    (fields) => filled({ ...fields, ...Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`x${at}`, ''])) }, []),
    400,
    '',
  ],
}

test.each(Object.keys(refused))('a form that %s is refused, and changes nothing', async (what) => {
  const { browser, fields } = await formOf(alice)
  await note(alice)
  const before = await records(alice)
  const [make, status, words] = refused[what]!
  const answer = await browser.upload(PATH, make(fields))
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body: expect.stringContaining(words) })
  expect(await records(alice)).toBe(before)
})

test('the archive of another account, a form of another site, and one without a sign-in are refused', async () => {
  const { browser, fields } = await formOf(bob)
  expect(await browser.upload(PATH, filled(fields, [archive]))).toMatchObject({
    status: 403,
    body: expect.stringContaining('another account'),
  })
  expect(await browser.upload(PATH, filled(fields, [archive]), { 'sec-fetch-site': 'cross-site' })).toMatchObject({
    status: 403,
  })
  const stranger = await new CookieBrowser(pds).upload(PATH, filled(fields, [archive]))
  expect({ status: stranger.status, to: stranger.headers.get('location') }).toEqual({
    status: 303,
    to: expect.stringContaining('/account/sign-in'),
  })
})

/** The temporary files of archives that arrive. */
const arrivingFiles = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return [pds.dataDir, join(pds.dataDir, OTHER_NODE)].some((folder) => path.startsWith(`${folder}/.`))
    } catch (error) {
      // Closed since the folder was read.
      if ((error as { code?: string }).code === 'ENOENT') return false
      throw error
    }
  }).length

/** What ends a form. */
const FORM_END = '\r\n--x--\r\n'

/**
 * Sends the head of a form and a part of its file, and leaves the connection open. `announced` is the length of the
 * form, or of the file alone, in bytes.
 */
async function halfUpload(account: TestAccount, announced: number | { file: number }, sent: Uint8Array) {
  const { browser, fields } = await formOf(account)
  const parts = Object.entries(fields).map(
    ([name, value]) => `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const head = [...parts, '--x\r\ncontent-disposition: form-data; name="file"; filename="a.zip"\r\n\r\n'].join('')
  const { hostname, port, host } = new URL(pds.url)
  const socket = connect(Number(port), hostname)
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  socket.write(
    [
      `POST ${PATH} HTTP/1.1`,
      `host: ${host}`,
      `origin: ${pds.url}`,
      `cookie: ${browser.cookie}`,
      // The sign-in counts for the program that made it.
      `user-agent: ${navigator.userAgent}`,
      'content-type: multipart/form-data; boundary=x',
      `content-length: ${typeof announced === 'number' ? announced : head.length + announced.file + FORM_END.length}`,
      '',
      head,
    ].join('\r\n'),
  )
  socket.write(sent)
  return { socket, received: () => received }
}

test('an upload that is cut off changes nothing and leaves nothing, and the next one is taken', async () => {
  await note(alice)
  const before = await records(alice)
  const half = Buffer.concat([archive.subarray(0, 4), Buffer.alloc(MIB)])
  const { socket } = await halfUpload(alice, 10 * MIB, half)
  await until(() => arrivingFiles() === 1)
  socket.destroy()
  await until(() => arrivingFiles() === 0)
  expect(await records(alice)).toBe(before)
  const { browser, fields } = await formOf(alice)
  const again = async () => (await browser.upload(PATH, filled(fields, [archive]))).status
  await until(async () => (await again()) === 200)
  expect(await records(alice)).toBe(0)
})

test('an upload changes nothing once the browser was signed out', async () => {
  const carol = await createAccount(pds, 'carol')
  for (let n = 0; n < 10; n++) await note(carol, randomBytes(50_000).toString('base64'))
  const exported = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(carol.accessJwt) })
  const own = Buffer.from(await exported.arrayBuffer())
  const { body: since } = await note(carol)
  const { socket, received } = await halfUpload(carol, { file: own.length }, own.subarray(0, 300_000))
  await until(() => arrivingFiles() === 1)
  const json = { did: carol.did, password: 'another password' }
  const changed = await request(`${pds.url}/xrpc/com.atproto.admin.updateAccountPassword`, {
    headers: bearer(ADMIN_TOKEN),
    json,
  })
  expect(changed.status).toBe(200)
  socket.write(own.subarray(300_000))
  socket.write(FORM_END)
  await until(() => received().includes('You have been signed out'))
  socket.destroy()
  const again = await logIn(pds, carol, 'another password')
  const rkey = since.uri.split('/').at(-1)
  const query = `repo=${carol.did}&collection=com.example.note&rkey=${rkey}`
  expect((await again.call(`com.atproto.repo.getRecord?${query}`)).status).toBe(200)
})

test('a file that is larger than the account may have is refused before it arrives', async () => {
  const { socket, received } = await halfUpload(alice, 8 * 1024 * MIB, archive.subarray(0, 1000))
  await until(() => received().includes('larger than this server accepts'))
  expect(received()).toStartWith('HTTP/1.1 413')
  socket.destroy()
  expect(arrivingFiles()).toBe(0)
})
