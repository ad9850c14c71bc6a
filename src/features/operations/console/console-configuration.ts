/** The configuration in force: the changed values, or one section. */
import { html } from '../../../http/html.ts'
import { LIVE_COMMAND } from '../../../platform/configuration/live-values.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import { actForm, framed, listOf, noteRow, refusalNote } from './console-layout.ts'

interface Key {
  name: string
  value: string | null
  from: string
  variable: string | null
  replacedBy: string | null
  meaning: string
}

const PATH = '/admin/configuration'
const GENERAL = 'general'
function sectionOf({ name }: Key): string {
  const [section = '', key] = name.split('.')
  return key === undefined ? GENERAL : section
}

/** A value is replaced on the page of its section: with a form for each, the list of changed values has no bound. */
export async function configurationPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/configuration')
  const keys = answer.ok ? (answer.body as { keys: Key[] }).keys : []
  const sections = [...new Set(keys.map(sectionOf))]
  const asked = desk.call.url.searchParams.get('section')
  const section = sections.find((name) => name === asked) ?? null
  const shown = keys.filter((key) => (section === null ? key.from !== 'default' : sectionOf(key) === section))
  const link = (name: string | null, label: string) =>
    html`<a href="${name === null ? PATH : `${PATH}?section=${name}`}"${name === section && html` aria-current="page"`}>${label}</a> `
  return framed(desk, {
    title: 'Configuration',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">What this server works with now. Most values are read at the start; some are replaced while it runs, by the command named there.</p>
  <nav class="links" aria-label="Sections">${link(null, 'Changed values')}${sections.map((name) => link(name, name))}</nav>
  <h2>${section ?? 'Changed values'}</h2>
  ${listOf(
    shown.map((key) => {
      const { name, value, from, variable, replacedBy, meaning } = key
      return noteRow(
        section === null
          ? html`<a class="mono" href="${PATH}?section=${sectionOf(key)}">${name}</a>`
          : html`<span class="mono">${name}</span>`,
        [
          html`<span class="mono">${value ?? 'not set'}</span>`,
          html`from: ${from}${variable !== null && html`, ${variable}`}`,
          replacedBy === null ? 'A change requires a restart.' : `Replaced while the server runs by: ${replacedBy}`,
          section !== null && meaning,
        ],
        section !== null && replacedBy === LIVE_COMMAND
          ? actForm(desk, {
              id: name,
              act: 'configure',
              back: `${PATH}?section=${section}`,
              button: 'Replace',
              fields: { name },
              inputs: field({
                id: `${name}-value`,
                name: 'value',
                label: 'New value',
                hint: 'As in its environment variable: lists separated by commas. Leave it empty to reset it.',
                maxLength: 2000,
              }),
            })
          : null,
      )
    }),
    'All values are defaults.',
  )}
</section>`,
  })
}
