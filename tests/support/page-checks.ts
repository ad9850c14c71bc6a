/** What pages on screens must not have, as a browser shows them. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import stylesheet from '../../src/http/style.css' with { type: 'text' }
import { languages } from '../../src/protocol/languages.ts'
import { axeFaults } from './clients/accessibility.ts'
import { freshPage, openBrowser } from './clients/browser.ts'
import { setUp } from './set-up.ts'

/** Where to put pictures of the pages, for somebody to look at; in which languages, beside English. */
const { SCREENSHOT_DIR, SCREENSHOT_LANGUAGES = '' } = process.env
if (SCREENSHOT_DIR) mkdirSync(SCREENSHOT_DIR, { recursive: true })

/** Heights by widths. */
const SCREENS = { 320: 640, 360: 740, 768: 1024, 1280: 900 }
/** The narrowest and the widest: what an auditor sees depends on the colours, and on which parts are beside others. */
const AUDITED = [
  { width: 320, colorScheme: 'light' },
  { width: 1280, colorScheme: 'dark' },
] as const
/** Of a page with its stylesheet, without pictures. */
const MAX_PAGE_BYTES = 60_000

export interface PageChecks {
  /** Returns the faults of a page on all screens, in light and dark. */
  onEveryScreen(name: string, page: Page): Promise<object[]>
  /** Returns the faults of a page on the smallest screen in all languages. It can be reloaded. */
  inEveryLanguage(name: string, page: Page): Promise<object[]>
}

/**
 * Starts an auditor for the tests of a file. It looks at copies of pages, one after another: with scripts, as it is
 * one, and in one document, in which the browser has compiled it.
 */
export function usePageChecks(pds: { readonly url: string }): PageChecks {
  const auditor = setUp(
    async () => {
      const page = await freshPage(await openBrowser(), { javaScriptEnabled: true })
      // Copies find the stylesheet of the server, and no policy forbids what they hold.
      await page.route('**/audited', (route) => route.fulfill({ contentType: 'text/html', body: '' }))
      await page.goto(`${pds.url}/audited`)
      return page
    },
    (page) => page.context().close(),
  )

  /** Faults by the rules of WCAG 2.2. The auditor must not meet the scripts of the page. */
  async function audited(original: Page, screens: readonly (typeof AUDITED)[number][] = AUDITED): Promise<object[]> {
    await auditor.setContent((await original.content()).replaceAll(/<script.*?<\/script>/gs, ''))
    const faults: object[] = []
    for (const { width, colorScheme } of screens) {
      await auditor.setViewportSize({ width, height: 900 })
      await auditor.emulateMedia({ colorScheme })
      for (const fault of await axeFaults(auditor)) faults.push({ width, colorScheme, fault })
    }
    return faults
  }

  return {
    async onEveryScreen(name, page) {
      // A form may still be on its way to the page that answers it.
      await page.waitForLoadState()
      await page.locator('body').waitFor()
      const bytes = Buffer.byteLength((await page.content()) + stylesheet)
      const faults: object[] = bytes < MAX_PAGE_BYTES ? [] : [{ bytes }]
      for (const [width, height] of Object.entries(SCREENS)) {
        await page.setViewportSize({ width: Number(width), height })
        // Nothing but colours depends on the scheme, and they do not depend on the width.
        for (const colorScheme of SCREENSHOT_DIR || width === '320'
          ? (['light', 'dark'] as const)
          : (['dark'] as const)) {
          await page.emulateMedia({ colorScheme })
          const found = faultsIn(await page.evaluate(measure))
          if (Object.keys(found).length > 0) faults.push({ width, colorScheme, ...found })
          await picture(page, `${name}-${width}-${colorScheme}`)
        }
      }
      return [...faults, ...(await audited(page))]
    },

    async inEveryLanguage(name, page) {
      const faults: object[] = []
      await page.setViewportSize({ width: 320, height: SCREENS[320] })
      for (const language of languages) {
        await page.context().addCookies([{ name: 'holdfast-language', value: language, url: pds.url }])
        await page.reload()
        await unfold(page)
        const shown = await page.locator('html').getAttribute('lang')
        const found = faultsIn(await page.evaluate(measure))
        if (shown !== language || Object.keys(found).length > 0) faults.push({ language, shown, ...found })
        await pictures(page, name, language)
        if (language === 'de') faults.push(...(await audited(page, [AUDITED[0]])))
      }
      return faults
    },
  }

  /** On all screens in a language that is to be looked at, else on the smallest. */
  async function pictures(page: Page, name: string, language: string): Promise<void> {
    if (!SCREENSHOT_LANGUAGES.split(',').includes(language)) return picture(page, `${name}-${language}`)
    for (const [width, height] of Object.entries(SCREENS)) {
      await page.setViewportSize({ width: Number(width), height })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await picture(page, `${name}-${language}-${width}-${colorScheme}`)
      }
    }
    await page.setViewportSize({ width: 320, height: SCREENS[320] })
  }
}

async function picture(page: Page, name: string): Promise<void> {
  if (SCREENSHOT_DIR) await page.screenshot({ path: join(SCREENSHOT_DIR, `${name}.png`), fullPage: true })
}

export const unfold = (page: Page): Promise<unknown> =>
  page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true })')

/** The measures of a page without faults. */
const fits: Measures = {
  overflow: 0,
  outside: [],
  clipped: [],
  repeatedIds: [],
  unnamed: [],
  small: [],
  narrow: [],
  faint: [],
  plainLinks: [],
  headings: 1,
}

/** The measures that differ. */
const faultsIn = (measures: Measures): object =>
  Object.fromEntries(
    Object.entries(measures).filter(([name, value]) => !Bun.deepEquals(value, fits[name as keyof Measures])),
  )

interface Measures {
  /** How far the page can be scrolled sideways. */
  overflow: number
  /** What reaches beyond the edge of the screen. */
  outside: string[]
  /** What holds more than it shows. */
  clipped: string[]
  repeatedIds: string[]
  /** Controls without a name. */
  unnamed: string[]
  /** Buttons that are hard to hit. */
  small: string[]
  /** Fields that show less than a dozen letters. */
  narrow: string[]
  /** Text without the contrast of WCAG 2.2, 1.4.3. */
  faint: string[]
  /** Links of a list that look like text: nothing but their colour tells them. */
  plainLinks: string[]
  headings: number
}

/** Runs in the page. The compiler of the tests knows no DOM. */
const measure = `(() => {
  const all = [...document.body.querySelectorAll('*')].filter((one) => one.getClientRects().length > 0)
  const label = (one) => one.tagName.toLowerCase() + '.' + one.className + ' ' + one.textContent.trim().slice(0, 30)
  // What color-mix() computes is color(srgb …), with channels from 0 to 1.
  const channels = (colour) => colour.match(/[\\d.]+/g).map((part, i) => (colour.startsWith('color(') && i < 3 ? part * 255 : Number(part)))
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((value) => { const part = value / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4 })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) { const colour = getComputedStyle(at).backgroundColor; if ((channels(colour)[3] ?? 1) === 1) return colour }
    return getComputedStyle(document.body).backgroundColor
  }
  const contrast = (one) => {
    const [light, dark] = [luminance(getComputedStyle(one).color), luminance(ground(one))].sort((a, b) => b - a)
    return (light + 0.05) / (dark + 0.05)
  }
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '')
  // An underline does not pass into an inline block.
  const isUnderlined = (link, at) => {
    for (; ; at = at.parentElement) {
      if (getComputedStyle(at).textDecorationLine.includes('underline')) return true
      if (at === link || getComputedStyle(at).display === 'inline-block') return false
    }
  }
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id)
  return {
    overflow: Math.max(0, document.scrollingElement.scrollWidth - innerWidth),
    outside: all.filter((one) => { const { left, right } = one.getBoundingClientRect(); return right > innerWidth + 0.5 || left < -0.5 }).map(label),
    clipped: all.filter((one) => !['INPUT', 'SELECT', 'OPTION'].includes(one.tagName) && getComputedStyle(one).display !== 'inline' && one.scrollWidth > one.clientWidth + 1).map(label),
    repeatedIds: ids.filter((id, i) => ids.indexOf(id) !== i),
    unnamed: [...document.querySelectorAll('input:not([type=hidden]), select, button, a')].filter((one) => !(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())).map(label),
    small: all.filter((one) => one.matches('button, .button, input[type=text], input[type=password], input[type=email], input[type=date], select') && one.getBoundingClientRect().height < 36).map(label),
    narrow: all.filter((one) => one.matches('input[type=text], input[type=password], input[type=email]') && one.clientWidth < 150).map((one) => one.name),
    faint: all.filter((one) => hasText(one) && contrast(one) < 4.5).map(label),
    plainLinks: [...document.querySelectorAll('li a')].filter((link) => !link.matches('.button') && [link, ...link.querySelectorAll('*')].some((one) => hasText(one) && !isUnderlined(link, one))).map(label),
    headings: document.querySelectorAll('h1').length,
  }
})()` as unknown as () => Measures
