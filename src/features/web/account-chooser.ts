/** The part of a form in which people choose among the accounts that are signed in on their browser. */
import { html, type Html } from '../../http/html.ts'
import { parseDid } from '../../protocol/identifiers.ts'
import type { Device, SignedIn } from './devices.ts'

interface Choosing {
  /** The DID that is ticked, or `other`. */
  chosen: string
  /** What the holder has to do before the sign-in counts; null if it counts. */
  missing(signedIn: SignedIn): string | null
}

/** Lists the accounts, and the choice to sign in with another one. */
export const accountChooser = ({ accounts }: Device, { chosen, missing }: Choosing): Html => html`
<fieldset>
  <legend>Choose an account</legend>
  <div class="accounts">
    ${accounts.map((signedIn) => accountChoice(signedIn, chosen, missing(signedIn)))}
    <label class="account">
      <input class="other" type="radio" name="account" value="other"${chosen === 'other' && html` checked`}>
      <span class="who"><span>Another account</span></span>
    </label>
  </div>
</fieldset>`

/** An account without a password is chosen in its wallet, once its sign-in does not suffice. */
const accountChoice = ({ account: { did, handle, hasPassword } }: SignedIn, chosen: string, missing: string | null): Html => html`
<label class="account">
  <input type="radio" name="account" value="${did}"${missing !== null && hasPassword && html` class="stale"`}${chosen === did && html` checked`}>
  <span class="who">
    <span>${handle ? `@${handle}` : did}</span>
    ${missing === null ? html`<code>${did}</code>` : html`<small>${missing}</small>`}
  </span>
</label>`

/** Returns the chosen account among those signed in on this browser; null if the form names none of them. */
export function chosenAccount(device: Device | null, form: URLSearchParams): SignedIn | null {
  const did = parseDid(form.get('account') ?? '')
  return device?.accounts.find(({ account }) => account.did === did) ?? null
}
