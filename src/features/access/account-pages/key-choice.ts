/**
 * The rotation keys of an identity that moves here, in the order of rank: the keys that stay, and those that are
 * removed.
 */
import { html, type Html } from '../../../http/html.ts'
import type { KeyChanges, NamedKey } from '../../identity/migration/migration.ts'
import { ownKeyTexts as texts } from './own-key-texts.ts'

/**
 * Form fields in which the holder ticks the keys to keep. If `given` is an earlier submission of this form, its ticks
 * are kept. `chosenKeys` reads the fields.
 */
export function keyChoice(keys: KeyChanges, given: URLSearchParams | null = null): Html {
  const shown = keys.stay.filter(({ isChoice }) => isChoice).map(({ key }) => key)
  const ticked = new Set(given !== null && isAnswer(given) ? given.getAll('keep_key') : shown)
  const listOf = (some: readonly NamedKey[]) => html`<ul class="list">${some.map((key) => row(key, ticked))}</ul>`
  return html`
<h3>${texts.keysStay}</h3>
${listOf(keys.stay)}
<h3>${texts.keysGo}</h3>
${keys.go.length === 0 ? html`<p class="quiet">${texts.none}</p>` : listOf(keys.go)}
${hasChoice(keys) && html`<p class="quiet">${texts.tick}</p>`}
${shown.map((key) => html`<input type="hidden" name="shown_key" value="${key}">`)}`
}

const isAnswer = (form: URLSearchParams): boolean => form.has('keep_key') || form.has('shown_key')

export const hasChoice = ({ stay, go }: KeyChanges): boolean => [...stay, ...go].some(({ isChoice }) => isChoice)

function row({ key, owner, isChoice }: NamedKey, ticked: ReadonlySet<string>): Html {
  const words = html`${texts[owner]}<br><code>${key}</code>`
  return html`
<li>
  <div class="body">
    ${isChoice ? html`<label class="check"><input type="checkbox" name="keep_key" value="${key}"${ticked.has(key) && html` checked`}><span>${words}</span></label>` : html`<p>${words}</p>`}
  </div>
</li>`
}

/** Returns the ticked keys; undefined if they are the keys that were ticked when the form was first shown. */
export function chosenKeys(form: URLSearchParams): string[] | undefined {
  const [shown, ticked] = [new Set(form.getAll('shown_key')), new Set(form.getAll('keep_key'))]
  return shown.symmetricDifference(ticked).size === 0 ? undefined : [...ticked]
}
