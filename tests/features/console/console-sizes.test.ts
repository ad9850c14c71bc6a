/** Every page for operators, on screens of every width and in every language, with the longest names that there are. */
import { expect, test } from 'bun:test'
import { usePageChecks } from '../../support/page-checks.ts'
import { IN_ALL_LANGUAGES, usePageStates } from '../../support/page-states.ts'

const { pds, freshPage, pages } = usePageStates()
const { onEveryScreen, inEveryLanguage } = usePageChecks(pds)

test.each(Object.keys(pages).filter((name) => name.startsWith('console')))(
  'the page %s fits on every screen and can be read, and on the smallest in every language',
  async (name) => {
    const page = await freshPage()
    await pages[name]!(page)
    expect(await onEveryScreen(name, page)).toEqual([])
    if (IN_ALL_LANGUAGES.includes(name)) expect(await inEveryLanguage(name, page)).toEqual([])
  },
)
