/** All pages, found by their links, in each language: none is left in English, and none is larger than it may be. */
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { hostname } from 'node:os'
import { languageNames, languages } from '../../../src/protocol/languages.ts'
import { formsOf, translations } from '../../architecture/text-tables.ts'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { pagePaths, walkPages, type WalkedPage } from '../../support/clients/page-walk.ts'
import { RELAY, registerDevices } from '../../support/clients/queued.ts'
import { registerAgent } from '../../support/clients/registered-agent.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { APP_HOST, EVERYTHING_ON, livedIn, type LivedIn } from '../../support/lived-in.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

// The walk opens some hundred pages, in each language.
setDefaultTimeout(60_000)

const { pds, web } = useWorld({
  web: [APP_HOST],
  config: { ...EVERYTHING_ON, notifications: { relay: RELAY } },
})

/** More rows than a page has. */
const MANY = 30

/** What people write here is in no language of the pages. */
const lived = setUp(() => livedIn({ pds, web }, 'Þórr ßø', MANY))
beforeAll(async () => {
  const { alice } = lived
  for (let i = 0; i < MANY; i++) {
    await logIn(pds, alice, alice.password)
    await alice.call('com.atproto.server.createAppPassword', { json: { name: `${'ß'.repeat(30)}${i}` } })
    await registerAgent(pds, alice, { clientName: 'ß'.repeat(30), openedWith: 'ß'.repeat(30) })
    await registerDevices(pds, alice, [`${i}`])
    await request(`${pds.url}/waitlist`, { json: { email: `${'w'.repeat(50)}${i}@example.com` } })
    await createAccount(pds, `many${i}`)
    await pds.plant('step', {
      id: crypto.randomUUID(),
      kind: 'mail',
      key: `${i}`,
      did: alice.did,
      payload_wrapped: pds.ctx.vault.wrap(Buffer.from('{}')),
      due_at: null,
      tries: 9,
      last_error: 'ß'.repeat(200),
      created_at: 1,
    } as object)
  }
  const admin = (path: string, json: object) => request(`${pds.url}${path}`, { json, headers: bearer(ADMIN_TOKEN) })
  for (let i = 0; i < MANY / 10; i++) await admin('/v1/accounts/claim-codes', { count: 10 })
  const invites = { codeCount: MANY, useCount: 1, forAccounts: [alice.did] }
  await admin('/xrpc/com.atproto.server.createInviteCodes', invites)
})

async function walkIn(language: string): Promise<WalkedPage[]> {
  const { alice, hannah, olivia, appealCodes, userCode, authorizeUrl }: LivedIn = lived
  const headers = { 'accept-language': language }
  const opened =
    (cookie: string, agent: string | null = null) =>
    (path: string) =>
      request(`${pds.url}${path}`, {
        headers: { ...headers, cookie, ...(agent !== null && { 'user-agent': agent }) },
      })
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: alice.did, password: alice.password })
  await hannah.signIn(hannah.recoveryCodes.pop())
  const desk = new ConsoleBrowser(pds)
  await desk.signIn(olivia.did)
  const authorize = (await authorizeUrl()).slice(pds.url.length)
  const holders = pagePaths.filter((path) => !path.startsWith('/admin'))
  const codes = [`/agent/claim?code=${userCode}`, ...appealCodes.map((code) => `/account/appeal?code=${code}`)]
  const operators = pagePaths.filter((path) => path.startsWith('/admin'))
  return [
    ...(await walkPages(opened(''), [...holders, '/admin/sign-in', authorize, ...codes])),
    ...(await walkPages(opened(browser.cookie), [...holders, authorize, ...codes])),
    ...(await walkPages(opened(hannah.browser.cookie), ['/account', '/account/factors'])),
    ...(await walkPages(opened(desk.cookie, desk.agent), operators)),
  ].filter(({ text }) => text !== '')
}

/** What a page says in its language: not what programs say, nor what the server says about itself. */
const wordsOf = (page: string): string => {
  const named = [...page.matchAll(/\b(?:aria-label|title|alt|placeholder)="([^"]*)"/g)].map(([, words]) => words)
  const shown = page
    .replaceAll(/<(code|pre|script|svg|time|option)\b[\s\S]*?<\/\1>/g, ' ')
    .replaceAll(/<(\w+)[^>]* (?:lang="[^"]*"|class="(?:mono|copy)")[^>]*>[^<]*<\/\1>/g, ' ')
    .replaceAll(/<[^>]+>/g, ' ')
  // What names something for programs: ids of requests, keys of the configuration, hosts, collections, DIDs.
  return [...named, shown]
    .join(' ')
    .replaceAll(/\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/g, ' ')
    .replaceAll(/[\w@*-]*(?:[.:/_@][\w@*-]+)+/g, ' ')
    .replaceAll(/\s+/g, ' ')
}

/** Words that no other language of the pages has, but in names of keys. */
const english = /(?<!\.)\b(the|of|and|this|that|with|your|you|from|cannot|which)\b/gi

/** Words of Latin letters alone: what has dots, digits or colons names something for programs. */
const latinWords = (text: string): string[] =>
  text
    .split(/[\s\-,;:!?()（）「」『』“”„«»‹›…·•。、，：]+/u)
    .map((word) => word.replaceAll(/^['’"\-–.]+|['’"\-–.]+$/gu, ''))
    .filter((word) => /^\p{Script=Latin}{2,}$/u.test(word) && !/[Þßø]/.test(word))

/** Words that are the same in every language: names of programs, systems, formats and people, and of this node. */
const names = new Set(
  ['Bun', 'Firefox', 'Linux', 'SQLite', 'PostgreSQL', 'AT', 'Protocol', 'localhost', 'test'].concat(
    latinWords(hostname()),
  ),
)

/** What `Intl` writes in a language: months and units. */
const formatted = (language: string): string[] => [
  ...Array.from({ length: 12 }, (_, month) =>
    (['short', 'long'] as const).map((style) =>
      new Intl.DateTimeFormat(language, { day: 'numeric', month: style, year: 'numeric' }).format(
        new Date(2026, month),
      ),
    ),
  ).flat(),
  ...['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'].flatMap((unit) =>
    (['short', 'long'] as const).flatMap((unitDisplay) =>
      [1, 2].map((count) => new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay }).format(count)),
    ),
  ),
]

const MAX_PAGE_BYTES = 60_000

test.each(languages)('in %s, every page is whole, small enough, and left in no other language', async (language) => {
  const pages = await walkIn(language)
  expect(pages.length).toBeGreaterThan(150)
  const tables = await translations()
  const own = new Set(
    tables.filter((table) => table.language === language).flatMap(({ texts }) => Object.values(texts).flatMap(formsOf)),
  )
  const foreign = tables
    .filter((table) => table.language === 'en')
    .flatMap(({ texts }) => Object.values(texts).flatMap(formsOf))
    .filter((text) => !own.has(text))
    .flatMap((text) => text.split(/\{\w+\}|<\/?\w+>/))
    .map((part) => part.trim())
    .filter((part) => /^\S+ [\p{Ll}“]/u.test(part) && part.length > 10)
  const texts = [...own, ...formatted(language), ...Object.values(languageNames)]
  const known = new Set(
    texts.flatMap((text) => latinWords(text.replaceAll(/<\/?\w+>|\{\w+\}/g, ' '))).map((word) => word.toLowerCase()),
  )
  const { body: stylesheet } = await request(`${pds.url}/assets/style.css`)
  const faults = pages.flatMap(({ path, text }) => {
    const words = wordsOf(text)
    return [
      text.includes(`<html lang="${language}">`) ? null : 'is in another language',
      Buffer.byteLength(text + stylesheet) < MAX_PAGE_BYTES
        ? null
        : `has ${Buffer.byteLength(text + stylesheet)} bytes`,
      /\{\w+\}|undefined|\[object|NaN/.test(words)
        ? `says ${/.{20}(\{\w+\}|undefined|\[object|NaN).{20}/.exec(words)?.[0]}`
        : null,
      ...(language === 'en' ? [] : foreign.filter((part) => words.includes(part)).map((part) => `says “${part}”`)),
      ...(language === 'en'
        ? []
        : latinWords(words)
            .filter((word) => !known.has(word.toLowerCase()) && !names.has(word))
            .map(
              (word) =>
                `says “${word}”, which is in no text of the language: ${new RegExp(`.{0,40}\\b${word}\\b.{0,40}`).exec(words)?.[0]}`,
            )),
      ...(language === 'en'
        ? []
        : [...words.matchAll(english)].map(
            ({ index }) => `says “${words.slice(Math.max(0, index - 30), index + 30)}”`,
          )),
    ].flatMap((fault) => (fault === null ? [] : [`${path}: ${fault}`]))
  })
  expect([...new Set(faults)]).toEqual([])
})
