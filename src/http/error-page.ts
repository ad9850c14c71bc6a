/**
 * The page that a browser shows when a request is refused or fails: what happened, in plain words, and where to go
 * next.
 */
import type { Config } from '../platform/configuration/config.ts'
import type { Refusal } from './errors.ts'
import { html } from './html.ts'
import { page } from './page.ts'

interface Words {
  title: string
  text: string
}

const ourFault: Words = {
  title: 'Something went wrong',
  text: 'The fault is on our side. Please try again in a moment.',
}

/** By status. Any other refusal shows its own message, which was written for the person who filled in the form. */
const words: Record<number, (refusal: Refusal, waitMinutes: number) => Words> = {
  404: () => ({
    title: 'Page not found',
    text: 'There is no page at this address. It may be mistyped, or the link may be old.',
  }),
  405: () => ({ title: 'Page not found', text: 'This address is not a page that can be opened.' }),
  413: () => ({
    title: 'Too large',
    text: 'What you sent is larger than this page accepts. Please go back and shorten it.',
  }),
  429: (_, minutes) => ({
    title: 'Too many attempts',
    text: `Please wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, then try again.`,
  }),
  502: () => ({
    title: ourFault.title,
    text: 'A service that this page depends on is not responding. Please try again in a moment.',
  }),
  503: ({ message }) => ({ title: ourFault.title, text: message }),
}

export interface ErrorPlace {
  path: string
  /** Address of the page whose form was refused, if the form may be sent once more; null if there is none. */
  retryAt: string | null
  /** Origin of the links on the page; empty for the requested host. */
  origin: string
  retryAfterSecs: number
}

/** Returns the page for a refusal, with its status and headers. `retryAfterSecs` is 0 if no wait is known. */
export function errorPage(
  config: Config,
  refusal: Refusal,
  { path, retryAt, origin, retryAfterSecs }: ErrorPlace,
): Response {
  const { status, message, options } = refusal
  const fallback: Words = status >= 500 ? ourFault : { title: 'This did not work', text: message }
  const { title, text } = words[status]?.(refusal, Math.max(1, Math.ceil(retryAfterSecs / 60))) ?? fallback
  return page(config, {
    title,
    status,
    origin,
    headers: options.headers,
    body: html`
<section class="card">
  <h1>${title}</h1>
  <p>${text}</p>
  ${path.startsWith('/oauth/authorize') && retryAt === null && html`<p class="quiet">If an app brought you here, go back to it and start again.</p>`}
  ${retryAt !== null && html`<div class="actions"><a class="button primary" href="${retryAt}">Back to the request</a></div>`}
  <p class="links"><a href="${origin}/account">Your account</a> <a href="${origin}/">About this server</a></p>
</section>`,
  })
}
