/** Form fields that limit the scopes of an app password or a delegate, and scopes in words. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { scopePresets } from '../../../protocol/app-password-scopes.ts'
import { BASE_SCOPE, singleScope } from '../../../protocol/scopes.ts'
import { parseDatetime } from '../../../protocol/identifiers.ts'
import { wordsOf } from '../scope-words/scope-words.ts'
import type { AccessTerms } from '../sessions/sessions.ts'

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
 * Returns the terms that the form selects. If nothing is ticked or typed, the scopes are those that apps usually need.
 */
export function wantedTerms(form: URLSearchParams): AccessTerms {
  const [presets, scope, ends] = [form.getAll('preset'), (form.get('scope') ?? '').trim(), form.get('ends') ?? '']
  const isLimited = presets.length > 0 || scope !== ''
  const scopes = [scope, !isLimited && 'transition:generic', form.get('privileged') === 'yes' && 'transition:chat.bsky']
  const expiresAt = ends === '' ? null : (parseDatetime(`${ends}T23:59:59.999Z`) ?? 0)
  return { presets, scope: scopes.filter(Boolean).join(' '), expiresAt }
}
