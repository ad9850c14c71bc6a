/** How pages show what somebody is asked to allow. */
import { html, type Html } from '../../http/html.ts'
import type { ExpandedScope } from '../../protocol/scopes.ts'
import { wordsOf } from './scope-words.ts'

const tick = html`<svg class="tick" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d="M4 10.5l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`

export function scopeInWords(scope: ExpandedScope): Html {
  const { what, more, isGrave, parts } = wordsOf(scope)
  return html`
<span class="body">
  <span class="what">${what}</span>
  <span class="more">${isGrave && html`<strong class="grave">Far-reaching.</strong> `}${more}</span>
  ${parts.map((part) => html`<span class="more">• ${part.what}</span>`)}
</span>`
}

/** A scope that is granted together with the others, as an item of a list. */
export const fixedScope = (scope: ExpandedScope): Html => html`<li class="permission">${tick}${scopeInWords(scope)}</li>`
