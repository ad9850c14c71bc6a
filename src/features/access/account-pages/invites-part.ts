/** The part of the account page with the invites that the account can give away. */
import { html, type Html } from '../../../http/html.ts'
import { partOf, type AccountView } from './account-view.ts'
import { detailsTexts as texts } from './details-texts.ts'

/** Returns null if there are none, for example because the server requires no invites. */
export function invitesPart(view: AccountView): Html | null {
  if (view.invites.length === 0) return null
  const { shown, more } = partOf(view, 'invites', view.invites)
  return html`
<section class="card" id="invites">
  <div class="tight"><h2>${texts.invites}</h2><p class="quiet">${texts.invitesLead}</p></div>
  <ul class="list">${shown.map(({ code, available, uses }) => html`<li><div class="body"><strong class="copy">${code}</strong>${available > 1 && html`<small>${texts.usesLeft({ left: available - uses.length, count: available })}</small>`}</div></li>`)}</ul>
  ${more}
</section>`
}
