/**
 * Pages for people: one layout and one stylesheet, no third-party scripts or requests, and no embedding in frames of
 * other sites.
 */
import type { Config } from '../platform/configuration/config.ts'
import { languageNames, languages, type Language } from '../protocol/languages.ts'
import { WholeResponse } from './encoding.ts'
import { isRead, type Exchange } from './endpoint.ts'
import { html, htmlIn, type Html, type Wording } from './html.ts'
import { layoutTexts } from './layout-texts.ts'
import { LANGUAGE_HEADERS, pageLanguage } from './page-language.ts'
import { LOGO_PATH, stylesheetUrl } from './brand.ts'

/** `styles` is the origin of the stylesheet. */
const policy = (styles: string) =>
  `default-src 'none'; style-src ${styles}; script-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'`

export interface Page {
  title: Wording
  body: Html
  status?: number
  /** A form may end in a redirect to another origin, which browsers would block under `form-action`. */
  leavesOrigin?: boolean
  /** A wider layout, for pages with lists. */
  wide?: boolean
  /** URLs of scripts of ours that improve the page; the page works without them. */
  script?: string | readonly string[]
  /**
   * Origin of the layout's links and stylesheet, for a page on a host that is not ours; empty for the requested host.
   */
  origin?: string
  headers?: Record<string, string>
  /** The language that an app asked for. */
  language?: Language | null
}

/** Who asked for a page, and how. */
export type PageAsker = Pick<Exchange, 'ctx' | 'request'>

/** Returns the page in the language of the person who asks. */
export async function page(asker: PageAsker, shown: Page): Promise<Response> {
  const { config } = asker.ctx
  const language = pageLanguage(asker, shown.language)
  const text = await htmlIn(layout(config, shown, language, asker.request), language)
  return response(config, { ...shown, headers: { Vary: LANGUAGE_HEADERS, ...shown.headers } }, text)
}

const layout = (
  config: Config,
  { title, body, wide = false, script, origin = '' }: Page,
  language: Language,
  request: Request,
): Html => html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title} · ${config.serviceName}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${origin}${stylesheetUrl(config)}">
${[script ?? []].flat().map((url) => html`<script src="${url}" defer></script>`)}
</head>
<body>
<header class="top"><a href="${origin}/account" class="brand">${config.brand.logoFile === null || origin !== '' ? mark : html`<img class="mark" src="${LOGO_PATH}" alt="">`}<span>${config.serviceName}</span></a></header>
<main${wide ? html` class="wide"` : null}>${body}</main>
<footer class="bottom">${footer(config)}${isRead(request) && origin === '' && languageChoice(language, request)}</footer>
</body>
</html>
`

function response(
  config: Config,
  { status = 200, leavesOrigin = false, origin = '', headers = {} }: Page,
  text: string,
): Response {
  const rules = policy(origin || "'self'")
  return new WholeResponse(text, {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      Pragma: 'no-cache',
      'Content-Security-Policy': leavesOrigin ? rules : `${rules}; form-action 'self'`,
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
      'Cross-Origin-Resource-Policy': 'same-origin',
      // The opener of the page keeps no reference to it. Apps that sign in through a pop-up lose nothing: they hear
      // from the page at their own redirect URI, and deployed servers send the same header.
      'Cross-Origin-Opener-Policy': 'same-origin',
      ...(config.publicUrl.startsWith('https://') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
      ...headers,
    },
  })
}

/** The logo: roots that hold fast to a rock. */
const mark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false"><path d="M16 3v14M16 17c0 5-3 6-6 8M16 17c0 5 3 6 6 8M16 17v10M16 9c-4 0-6-2-6-5M16 12c4 0 6-2 6-5" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/><path d="M4 29h24" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/></svg>`

function footer({ publicUrl, links, contact }: Config): Html {
  return html`<span>${new URL(publicUrl).host}</span>
${links.termsOfService && html`<a href="${links.termsOfService}" rel="noreferrer">${layoutTexts.terms}</a>`}
${links.privacyPolicy && html`<a href="${links.privacyPolicy}" rel="noreferrer">${layoutTexts.privacy}</a>`}
${links.imprint && html`<a href="${links.imprint}" rel="noreferrer">${layoutTexts.imprint}</a>`}
${contact.email && html`<a href="mailto:${encodeURI(contact.email)}">${layoutTexts.contact}</a>`}`
}

/** Other languages, for a page that can be shown again: the answer to a form cannot. */
function languageChoice(current: Language, { url }: Request): Html {
  const { pathname, search } = new URL(url)
  const others = languages.filter((language) => language !== current)
  return html`
<details class="languages"><summary aria-label="${layoutTexts.language({ name: languageNames[current] })}">${languageNames[current]}</summary>
<form method="post" action="/language?${new URLSearchParams({ back: pathname + search }).toString()}">
${others.map((language) => html`<button class="link" name="language" value="${language}" lang="${language}">${languageNames[language]}</button>`)}</form>
</details>`
}
