/** The console in the language of the operator's browser, and what strangers have written in it. */
import { expect, test } from 'bun:test'
import { languages } from '../../../src/protocol/languages.ts'
import { createAccount } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, waitlist: { enabled: true } } })
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))

async function signedIn(): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(pds)
  await browser.signIn(olivia.did)
  return browser
}

const PAGES = [
  '',
  '/accounts',
  '/cases',
  '/sign-ups',
  '/invites',
  '/waitlist',
  '/work',
  '/network',
  '/agents',
  '/pushes',
]
const ROOMS = [...PAGES, '/requests', '/configuration', '/audit', '/operators'].map((path) => `/admin${path}`)

test('each room is in the language that the browser asks for', async () => {
  const browser = await signedIn()
  const headings = new Map<string, Set<string>>()
  for (const language of languages)
    for (const path of ROOMS) {
      const { status, body } = await browser.open(path, { 'accept-language': language })
      expect({ path, language, status, lang: /<html lang="([^"]+)"/.exec(String(body))?.[1] }).toEqual({
        path,
        language,
        status: 200,
        lang: language,
      })
      const heading = /<h1[^>]*>(.+?)<\/h1>/.exec(String(body))![1]!
      headings.set(path, (headings.get(path) ?? new Set()).add(heading))
    }
  // A word may be the same in two languages, and never in all.
  for (const [path, words] of headings) expect({ path, many: words.size >= 4 }).toEqual({ path, many: true })
})

test('what a form has done is said in the same language, and what the server says about itself is marked as English', async () => {
  const browser = await signedIn()
  const german = { 'accept-language': 'de' }
  const fields = {
    act: 'invite',
    back: '/admin/invites',
    reason: 'a test',
    console_token: await browser.formToken(),
    uses: '1',
  }
  const { body } = await browser.send('/admin/act', fields, german)
  expect(body).toContain('Der Einladungscode ist erstellt.')
  const refused = await browser.send('/admin/act', { ...fields, act: 'end-session', id: 'none' }, german)
  expect(refused.body).toContain('<span lang="en">')
  const missing = await browser.open('/admin/account?did=did:plc:none', german)
  expect(missing.body).toMatch(/role="alert" id="fault"><span lang="en">/)
  expect((await browser.open('/admin/network', german)).body).toContain('<span lang="en">')
  expect((await browser.open('/admin/audit', german)).body).toContain('<span lang="en">')
})

test('what strangers write is text in every language', async () => {
  const hostile = '<img src=x onerror=alert(1)>'
  await request(`${pds.url}/waitlist`, { json: { email: 'mallory@example.com', handle: 'mallory.test' } })
  const { did } = await createAccount(pds, 'mallory', {}, { 'user-agent': `${hostile}/1.0` })
  await pds.plant('waitlist_entry', { email: `${hostile}@example.com`, handle: hostile, created_at: 1 })
  const browser = await signedIn()
  for (const language of languages)
    for (const path of [
      '/admin/waitlist',
      `/admin/account?did=${did}`,
      `/admin/requests?id=${encodeURIComponent(hostile)}`,
    ]) {
      const { body } = await browser.open(path, { 'accept-language': language })
      expect({ path, language, isText: !String(body).includes('<img') }).toEqual({ path, language, isText: true })
    }
  const { body } = await browser.open('/admin/waitlist', { 'accept-language': 'ja' })
  expect(body).toContain('希望：&lt;img src=x')
})
