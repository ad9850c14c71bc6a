/** The configuration in force: the changed values, or one section. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { LIVE_COMMAND } from '../../../platform/configuration/live-values.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import { actForm, bodyOf, framed, inEnglish, listOf, noteRow, pieceOf, refusalNote } from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { roomsTexts as texts } from './rooms-texts.ts'

interface Key {
  name: string
  value: string | null
  from: string
  variable: string | null
  replacedBy: string | null
  meaning: string
}

const PATH = '/admin/configuration'
/** Where a value may come from, as the interface says it. */
const sources: Readonly<Record<string, Wording>> = {
  default: texts.sourceDefault,
  file: texts.sourceFile,
  'command line': texts.sourceCommandLine,
  environment: texts.sourceEnvironment,
  'run time': texts.sourceRunTime,
}
const GENERAL = 'general'
/** More keys than any section has. */
const KEYS = 60

function sectionOf({ name }: Key): string {
  const [section = '', key] = name.split('.')
  return key === undefined ? GENERAL : section
}

/** A value is replaced on the page of its section. */
export async function configurationPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/configuration')
  const { keys } = bodyOf<{ keys: Key[] }>(answer, { keys: [] })
  const sections = [...new Set(keys.map(sectionOf))]
  const asked = desk.call.url.searchParams.get('section')
  const section = sections.find((name) => name === asked) ?? null
  const { shown, more } = pieceOf(
    desk,
    keys.filter((key) => (section === null ? key.from !== 'default' : sectionOf(key) === section)),
    KEYS,
  )
  const link = (name: string | null, label: Wording | Html) =>
    html`<a href="${name === null ? PATH : `${PATH}?section=${name}`}"${name === section && html` aria-current="page"`}>${label}</a> `
  return framed(desk, {
    title: consoleTexts.configuration,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${texts.configurationAbout}</p>
  <nav class="links" aria-label="${texts.sections}">${link(null, texts.changedValues)}${sections.map((name) => link(name, inEnglish(name)))}</nav>
  <h2>${section === null ? texts.changedValues : inEnglish(section)}</h2>
  ${listOf(
    shown.map((key) => {
      const { name, value, variable, replacedBy, meaning } = key
      const source = sources[key.from] ?? texts.sourceUnknown
      return noteRow(
        section === null ? html`<a href="${PATH}?section=${sectionOf(key)}" lang="en">${name}</a>` : inEnglish(name),
        [
          html`<code>${value ?? texts.notSet}</code>`,
          variable === null ? texts.from({ source }) : texts.fromVariable({ source, variable }),
          replacedBy === null ? texts.needsRestart : texts.replacedBy({ command: html`<code>${replacedBy}</code>` }),
          section !== null && inEnglish(meaning),
        ],
        section !== null && replacedBy === LIVE_COMMAND
          ? actForm(desk, {
              id: name,
              act: 'configure',
              back: `${PATH}?section=${section}`,
              button: texts.replace,
              fields: { name },
              inputs: field({
                id: `${name}-value`,
                name: 'value',
                label: texts.newValue,
                hint: texts.newValueHint,
                maxLength: 2000,
              }),
            })
          : null,
      )
    }),
    texts.allDefaults,
  )}
  ${more}
</section>`,
  })
}
