/** How pages show requested permissions: one line for each, with its meaning folded away. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { BASE_SCOPE, type ExpandedScope } from '../../../protocol/scopes.ts'
import { wordsOf, type Words } from './scope-phrases.ts'
import { scopeTexts as texts } from './scope-texts.ts'
import type { SpaceNames } from './space-phrases.ts'

/**
 * Most lines that are shown at first. The others can be unfolded, so that a long request does not push the decision off
 * the screen.
 */
const MAX_LINES = 3

const tick = html`<svg class="tick" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d="M4 10.5l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`
const graveMark = html`<svg class="grave" viewBox="0 0 20 20" role="img" aria-label="${texts.graveMark}"><title>${texts.grave}</title><path d="M10 3 2 17h16zM10 8.5v3.5M10 14.3v.4" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>`

export interface PermissionLine extends Words {
  /** What a permission set allows; empty for any other permission. */
  parts: readonly Words[]
  /** The checkbox of a permission that can be declined; null for one that is granted together with the others. */
  control: Html | null
  isAlwaysShown?: boolean
}

/** `control` is the checkbox of the scope; null if it cannot be declined. */
export const scopeLine = (scope: ExpandedScope, control: Html | null, names?: SpaceNames): PermissionLine => ({
  ...wordsOf(scope, names),
  control,
  isAlwaysShown: scope.scope === BASE_SCOPE,
})

/**
 * Lists permissions; `note` is at the end of the folded part. Far-reaching permissions come first, so that they are not
 * folded away.
 */
export function permissionList(
  lines: readonly PermissionLine[],
  { legend, note }: { legend: Wording; note: Wording | null },
): Html {
  const rank = ({ isAlwaysShown, isGrave }: PermissionLine) => (isAlwaysShown ? 0 : isGrave ? 1 : 2)
  const ordered = lines.toSorted((a, b) => rank(a) - rank(b))
  const shown = ordered.length > MAX_LINES + 1 ? ordered.slice(0, MAX_LINES) : ordered
  const folded = ordered.slice(shown.length)
  return html`
<fieldset>
  <legend>${legend}</legend>
  <div class="permissions">
    <ul>${shown.map(line)}</ul>
    ${folded.length > 0 && html`<details class="more"><summary>${(folded.some(({ isGrave }) => isGrave) ? texts.moreGrave : texts.more)({ count: folded.length })}</summary><ul>${folded.map(line)}</ul></details>`}
    <details>
      <summary>${texts.meaning}</summary>
      <dl class="meanings">${ordered.map(meaning)}</dl>
      ${note !== null && html`<p class="quiet">${note}</p>`}
    </details>
  </div>
</fieldset>`
}

/** The title of a permission set is in its author's words, so what the set allows stands below it. */
function line({ what, isGrave, parts, control }: PermissionLine): Html {
  const words = html`<span class="what">${what}${parts.length > 0 && html` <small>${parts.map((part, i) => [i > 0 && ', ', part.what])}</small>`}</span>${isGrave && graveMark}`
  return control === null
    ? html`<li class="permission">${tick}${words}</li>`
    : html`<li><label class="permission">${control}${words}</label></li>`
}

const meaning = ({ what, more, isGrave, parts }: PermissionLine): Html => html`
<div>
  <dt>${what}</dt>
  <dd>${isGrave ? html`<span class="grave">${texts.graveSentence({ more })}</span>` : more}</dd>
  ${parts.map((part) => html`<dd>• ${part.what}</dd>`)}
</div>`
