/** Requests that failed or were refused, and the search for one by its id. */
import { html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import { bodyOf, framed, inEnglish, listOf, minuteOf, moreLink, noteRow, refusalNote } from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { roomsTexts as texts } from './rooms-texts.ts'

const ROWS = 25
const MAX_ID_CHARS = 36

interface Requests {
  requests: { id: string; at: string; method: string; route: string; status: number; error: string }[]
  cursor?: string
}

const kinds = { '': texts.both, failed: texts.failed, refused: texts.refused } as const

export async function requestsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const id = (searchParams.get('id') ?? '').trim().slice(0, MAX_ID_CHARS)
  const kind = searchParams.get('kind') ?? ''
  const query = new URLSearchParams({ limit: String(ROWS), id, kind, cursor: searchParams.get('cursor') ?? '' })
  const answer = await ask(desk, `/v1/admin/requests?${query}`)
  const { requests, cursor } = bodyOf<Requests>(answer, { requests: [] })
  return framed(desk, {
    title: consoleTexts.requests,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${texts.requestsAbout}</p>
  <form method="get" action="/admin/requests" class="stack">
    ${field({ name: 'id', label: texts.requestId, value: id, maxLength: MAX_ID_CHARS })}
    <div class="field">
      <label for="kind">${texts.whatHappened}</label>
      <select id="kind" name="kind">${Object.entries(kinds).map(([one, label]) => html`<option value="${one}"${one === kind && html` selected`}>${label}</option>`)}</select>
    </div>
    <div><button>${consoleTexts.search}</button></div>
  </form>
  ${listOf(
    requests.map(({ id: found, at, method, route, status, error }) =>
      noteRow(html`${status} ${inEnglish(error)}`, [
        html`<code>${method} ${route}</code>`,
        texts.idAndTime({
          request: found,
          time: minuteOf(at),
          id: (words) => html`<code>${words}</code>`,
        }),
      ]),
    ),
    texts.noRequests,
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}
