/**
 * Pages for people: one frame, one stylesheet, no scripts of others, nothing that tells third parties that somebody is
 * here, and no way to put a page into another one.
 */
import { createHash } from 'node:crypto'
import type { Config } from '../platform/configuration/config.ts'
import { route } from './endpoint.ts'
import { html, type Html } from './html.ts'
import style from './style.css' with { type: 'text' }

const STYLE_PATH = '/assets/style.css'
/** The address changes with the content, so it may be kept for ever. */
const STYLE_URL = `${STYLE_PATH}?v=${createHash('sha256').update(style).digest('hex').slice(0, 16)}`

/** `styles` is the origin of the stylesheet. */
const policy = (styles: string) =>
  `default-src 'none'; style-src ${styles}; script-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'`

export interface Page {
  title: string
  body: Html
  status?: number
  /** Forms may lead to other origins by a redirect; browsers would hold `form-action` against that. */
  leavesOrigin?: boolean
  /** More room, for pages with lists. */
  wide?: boolean
  /** Where links of the frame lead and the stylesheet comes from, on a host that is not ours; empty for the host that was asked. */
  origin?: string
  headers?: Record<string, string>
}

export function page(config: Config, { title, body, status = 200, leavesOrigin = false, wide = false, origin = '', headers = {} }: Page): Response {
  const rules = policy(origin || "'self'")
  const text = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title} · ${config.serviceName}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${origin}${STYLE_URL}">
</head>
<body>
<header class="top"><a href="${origin}/account" class="brand">${mark}<span>${config.serviceName}</span></a></header>
<main${wide ? html` class="wide"` : null}>${body}</main>
<footer class="bottom">${footer(config)}</footer>
</body>
</html>
`.text
  return new Response(text, {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      Pragma: 'no-cache',
      'Content-Security-Policy': leavesOrigin ? rules : `${rules}; form-action 'self'`,
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Cross-Origin-Resource-Policy': 'same-origin',
      // Whoever opened the page keeps no hold on it. Apps that sign in by a pop-up, which deployed servers treat alike,
      // hear from the page at their own redirect address.
      'Cross-Origin-Opener-Policy': 'same-origin',
      ...(config.publicUrl.startsWith('https://') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
      ...headers,
    },
  })
}

/** The logo: a root that holds on to its rock. */
const mark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false"><path d="M16 3v14M16 17c0 5-3 6-6 8M16 17c0 5 3 6 6 8M16 17v10M16 9c-4 0-6-2-6-5M16 12c4 0 6-2 6-5" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/><path d="M4 29h24" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/></svg>`

function footer({ publicUrl, links, contact }: Config): Html {
  return html`<span>${new URL(publicUrl).host}</span>
${links.termsOfService && html`<a href="${links.termsOfService}" rel="noreferrer">Terms</a>`}
${links.privacyPolicy && html`<a href="${links.privacyPolicy}" rel="noreferrer">Privacy</a>`}
${contact.email && html`<a href="mailto:${encodeURI(contact.email)}">Contact</a>`}`
}

export const stylesheet = route('GET', STYLE_PATH, {
  handler: () =>
    new Response(style, {
      headers: { 'Content-Type': 'text/css; charset=utf-8', 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' },
    }),
})
