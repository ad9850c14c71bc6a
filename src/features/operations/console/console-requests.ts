/** Requests that failed or were refused, and the search for one by its id. */
import { html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import { framed, listOf, minuteOf, moreLink, noteRow, refusalNote } from './console-layout.ts'

const ROWS = 25
const MAX_ID_CHARS = 36

interface Requests {
  requests: { id: string; at: string; method: string; route: string; status: number; error: string }[]
  cursor?: string
}

const kinds = { '': 'both', failed: 'the server failed', refused: 'refused' } as const

export async function requestsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const id = (searchParams.get('id') ?? '').trim().slice(0, MAX_ID_CHARS)
  const kind = searchParams.get('kind') ?? ''
  const query = new URLSearchParams({ limit: String(ROWS), id, kind, cursor: searchParams.get('cursor') ?? '' })
  const answer = await ask(desk, `/v1/admin/requests?${query}`)
  const { requests, cursor } = answer.ok ? (answer.body as Requests) : { requests: [], cursor: undefined }
  return framed(desk, {
    title: 'Failed requests',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">Errors carry the id of their request, which people can tell you. What they sent is not kept; the log has lines with the same id if the server failed.</p>
  <form method="get" action="/admin/requests" class="stack">
    ${field({ name: 'id', label: 'Id of a request, or its beginning', value: id, maxLength: MAX_ID_CHARS })}
    <div class="field">
      <label for="kind">What happened</label>
      <select id="kind" name="kind">${Object.entries(kinds).map(([one, label]) => html`<option value="${one}"${one === kind && html` selected`}>${label}</option>`)}</select>
    </div>
    <div><button>Search</button></div>
  </form>
  ${listOf(
    requests.map(({ id: found, at, method, route, status, error }) =>
      noteRow(html`${status} ${error}`, [
        html`<span class="mono">${method} ${route}</span>`,
        html`<span class="mono">${found}</span>, ${minuteOf(at)}`,
      ]),
    ),
    'No such request is kept.',
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}
