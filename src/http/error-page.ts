/**
 * The page that a browser shows when a request is refused or fails: what happened, in plain words, and where to go
 * next.
 */
import type { Refusal } from './errors.ts'
import { html, inEnglish, type Html, type Wording } from './html.ts'
import { layoutTexts } from './layout-texts.ts'
import { page, type PageAsker } from './page.ts'

interface Words {
  title: Wording
  text: Html | Wording
}

const ourFault: Words = { title: layoutTexts.ourFaultTitle, text: layoutTexts.ourFault }

/** Messages that people meet on pages, by their English text. Other messages are not translated. */
const translated = new Map(
  [layoutTexts.formNotOurs, layoutTexts.requestGone, layoutTexts.ownTab].map((text) => [inEnglish(text), text]),
)
const inOwnWords = (message: string): Html | Wording =>
  translated.get(message) ?? html`<span lang="en">${message}</span>`

/** By status. Any other refusal shows its own message, which was written for the person who filled in the form. */
const words: Record<number, (refusal: Refusal, waitMinutes: number) => Words> = {
  404: () => ({ title: layoutTexts.notFoundTitle, text: layoutTexts.notFound }),
  405: () => ({ title: layoutTexts.notFoundTitle, text: layoutTexts.notOpenable }),
  413: () => ({ title: layoutTexts.tooLargeTitle, text: layoutTexts.tooLarge }),
  429: (_, minutes) => ({ title: layoutTexts.tooManyTitle, text: layoutTexts.wait({ count: minutes }) }),
  502: () => ({ title: ourFault.title, text: layoutTexts.dependencyDown }),
  503: ({ message }) => ({ title: ourFault.title, text: inOwnWords(message) }),
}

export interface ErrorPlace {
  path: string
  /** The id under which operators find the request; null if they do not. */
  id: string | null
  /** Address of the page whose form was refused, if the form may be sent once more; null if there is none. */
  retryAt: string | null
  /** Origin of the links on the page; empty for the requested host. */
  origin: string
  retryAfterSecs: number
}

/** Returns the page for a refusal, with its status and headers. `retryAfterSecs` is 0 if no wait is known. */
export function errorPage(
  asker: PageAsker,
  refusal: Refusal,
  { path, id, retryAt, origin, retryAfterSecs }: ErrorPlace,
): Promise<Response> {
  const { status, message, options } = refusal
  const fallback: Words = status >= 500 ? ourFault : { title: layoutTexts.refusedTitle, text: inOwnWords(message) }
  const { title, text } = words[status]?.(refusal, Math.max(1, Math.ceil(retryAfterSecs / 60))) ?? fallback
  return page(asker, {
    title,
    status,
    origin,
    headers: options.headers,
    body: html`
<section class="card">
  <h1>${title}</h1>
  <p>${text}</p>
  ${path.startsWith('/oauth/authorize') && retryAt === null && html`<p class="quiet">${layoutTexts.startAgain}</p>`}
  ${retryAt !== null && html`<div class="actions"><a class="button primary" href="${retryAt}">${layoutTexts.backToRequest}</a></div>`}
  ${id !== null && html`<p class="quiet">${layoutTexts.requestId({ id })}</p>`}
  <p class="links">${homeOf(asker, path, origin)} <a href="${origin}/">${layoutTexts.aboutServer}</a></p>
</section>`,
  })
}

/** Returns the link to the visitor's own pages, which are those of the console under its path. */
const homeOf = ({ ctx }: PageAsker, path: string, origin: string): Html =>
  ctx.config.console.enabled && /^\/admin(?:\/|$)/.test(path)
    ? html`<a href="${origin}/admin">${layoutTexts.console}</a>`
    : html`<a href="${origin}/account">${layoutTexts.yourAccount}</a>`
