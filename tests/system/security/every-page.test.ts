/**
 * All pages, found by their links, on a server where strangers have written markup wherever they can: nothing of it
 * runs, no page can be framed, and no form acts that another site has sent.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import { formsOf, pagePaths, walkPages, type WalkedForm, type WalkedPage } from '../../support/clients/page-walk.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { RELAY } from '../../support/clients/queued.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { APP_HOST, EVERYTHING_ON, livedIn } from '../../support/lived-in.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { zipped } from '../../support/zip-reading.ts'

// The walk opens some hundred pages.
setDefaultTimeout(60_000)

const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(2)>`

const { pds, web } = useWorld({
  web: [APP_HOST],
  config: { ...EVERYTHING_ON, notifications: { relay: RELAY } },
})

const kinds = ['stranger', 'holder', 'holder with factors', 'operator'] as const
type Kind = (typeof kinds)[number]
type Browser = CookieBrowser | ConsoleBrowser

const walked = setUp(async () => {
  const lived = await livedIn({ pds, web }, HOSTILE)
  // It is listed in the console while it is connected.
  using reader = new Subscriber(pds.url, '', null, HOSTILE)
  await reader.opened
  const { alice, hannah, olivia, appealCodes, userCode } = lived
  const authorize = await lived.authorizeUrl()
  const holders = pagePaths.filter((path) => !path.startsWith('/admin'))
  const more = [
    authorize.slice(pds.url.length),
    `/agent/claim?code=${userCode}`,
    ...appealCodes.map((code) => `/account/appeal?code=${code}`),
  ]
  const browsers: Record<Kind, Browser> = {
    stranger: new CookieBrowser(pds),
    holder: await signedIn(alice),
    'holder with factors': hannah.browser,
    operator: await operating(olivia),
  }
  const starts: Record<Kind, readonly string[]> = {
    stranger: [...pagePaths, ...more],
    holder: [...holders, ...more],
    'holder with factors': holders,
    operator: pagePaths.filter((path) => path.startsWith('/admin')),
  }
  const pages = {} as Record<Kind, WalkedPage[]>
  for (const kind of kinds) pages[kind] = await walkPages((path) => browsers[kind].open(path), starts[kind])
  return { browsers, pages, lived }
})

async function signedIn({ did: identifier, password }: { did: string; password: string }): Promise<CookieBrowser> {
  const browser = new CookieBrowser(pds)
  expect((await browser.send('/account/sign-in', { identifier, password })).status).toBe(303)
  return browser
}

async function operating({ did }: { did: string }): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(pds)
  expect((await browser.signIn(did)).status).toBe(303)
  return browser
}

const visits = () => kinds.flatMap((kind) => walked.pages[kind].map((page) => ({ kind, ...page })))
const allPages = () => visits().filter(({ text }) => text !== '')

test('the walk comes to every page that the server declares, and to those behind lists', () => {
  const seen = new Set(visits().map(({ path }) => path.split('?')[0]!))
  expect(pagePaths.filter((path) => !seen.has(path))).toEqual([])
  expect(visits().filter(({ answer }) => answer.status >= 500)).toEqual([])
  const paths = allPages().map(({ path }) => path)
  for (const part of ['part=record&', 'part=blobs', 'part=commits', '/admin/case?id=', '/admin/account?did='])
    expect([part, paths.some((path) => path.includes(part))]).toEqual([part, true])
})

/** What would run, or lead out of the page's policy. */
async function dangersIn(text: string): Promise<string[]> {
  const found: string[] = []
  const rewriter = new HTMLRewriter().on('*', {
    element(element) {
      const { tagName } = element
      for (const [name, value] of element.attributes) {
        if (name.startsWith('on') || name === 'style' || name === 'srcdoc') found.push(`${tagName} ${name}`)
        if (/^\s*(javascript|vbscript|data:text)/i.test(value)) found.push(`${tagName} ${name}=${value}`)
      }
      if (tagName === 'script' && !element.getAttribute('src')?.startsWith('/assets/')) found.push('a script')
      if (['iframe', 'object', 'embed', 'base', 'style'].includes(tagName)) found.push(tagName)
      if (tagName === 'img' && !element.getAttribute('src')?.startsWith('/')) found.push('an image')
      if (tagName === 'meta' && element.hasAttribute('http-equiv')) found.push('a header')
    },
  })
  await rewriter.transform(new Response(text)).text()
  return found
}

test('what strangers write is text on every page', async () => {
  let shown = 0
  for (const { kind, path, text } of allPages()) {
    expect({ kind, path, dangers: await dangersIn(text) }).toEqual({ kind, path, dangers: [] })
    if (text.includes('&lt;script&gt;alert(1)')) shown++
  }
  // The words came through to many pages; otherwise the walk would show nothing.
  expect(shown).toBeGreaterThan(15)
})

test('no page can be framed, kept, sniffed or read by another site', () => {
  for (const { kind, path, answer } of allPages()) {
    const { headers } = answer
    const policy = headers.get('content-security-policy') ?? ''
    expect({
      kind,
      path,
      frames: headers.get('x-frame-options'),
      cache: headers.get('cache-control'),
      type: headers.get('x-content-type-options'),
      opener: headers.get('cross-origin-opener-policy'),
      resource: headers.get('cross-origin-resource-policy'),
      referrer: headers.get('referrer-policy'),
      readers: headers.get('access-control-allow-origin'),
    }).toEqual({
      kind,
      path,
      frames: 'DENY',
      cache: 'no-store',
      type: 'nosniff',
      opener: 'same-origin',
      resource: 'same-origin',
      referrer: 'no-referrer',
      readers: path === '/' ? '*' : null,
    })
    for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"])
      expect({ kind, path, rule, has: policy.includes(rule) }).toEqual({ kind, path, rule, has: true })
    // The one form that leads back to apps.
    const leaves = path.startsWith('/oauth/authorize')
    expect({ kind, path, policy: policy.includes("form-action 'self'") || leaves }).toEqual({
      kind,
      path,
      policy: true,
    })
    expect({ kind, path, unsafe: /unsafe|\*|https?:/.test(policy) }).toEqual({ kind, path, unsafe: false })
  }
})

/** The forms of all pages, those that only differ in what they are about once. */
function allForms(): (WalkedForm & { kind: Kind; name: string })[] {
  const forms = allPages().flatMap((page) => formsOf(page).map((form) => ({ kind: page.kind, ...form })))
  const named = forms.map((form) => {
    const act = form.fields.find(([name]) => name === 'act' || name === 'change')?.[1] ?? ''
    const button = form.buttons.map(([name, value]) => `${name}=${value.slice(0, 20)}`).join()
    return { ...form, name: `${form.kind} ${form.path.split('?')[0]} ${act} ${button}` }
  })
  return [...new Map(named.map((form) => [form.name, form])).values()]
}

/** Where a browser says that a form comes from, when it comes from another site. */
const elsewhere: Record<string, string>[] = [
  { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
  { 'sec-fetch-site': 'same-site', origin: 'https://other.pds.example' },
  { 'sec-fetch-site': 'none' },
  { origin: 'https://evil.example' },
]

const sentBy = (browser: Browser, path: string, form: URLSearchParams, headers: Record<string, string>) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      cookie: browser.cookie,
      ...(browser instanceof ConsoleBrowser && { 'user-agent': browser.agent }),
      ...headers,
    },
    body: form.toString(),
  })

const PROOFS = ['form_token', 'console_token']

/** They act for nobody who is signed in: a language, and a code that is only looked at. */
const tokenless = ['/agent/claim', '/language']
/** They act for nobody who is signed in either, so a page of this server may send them without a token. */
const anybodys = [
  '/account/appeal',
  '/account/move-here',
  '/account/move-here/backup',
  '/account/recovery',
  '/account/recovery/share',
  '/account/reset-password',
  '/account/reset-password/code',
  '/account/sign-in',
  '/account/sign-up',
  '/language',
]

test('no form acts that another site has sent, or that lacks the token of its page', async () => {
  const forms = allForms()
  const counts = await Promise.all(
    (['account', 'oauth_device_account', 'app_password'] as const).map((table) => pds.count(table)),
  )
  const withoutToken = new Set<string>()
  const unbound = new Set<string>()
  for (const { kind, name, path, fields, buttons, isUpload } of forms) {
    const filled = new URLSearchParams([...fields, ...buttons.slice(0, 1)])
    const send = async (form: URLSearchParams, headers: Record<string, string>) =>
      (await sentBy(walked.browsers[kind], path, form, headers)).status
    for (const headers of elsewhere) expect([name, headers, await send(filled, headers)]).toEqual([name, headers, 403])
    // A browser that hides the origin, and somebody who knows everything of the page but its token.
    const bare = new URLSearchParams([...filled].filter(([field]) => !PROOFS.includes(field)))
    if (!fields.some(([field]) => PROOFS.includes(field))) withoutToken.add(path.split('?')[0]!)
    else if (!isUpload) expect([name, await send(bare, { origin: 'null' })]).toEqual([name, 403])
    if (kind === 'stranger' || isUpload) continue
    if ((await send(bare, { 'sec-fetch-site': 'same-origin' })) !== 403) unbound.add(path.split('?')[0]!)
  }
  expect([...unbound].toSorted()).toEqual(anybodys)
  expect([...withoutToken].toSorted()).toEqual(tokenless)
  expect(forms.length).toBeGreaterThan(80)
  expect(
    await Promise.all((['account', 'oauth_device_account', 'app_password'] as const).map((table) => pds.count(table))),
  ).toEqual(counts)
})

const ELSEWHERE = ['https://evil.example/', '//evil.example/', '/\\evil.example/', 'javascript:alert(1)']
/** Parameters of pages, and those that servers of this kind have. */
const PARAMETERS = ['account', 'back', 'next', 'return_to', 'redirect_uri', 'request_uri', 'client_id', 'done', 'url']

const leadsAway = (target: string): boolean => {
  const url = URL.parse(target, `${pds.url}/account/`)
  return url === null || url.hostname === 'evil.example' || url.protocol === 'javascript:'
}

/** Where an answer leads: its redirect, and the links and forms of its page. */
const targetsOf = ({ headers, body }: Answer): string[] => [
  ...[headers.get('location')].filter((location) => location !== null),
  ...[...String(body).matchAll(/\b(?:href|action|src|formaction)="([^"]*)"/g)].map(([, target]) => target!),
]

test('nothing that is in an address or a form leads to another site', async () => {
  const away = (answer: Answer) => targetsOf(answer).filter(leadsAway)
  for (const kind of ['stranger', 'holder', 'operator'] as const) {
    const browser = walked.browsers[kind]
    const pages = pagePaths.filter((path) => path.startsWith('/admin') === (kind === 'operator'))
    for (const path of pages)
      for (const target of ELSEWHERE) {
        const query = new URLSearchParams(PARAMETERS.map((name): [string, string] => [name, target]))
        const answer = await browser.open(`${path}?${query}`)
        expect({ kind, path, target, away: away(answer) }).toEqual({ kind, path, target, away: [] })
      }
  }
  for (const { kind, name, path, fields, buttons } of allForms().filter((form) => !form.isUpload)) {
    const kept = [...PROOFS, 'act', 'change']
    const [place = '', query = ''] = path.split('?')
    for (const target of ELSEWHERE) {
      const form = new URLSearchParams([
        ...fields.map(([field, value]): [string, string] => [field, kept.includes(field) ? value : target]),
        ...buttons.slice(0, 1),
      ])
      const parameters = new URLSearchParams(
        [...new URLSearchParams(query)].map(([field]): [string, string] => [field, target]),
      )
      const answer = await sentBy(walked.browsers[kind], `${place}?${parameters}`, form, {
        'sec-fetch-site': 'same-origin',
      })
      expect({ name, target, status: answer.status < 500, away: away(answer) }).toEqual({
        name,
        target,
        status: true,
        away: [],
      })
    }
  }
})

const posted = (kind: Kind, path: string, answer: Answer) => {
  const isPage = answer.headers.get('content-type')?.startsWith('text/html') ?? false
  return { kind, path, answer, text: isPage ? String(answer.body) : '' }
}

const KEPT = [...PROOFS, 'act', 'change', 'account', 'did']
const ORDER: readonly Kind[] = ['stranger', 'holder with factors', 'holder', 'operator']

/** Answers to all forms, with markup in each field. Each comes from a new sign-in, because forms end sign-ins. */
async function answersToForms() {
  const { alice, olivia } = walked.lived
  const found = []
  const forms = ORDER.flatMap((kind) => allForms().filter((form) => form.kind === kind && !form.isUpload))
  for (const { kind, path, fields, buttons } of forms) {
    const isOperator = kind === 'operator'
    const browser = isOperator
      ? await operating(olivia)
      : kind === 'holder'
        ? await signedIn(alice)
        : walked.browsers[kind]
    const { body } = await browser.open(isOperator ? '/admin' : '/account')
    const proofs = new Map(
      [...String(body).matchAll(/name="(form_token|console_token)" value="([^"]+)"/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    )
    const form = new URLSearchParams([
      ...fields.map(([name, value]): [string, string] => [
        name,
        proofs.get(name) ?? (KEPT.includes(name) ? value : HOSTILE),
      ]),
      ...buttons.slice(0, 1),
    ])
    found.push(posted(kind, path, await sentBy(browser, path, form, { 'sec-fetch-site': 'same-origin' })))
  }
  return found
}

/** Pages that come after a form alone: a step of a sign-in, the password once more, a decision, an archive. */
async function stepsOfForms() {
  const { alice, hannah, olivia, userCode } = walked.lived
  const step = await new CookieBrowser(pds).send('/account/sign-in', {
    identifier: hannah.account.did,
    password: hannah.account.password,
  })
  const browser = await signedIn(alice)
  const own = {
    account: alice.did,
    form_token: hiddenFields((await browser.open('/account')).body)['form_token'] ?? '',
  }
  const decision = await new CookieBrowser(pds).send('/agent/claim', {
    step: 'identify',
    user_code: userCode,
    identifier: alice.did,
    password: alice.password,
  })
  const entries = [HOSTILE, `${HOSTILE}.car`, `blobs/${HOSTILE}`].map((name) => ({
    name,
    content: [Buffer.from(HOSTILE)],
  }))
  const upload = new FormData()
  for (const [name, value] of Object.entries({ ...own, sure: 'yes' })) upload.append(name, value)
  upload.append('file', new Blob([(await zipped(entries)).bytes]), HOSTILE)
  const restored = await browser.upload('/account/archive/import', upload)
  const proof = await browser.send('/account/factors', { ...own, change: 'add-passkey', name: HOSTILE })
  const desk = await operating(olivia)
  pds.clock.advance({ secs: 11 * 60 })
  const again = await desk.act('reset-code', { did: alice.did, reason: HOSTILE, back: `/admin?q=${HOSTILE}` })
  return [
    posted('holder with factors', 'the second step', step),
    posted('holder', 'the decision', decision),
    posted('holder', 'the archive', restored),
    posted('holder', 'the password for factors', proof),
    posted('operator', 'the password again', again),
  ]
}

test('what people send in forms is text on the pages that come back', async () => {
  const steps = await stepsOfForms()
  const headings = steps.map(({ path, text }): [string, string] => [path, /<h1[^>]*>([^<]*)/.exec(text)?.[1] ?? ''])
  expect(Object.fromEntries(headings)).toEqual({
    'the second step': 'One more step',
    'the decision': 'Let this program act for you?',
    'the archive': expect.stringContaining('Restore'),
    'the password for factors': 'Add a passkey',
    'the password again': 'Enter your password again',
  })
  const pages = [...steps, ...(await answersToForms())].filter(({ text }) => text !== '')
  for (const { kind, path, answer, text } of pages) {
    expect({ kind, path, isFault: answer.status >= 500, dangers: await dangersIn(text) }).toEqual({
      kind,
      path,
      isFault: false,
      dangers: [],
    })
    expect({ path, frames: answer.headers.get('x-frame-options'), cache: answer.headers.get('cache-control') }).toEqual(
      {
        path,
        frames: 'DENY',
        cache: 'no-store',
      },
    )
  }
  expect(pages.filter(({ text }) => text.includes('&lt;script&gt;alert(1)')).length).toBeGreaterThan(10)
})
