/** Every page for account holders and strangers, on screens of every width, with the longest names that there are. */
import { expect, test } from 'bun:test'
import { usePageChecks } from '../../support/page-checks.ts'
import { SCOPES, usePageStates } from '../../support/page-states.ts'

const { pds, freshPage, openRequest, pages } = usePageStates()
const { onEveryScreen } = usePageChecks(pds)

test.each(Object.keys(pages).filter((name) => !name.startsWith('console')))(
  'the page %s fits on every screen and can be read',
  async (name) => {
    const page = await freshPage()
    await pages[name]!(page)
    expect(await onEveryScreen(name, page)).toEqual([])
  },
)

test('what programs call a permission is folded away', async () => {
  const page = await freshPage()
  await openRequest(page)
  const raw = page.getByText('repo:app.bsky.feed.threadgate', { exact: true })
  expect(await raw.isVisible()).toBe(false)
  await page.getByText('Technical details').click()
  for (const scope of SCOPES) expect(await page.getByText(scope, { exact: true }).isVisible()).toBe(true)
})
