/** What people do in several steps, in a real browser without scripts, from the sign-in to the end of it. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { appOn } from '../../support/clients/factor-holder.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { giveRole } from '../../support/clients/role-holder.ts'
import { png, Uploader } from '../../support/clients/uploader.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({ browser: true, config: { rateLimit: { enabled: false } } })

/** Where to put a picture of each step, for somebody to look at. */
const { SCREENSHOT_DIR } = process.env
if (SCREENSHOT_DIR) mkdirSync(SCREENSHOT_DIR, { recursive: true })
let pictures = 0

/** A person in front of a page. */
function person(page: Page) {
  const settle = async (work: Promise<unknown>) => {
    await work
    await page.waitForLoadState()
    if (!SCREENSHOT_DIR) return
    pictures += 1
    await page.screenshot({
      path: join(SCREENSHOT_DIR, `step-${String(pictures).padStart(3, '0')}.png`),
      fullPage: true,
    })
  }
  const one = {
    page,
    open: (path: string) => settle(page.goto(path.startsWith('/') ? pds.url + path : path)),
    press: (name: string) => settle(page.getByRole('button', { name, exact: true }).click()),
    follow: (name: string) => settle(page.getByRole('link', { name, exact: true }).first().click()),
    fill: (label: string, text: string) => page.getByLabel(label, { exact: true }).fill(text),
    sees: async (text: string | RegExp) => expect(await page.getByText(text).first().innerText()).toBeTruthy(),
    heading: () => page.getByRole('heading', { level: 1 }).innerText(),
    async enter({ handle }: Pick<TestAccount, 'handle'>) {
      await one.open('/account')
      await one.fill('Handle or email address', handle)
      await one.fill('Password', PASSWORD)
      await one.press('Sign in')
    },
    /** Opens what is folded away, and fills in the form in it. */
    async act(button: string, fields: Record<string, string> = {}, choices: Record<string, string> = {}) {
      const part = page.locator('details', { has: page.locator('summary', { hasText: new RegExp(`^${button}$`) }) })
      await part.last().locator('summary').first().click()
      for (const [label, text] of Object.entries(fields))
        await part.last().getByLabel(label, { exact: true }).fill(text)
      for (const [label, text] of Object.entries(choices))
        await part.last().getByLabel(label, { exact: true }).selectOption(text)
      await settle(part.last().getByRole('button', { name: button, exact: true }).click())
    },
  }
  return one
}

test('somebody sets up an authenticator app, loses it, and gets in with a recovery code', async () => {
  const ann = await createAccount(pds, 'ann')
  const she = person(await freshPage())
  await she.enter(ann)
  await she.follow('Change how you sign in')
  await she.press('Set up an authenticator app')
  await she.fill('Password', PASSWORD)
  await she.press('Continue')
  const app = appOn(await she.page.content())
  const code = () => app.generate({ timestamp: pds.clock.now() })
  await she.fill('Code that the app shows', code())
  await she.press('Turn on')
  expect(await she.heading()).toBe('Your recovery codes')
  const [first = '', second = ''] = await she.page.locator('.findings code').allInnerTexts()
  await she.follow('I have kept them')
  await she.follow('Back to your account')

  await she.press('Sign out')
  pds.clock.advance({ secs: 30 })
  await she.enter(ann)
  await she.fill('Code', code())
  await she.press('Continue')
  expect(new URL(she.page.url()).pathname).toBe('/account')

  // The device is gone.
  await she.press('Sign out')
  await she.enter(ann)
  await she.fill('Code', first)
  await she.press('Continue')
  await she.follow('Change how you sign in')
  await she.press('Remove the app')
  await she.fill('Password', PASSWORD)
  await she.press('Remove the app')
  await she.fill('Code', first)
  await she.press('Continue')
  expect(await she.page.getByRole('alert').innerText()).toBeTruthy()
  await she.fill('Code', second)
  await she.press('Continue')
  expect(await she.page.getByRole('status').innerText()).toBeTruthy()
  await she.follow('Back to your account')
  await she.press('Sign out')
  await she.enter(ann)
  expect(new URL(she.page.url()).pathname).toBe('/account')
})

test('somebody shares an account, the other acts for it in an app, and the first reads it and ends it', async () => {
  const [ben, cat] = [await createAccount(pds, 'ben'), await createAccount(pds, 'cat')]
  const [he, she] = [person(await freshPage()), person(await freshPage())]
  await he.enter(ben)
  await he.follow('Shared accounts')
  await he.page.getByText('Invite someone').click()
  await he.fill('Handle of the other account', cat.handle)
  await he.page.getByLabel('Create posts').check()
  await he.press('Invite')
  await he.sees('not accepted yet')

  await she.enter(cat)
  await she.sees('You have an invitation to act for another account.')
  await she.follow('Shared accounts')
  await she.page.getByRole('button', { name: /^Accept/ }).click()
  await she.sees(/You can act for this account now/)

  const client = new OAuthClient(pds)
  await she.open(client.authorizeUrl(await client.requestUri()))
  await she.page.getByText(`as @${ben.handle}`).click()
  const returned = she.page.waitForRequest((request) => request.url().startsWith(client.redirectUri))
  await she.page.getByRole('button', { name: 'Allow access' }).click()
  const { body } = await client.redeem(new URL((await returned).url()).searchParams.get('code')!)
  expect(body.sub).toBe(ben.did)
  const write = (collection: string) =>
    client.call(
      body.access_token,
      'com.atproto.repo.createRecord',
      {},
      {
        json: {
          repo: ben.did,
          collection,
          record: { $type: collection, text: 'hi', createdAt: new Date(0).toISOString() },
        },
      },
    )
  expect((await write('app.bsky.feed.post')).status).toBe(200)
  expect((await write('app.bsky.feed.like')).status).toBe(403)

  await he.open('/account/sharing')
  await he.follow('What they did')
  await he.sees('1 record created')
  await he.follow('Back to shared accounts')
  await he.page.getByRole('button', { name: /^End access/ }).click()
  await he.sees(/can no longer act/)
  expect((await write('app.bsky.feed.post')).status).toBe(401)
})

test('a report becomes a case, which is decided, appealed, answered and exported', async () => {
  const [dan, eve, mona] = [
    await createAccount(pds, 'dan'),
    await createAccount(pds, 'eve'),
    await createAccount(pds, 'mona'),
  ]
  await giveRole(pds, mona.did, 'moderator')
  const uploader = Uploader.at(pds, dan.did as Did, dan.accessJwt)
  const blob = await uploader.upload(png, 'image/png')
  await uploader.refer('com.example.note/shown', blob)
  await eve.call('com.atproto.moderation.createReport', {
    headers: { 'atproto-proxy': `${pds.ctx.config.serverDid}#atproto_labeler` },
    json: {
      reasonType: 'com.atproto.moderation.defs#reasonSpam',
      reason: 'Look at the picture',
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: dan.did },
    },
  })
  const [she, he] = [person(await freshPage()), person(await freshPage())]
  await she.open('/admin')
  await she.fill('Handle or email address', mona.handle)
  await she.fill('Password', PASSWORD)
  await she.press('Sign in')
  await she.follow('Cases')
  await she.act('Quarantine a blob', {
    'DID of the account': dan.did,
    'CID of the blob': blob.ref.$link,
    'Reason, for the audit log': 'while we look at it',
  })
  await she.sees('The blob is in quarantine.')
  await she.follow('Back')
  expect((await uploader.read(blob.ref.$link)).status).toBe(400)
  await she.page.getByRole('link', { name: /^Case \d+: dan/ }).click()
  await she.sees('Look at the picture')
  const address = she.page.url()
  await she.act('Decide', { 'Reason, which is mailed to the account holder': 'It is spam.' }, { Decision: 'take down' })
  await she.sees('The case is decided.')
  await pds.runSteps()

  const mail = pds.mails.findLast(({ to, text }) => to === dan.email && text.includes('/account/appeal?'))!
  expect(mail.text).toContain('It is spam.')
  await he.open(/https?:\S+\/account\/appeal\?code=[\w-]+/.exec(mail.text)![0].replace(/^https?:\/\/[^/]+/, ''))
  await he.sees('It is spam.')
  await he.fill('Why is this wrong?', 'It is a picture of my cat.')
  await he.press('Send appeal')
  await he.sees('Your appeal was sent.')

  await she.open(address)
  await she.sees(/It is a picture of my cat\./)
  await she.act(
    'Answer the appeal',
    { 'Reason, which is mailed to the account holder': 'It is a cat.' },
    { Outcome: 'reversed' },
  )
  await she.sees('The appeal is answered.')
  await she.follow('Back')
  const download = she.page.waitForEvent('download')
  await she.page.getByRole('link', { name: 'Export as text' }).click()
  const text = await Bun.file(await (await download).path()).text()
  for (const words of ['It is spam.', 'It is a picture of my cat.', 'It is a cat.']) expect(text).toContain(words)
  expect(text).not.toContain(eve.handle)
  await he.enter(dan)
  expect(await he.heading()).toContain(dan.handle)
})

/** Rooms of those who run the server. */
const allRooms = [
  'Overview',
  'Accounts',
  'Cases',
  'Sign-ups',
  'Invites',
  'Waitlist',
  'Work',
  'Network',
  'Agents',
  'Pushes',
  'Failed requests',
  'Configuration',
  'Audit log',
  'Operators',
] as const
const rooms = {
  owner: allRooms,
  operator: allRooms,
  moderator: [
    'Overview',
    'Accounts',
    'Cases',
    'Sign-ups',
    'Work',
    'Network',
    'Agents',
    'Failed requests',
    'Audit log',
    'Operators',
  ],
  'invite-steward': ['Overview', 'Invites', 'Waitlist', 'Operators'],
} as const
/** Where each room is, by its name. */
const paths: Record<string, string> = {
  Accounts: 'accounts',
  Cases: 'cases',
  'Sign-ups': 'sign-ups',
  Invites: 'invites',
  Waitlist: 'waitlist',
  Work: 'work',
  Network: 'network',
  Agents: 'agents',
  Pushes: 'pushes',
  'Failed requests': 'requests',
  Configuration: 'configuration',
  'Audit log': 'audit',
}

test.each(Object.keys(rooms) as (keyof typeof rooms)[])(
  '%s goes through the rooms of the console, and through no others',
  async (role) => {
    const who = await createAccount(pds, `the-${role}`)
    await giveRole(pds, who.did, role)
    const they = person(await freshPage())
    await they.open('/admin')
    await they.fill('Handle or email address', who.handle)
    await they.fill('Password', PASSWORD)
    await they.press('Sign in')
    const shown = await they.page.getByRole('navigation', { name: 'Console' }).getByRole('link').allInnerTexts()
    expect(shown).toEqual([...rooms[role]])
    for (const room of shown) {
      await they.follow(room)
      expect([room, await they.heading(), await they.page.getByRole('alert').count()]).toEqual([room, room, 0])
    }
    for (const [room, path] of Object.entries(paths)) {
      if (shown.includes(room)) continue
      await they.open(`/admin/${path}`)
      expect([room, await they.page.getByRole('alert').first().innerText()]).toEqual([
        room,
        expect.stringContaining('does not permit'),
      ])
    }
    await they.press('Sign out')
    await they.open('/admin/accounts')
    expect(new URL(they.page.url()).pathname).toBe('/admin/sign-in')
  },
)
