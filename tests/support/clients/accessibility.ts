/** What keeps people from using a page, by the rules of WCAG 2.2, levels A and AA. The page must permit scripts. */
import axe from 'axe-core'
import type { Page } from 'playwright-core'

const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** Each fault with the elements that have it. */
export async function axeFaults(page: Page): Promise<string[]> {
  // Not a script of the page, so that its policy does not forbid it.
  if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axe.source)
  const found = (await page.evaluate(
    `axe.run({ runOnly: ${JSON.stringify(LEVELS)}, resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html.slice(0, 120)) })))`,
  )) as { id: string; nodes: string[] }[]
  return found.map(({ id, nodes }) => `${id}: ${nodes.join(' ')}`)
}
