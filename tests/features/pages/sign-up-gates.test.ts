/** Signing up in a browser where the server asks a question and for a proof of work. */
import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { axeFaults } from '../../support/clients/accessibility.ts'
import { PASSWORD } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: {
    rateLimit: { enabled: false },
    signup: { question: 'Which river runs through our town?', answers: ['Isar'], proofOfWorkBits: 10 },
  },
})

async function fill(page: Page, name: string, answer: string): Promise<void> {
  await page.goto(`${pds.url}/account/sign-up`)
  await page.getByLabel('Handle', { exact: true }).fill(name)
  await page.getByLabel('Email address').fill(` ${name.toUpperCase()}@example.com`)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Which river runs through our town?').fill(answer)
}

const send = (page: Page) => page.getByRole('button', { name: 'Create account' }).click()

test('a browser does the work, and a wrong answer can be mended', async () => {
  const page = await freshPage({ javaScriptEnabled: true })
  await fill(page, 'riverine', 'Rhine')
  await send(page)
  await page.getByRole('alert').waitFor()
  expect(await page.getByRole('alert').innerText()).toBe(
    'The question has another answer. If you do not know it, ask the operator of this server.',
  )
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Which river runs through our town?').fill('isar ')
  await send(page)
  await page.getByRole('heading', { name: '@riverine.test' }).waitFor()
})

test('without script, the page says what is missing', async () => {
  const page = await freshPage()
  await fill(page, 'scriptless', 'Isar')
  expect(await page.getByText('This page needs JavaScript').count()).toBe(1)
  await send(page)
  await page.getByRole('alert').waitFor()
  expect(await page.getByRole('alert').innerText()).toStartWith('Your browser has not done the work')
})

test('the script is loaded only where it is needed', async () => {
  expect((await request(`${pds.url}/account/sign-up`)).body).toContain('/assets/proof-of-work.js')
  expect((await request(`${pds.url}/account/sign-in`)).body).not.toContain('proof-of-work')
})

test('the question fits on the smallest screen, in every language', async () => {
  const page = await freshPage({ javaScriptEnabled: true })
  await page.setViewportSize({ width: 320, height: 640 })
  for (const language of ['en', 'de', 'es', 'fr', 'ja', 'pt-BR']) {
    await page.context().addCookies([{ name: 'holdfast-language', value: language, url: pds.url }])
    await page.goto(`${pds.url}/account/sign-up`)
    const shown = await page.evaluate('[document.documentElement.lang, document.documentElement.scrollWidth]')
    expect([shown, await axeFaults(page)]).toEqual([[language, 320], []])
  }
})
