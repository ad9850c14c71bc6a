/** Every page for account holders and strangers, on the smallest screen in every language. */
import { expect, test } from 'bun:test'
import { usePageChecks } from '../../support/page-checks.ts'
import { IN_ALL_LANGUAGES, usePageStates } from '../../support/page-states.ts'

const { pds, freshPage, pages } = usePageStates()
const { inEveryLanguage } = usePageChecks(pds)

test.each(IN_ALL_LANGUAGES.filter((name) => !name.startsWith('console')))(
  'the page %s fits on the smallest screen in every language',
  async (name) => {
    const page = await freshPage()
    await pages[name]!(page)
    expect(await inEveryLanguage(name, page)).toEqual([])
  },
)
