/**
 * The pages on which somebody signs in or decides: whole on the first screen of a phone and of a laptop, in the order
 * in which they are read, with nothing above anything else. Whoever presses the first button, or Enter, is led on.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { createAccount } from '../../support/clients/account.ts'
import { openAgentClaim, pollAgent, registerAgent } from '../../support/clients/agent.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { decisionOf, sendDecision } from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { signIn } from '../../support/clients/browser.ts'

const PHONE = { width: 360, height: 740 }
const LAPTOP = { width: 1280, height: 800 }
const SCREENS = [{ width: 320, height: 640 }, PHONE, { width: 768, height: 1024 }, LAPTOP]
const SCOPE = 'atproto transition:generic transition:email transition:chat.bsky'
const LONG_SCOPE = `${SCOPE} identity:handle account:email?action=manage blob:*/* ${['post', 'like', 'repost'].map((kind) => `repo:app.bsky.feed.${kind}`).join(' ')}`
const APP_HOST = 'flashes.web.test'
const CLIENT_ID = `https://${APP_HOST}/client.json`

/** Where an app on this device takes its answers. */
const app = setUp(() => Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('back in the app') }))

const { pds, web, freshPage } = useWorld({
  web: [APP_HOST],
  browser: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
    agentAuth: { anonymousEnabled: true },
  },
})
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
/** Has no password. */
const quinn = setUp(() => sovereignAccount(pds, 'quinn', { password: undefined }))
beforeAll(() => {
  web.publish(APP_HOST, '/client.json', () =>
    Response.json({
      client_id: CLIENT_ID,
      client_name: 'Flashes for everybody',
      redirect_uris: [`https://${APP_HOST}/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: LONG_SCOPE,
      token_endpoint_auth_method: 'none',
      dpop_bound_access_tokens: true,
      policy_uri: `https://${APP_HOST}/privacy`,
      tos_uri: `https://${APP_HOST}/terms`,
    }),
  )
})

const published = () => new OAuthClient(pds, CLIENT_ID, null, `https://${APP_HOST}/callback`)
const onThisDevice = () => {
  const redirectUri = `http://127.0.0.1:${app.port}/callback`
  return new OAuthClient(pds, loopbackClientId(SCOPE, redirectUri), null, redirectUri)
}

async function openRequest(
  page: Page,
  client: OAuthClient,
  changes: Record<string, string | undefined> = {},
): Promise<void> {
  await page.goto(client.authorizeUrl(await client.requestUri({ scope: SCOPE, ...changes })))
}

async function waitingProgram(): Promise<{ token: string; code: string }> {
  const { body } = await registerAgent(pds, { type: 'anonymous' })
  const { body: opened } = await openAgentClaim(pds, body.claim_token)
  return { token: body.claim_token, code: opened.claim_attempt.user_code }
}

interface Sight {
  open(page: Page): Promise<unknown>
  /** What has to be on the first screen, from top to bottom. */
  parts(page: Page): Locator[]
}

const heading = (page: Page) => page.getByRole('heading', { level: 1 })
const identifier = (page: Page) => page.getByLabel('Handle or email address')
const password = (page: Page) => page.getByLabel('Password', { exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name })
const walletLine = (page: Page) => page.getByText('Use your wallet instead')
const permissions = (page: Page) =>
  ['Know who you are', 'Post and act as you', 'Read and send messages', 'See your email address'].map((words) =>
    page.locator('.what').getByText(words),
  )

const sights: Record<string, Sight> = {
  'the consent to an app': {
    open: (page) => openRequest(page, published()),
    parts: (page) => [
      heading(page),
      identifier(page),
      password(page),
      ...permissions(page),
      page.getByText('What this means'),
      button(page, 'Allow access'),
      walletLine(page),
    ],
  },
  'the consent to an app that asks for much': {
    open: (page) => openRequest(page, published(), { scope: LONG_SCOPE }),
    parts: (page) => [
      heading(page),
      identifier(page),
      password(page),
      page.locator('.what').getByText('Post and act as you'),
      page.getByText('7 more, some far-reaching'),
      button(page, 'Allow access'),
      walletLine(page),
    ],
  },
  'the consent to an app on this device, which names an account': {
    open: (page) => openRequest(page, onThisDevice(), { login_hint: alice.handle }),
    parts: (page) => [
      heading(page),
      page.getByText('cannot be verified'),
      identifier(page),
      password(page),
      ...permissions(page),
      button(page, 'Allow access'),
    ],
  },
  'the consent on a browser where two accounts are signed in': {
    async open(page) {
      await signIn(page, pds, bob)
      await signIn(page, pds, alice)
      await openRequest(page, published())
    },
    parts: (page) => [
      heading(page),
      ...['@alice.test', '@bob.test', 'Another account'].map((name) => page.getByRole('radio', { name })),
      ...permissions(page),
      button(page, 'Allow access'),
      walletLine(page),
    ],
  },
  'the consent of an account that signs by wallet': {
    open: (page) => openRequest(page, published(), { login_hint: quinn.handle }),
    parts: (page) => [
      heading(page),
      page.locator('.scan'),
      page.locator('#wallet-status'),
      button(page, 'Continue'),
      page.getByText('Use your password instead'),
    ],
  },
  'the sign-in to the account page': {
    open: (page) => page.goto(`${pds.url}/account/sign-in`),
    parts: (page) => [
      heading(page),
      identifier(page),
      password(page),
      button(page, 'Sign in'),
      button(page, 'Use your wallet instead'),
    ],
  },
  'the page for the code of a program': {
    open: (page) => page.goto(`${pds.url}/agent/claim`),
    parts: (page) => [
      heading(page),
      page.getByLabel('Code that the program shows'),
      identifier(page),
      password(page),
      button(page, 'Continue'),
      walletLine(page),
    ],
  },
  'the decision about a program': {
    async open(page) {
      await signIn(page, pds, alice)
      await page.goto(`${pds.url}/agent/claim?code=${(await waitingProgram()).code}`)
      await button(page, 'Continue').click()
      await page.getByRole('heading', { name: 'Let this program act for you?' }).waitFor()
    },
    parts: (page) => [
      heading(page),
      page.getByText('Approve only if you have just requested'),
      page.getByRole('checkbox', { name: 'Read private data' }),
      ...['Know who you are', 'Upload files of any kind', 'Create and change any of your public data'].map((words) =>
        page.locator('.what').getByText(words),
      ),
      button(page, 'Approve'),
    ],
  },
}

test.each(Object.keys(sights))(
  '%s is whole on the first screen of a phone and of a laptop, and nothing covers it',
  async (name) => {
    const { open, parts } = sights[name]!
    const page = await freshPage({ viewport: PHONE })
    await open(page)
    for (const screen of SCREENS) {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize(screen)
        await page.emulateMedia({ colorScheme })
        const boxes = await Promise.all(parts(page).map(async (part) => (await part.boundingBox())!))
        const where = { name, ...screen, colorScheme }
        expect({ ...where, tops: boxes.map(({ y }) => y) }).toEqual({
          ...where,
          tops: boxes.map(({ y }) => y).toSorted((a, b) => a - b),
        })
        const overlapping = boxes.slice(1).filter(({ y }, i) => y < boxes[i]!.y + boxes[i]!.height)
        expect({ ...where, overlapping, ...(await page.evaluate(covering)) }).toEqual({
          ...where,
          overlapping: [],
          covered: [],
          floating: [],
        })
        const bottom = Math.max(...boxes.map(({ y, height }) => y + height))
        if (screen === PHONE || screen === LAPTOP)
          expect({ ...where, fits: bottom <= screen.height, bottom }).toMatchObject({ fits: true })
      }
    }
  },
)

interface Covering {
  /** Controls and lines of text that something else lies on. */
  covered: string[]
  /** What stays in place while the page is scrolled. */
  floating: string[]
}

/** Runs in the page. The compiler of the tests knows no DOM. */
const covering = `(() => {
  const all = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility() && one.getClientRects().length > 0)
  const label = (one) => one.tagName.toLowerCase() + '.' + (one.getAttribute('class') ?? '') + ' ' + one.textContent.trim().slice(0, 30)
  const reachable = (one) => {
    one.scrollIntoView({ block: 'center' })
    const { x, y, width, height } = one.getClientRects()[0]
    const top = document.elementFromPoint(x + width / 2, y + height / 2)
    return top !== null && (one.contains(top) || top.contains(one))
  }
  const covered = all.filter((one) => one.matches('h1, p, a, label, legend, summary, button, input, .what, dt, dd')).filter((one) => !reachable(one)).map(label)
  scrollTo(0, 0)
  return { covered, floating: all.filter((one) => ['sticky', 'fixed'].includes(getComputedStyle(one).position)).map(label) }
})()` as unknown as () => Covering

test('what is folded away is granted too, and can be unticked', async () => {
  const page = await freshPage({ viewport: PHONE })
  const redirectUri = `http://127.0.0.1:${app.port}/callback`
  const client = new OAuthClient(pds, loopbackClientId(LONG_SCOPE, redirectUri), null, redirectUri)
  await openRequest(page, client, { scope: LONG_SCOPE, login_hint: alice.handle })
  await page.getByText('7 more').click()
  await page.getByRole('checkbox', { name: 'Upload files of any kind' }).uncheck()
  await page.getByText('7 more').click()
  await password(page).fill(alice.password)
  await password(page).press('Enter')
  await page.waitForURL(/\/callback\?.*code=/)
  const { body } = await client.redeem(new URL(page.url()).searchParams.get('code')!)
  expect(body.scope).toBe(LONG_SCOPE.replace(' blob:*/*', ''))
})

describe('the first button and Enter lead on', () => {
  const first = (page: Page) => page.locator('main button').first()

  test.each(['the first button', 'Enter'])('to the app, with a password: %s', async (way) => {
    const page = await freshPage({ viewport: PHONE })
    await openRequest(page, onThisDevice())
    expect(await first(page).innerText()).toBe('Allow access')
    await identifier(page).fill(alice.handle)
    await password(page).fill(alice.password)
    await (way === 'Enter' ? page.keyboard.press('Enter') : first(page).click())
    await page.waitForURL(/\/callback\?.*code=/)
  })

  test('to the same page, with nothing filled in', async () => {
    const page = await freshPage({ viewport: PHONE })
    await openRequest(page, onThisDevice())
    const url = page.url()
    await first(page).click()
    expect([page.url(), await identifier(page).evaluate('document.activeElement.id')]).toEqual([url, 'identifier'])
  })

  test('to the same request, before the wallet has approved it, and to the app afterwards', async () => {
    const page = await freshPage({ viewport: PHONE })
    const client = onThisDevice()
    await openRequest(page, client, { login_hint: quinn.handle })
    const requestId = (await page.locator('[data-request-id]').getAttribute('data-request-id'))!
    await first(page).click()
    expect(await page.getByRole('alert').innerText()).toContain('has not approved this request yet')
    expect(await page.locator('[data-request-id]').getAttribute('data-request-id')).toBe(requestId)
    await sendDecision(pds, decisionOf(pds, quinn, { requestId, clientId: client.clientId }, { grantedScope: SCOPE }))
    await first(page).click()
    await page.waitForURL(/\/callback\?.*code=/)
  })

  test('to the password, after the wallet was pressed by mistake', async () => {
    const page = await freshPage({ viewport: PHONE })
    await openRequest(page, onThisDevice())
    await walletLine(page).click()
    await button(page, 'Continue').click()
    await page.getByText('Use your password instead').click()
    await identifier(page).fill(alice.handle)
    await password(page).fill(alice.password)
    await password(page).press('Enter')
    await page.waitForURL(/\/callback\?.*code=/)
    expect(await page.textContent('body')).toBe('back in the app')
  })

  test('the sign-in leads on to the account page', async () => {
    const page = await freshPage({ viewport: PHONE })
    await page.goto(`${pds.url}/account/sign-in`)
    await identifier(page).fill(alice.handle)
    await password(page).fill(alice.password)
    await first(page).click()
    await page.waitForURL(`${pds.url}/account`)
    expect(await heading(page).innerText()).toContain(alice.handle)
  })

  test('to the decision about a program, and to its end', async () => {
    const { token, code } = await waitingProgram()
    const page = await freshPage({ viewport: PHONE })
    await page.goto(`${pds.url}/agent/claim?code=${code}`)
    await identifier(page).fill(alice.handle)
    await password(page).fill(alice.password)
    await page.keyboard.press('Enter')
    await first(page).click()
    await page.getByRole('heading', { name: 'The program now has access' }).waitFor()
    expect((await pollAgent(pds, token)).status).toBe(200)
  })
})

describe('what goes wrong keeps the request, and leads back to it', () => {
  test('a sign-in in another tab: the page shows the accounts as they are, and goes on', async () => {
    const page = await freshPage({ viewport: PHONE })
    await signIn(page, pds, alice)
    await openRequest(page, onThisDevice())
    const other = await page.context().newPage()
    await signIn(other, pds, bob)
    await button(page, 'Allow access').click()
    expect(await page.getByRole('alert').innerText()).toContain('in another tab')
    await page.getByRole('radio', { name: '@bob.test' }).check()
    await button(page, 'Allow access').click()
    await page.waitForURL(/\/callback\?.*code=/)
  })

  test('a decision about a program that took too long: the page asks for its code again', async () => {
    const page = await freshPage({ viewport: PHONE })
    await sights['the decision about a program']!.open(page)
    pds.clock.advance({ secs: 301 })
    await button(page, 'Approve').click()
    expect(await page.getByRole('alert').innerText()).toContain('enter its code again')
    expect(await page.getByLabel('Code that the program shows').isVisible()).toBe(true)
  })
})
