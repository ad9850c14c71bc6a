/** Form fields that limit the scopes of an app password or a delegate, and scopes in words. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { scopePresets } from '../../../protocol/app-password-scopes.ts'
import { BASE_SCOPE, singleScope } from '../../../protocol/scopes.ts'
import { parseDatetime, type Millis } from '../../../protocol/identifiers.ts'
import { wordsOf } from '../scope-words/scope-words.ts'

const scopeLine = (scope: string): Html => html`<li><small>${wordsOf(singleScope(scope)).what}</small></li>`

/** What the scopes allow, folded away under a summary. */
export function foldedScopes(summary: Wording, scope: string): Html {
  const values = scope.split(' ')
  const shown = values.filter((value) => value !== BASE_SCOPE || values.length === 1)
  return html`<details><summary><small>${summary}</small></summary><ul>${shown.map(scopeLine)}</ul></details>`
}

/** A box for a preset. It stays ticked as in the form that was just sent. */
const presetBox = ([preset, scope]: [string, string], typed: URLSearchParams | null | undefined): Html => html`
      <label class="check"><input type="checkbox" name="preset" value="${preset}"${typed?.has('preset', preset) && html` checked`}><span>${wordsOf(singleScope(scope)).what}</span></label>`

export const presetBoxes = (typed: URLSearchParams | null | undefined): Html[] =>
  Object.entries(scopePresets).map((preset) => presetBox(preset, typed))

/**
 * Returns the scopes that the form selects. If nothing is ticked or typed, these are the scopes that apps usually need.
 */
export function wantedLimits(form: URLSearchParams): {
  presets: string[]
  scope: string
  expiresAt: Millis | null
} {
  const [presets, scope, ends] = [form.getAll('preset'), (form.get('scope') ?? '').trim(), form.get('ends') ?? '']
  const isLimited = presets.length > 0 || scope !== ''
  const scopes = [scope, !isLimited && 'transition:generic', form.get('privileged') === 'yes' && 'transition:chat.bsky']
  const expiresAt = ends === '' ? null : (parseDatetime(`${ends}T23:59:59.999Z`) ?? 0)
  return { presets, scope: scopes.filter(Boolean).join(' '), expiresAt }
}
