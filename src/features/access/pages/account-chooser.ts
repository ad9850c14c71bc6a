/** The part of a form in which people choose among the accounts that are signed in on their browser. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { accountName, fieldTexts } from '../page-parts/page-parts.ts'
import type { Device, SignedIn } from './devices.ts'

interface Choosing {
  /** The DID that is ticked, or `other`. */
  chosen: string
  /** What the holder has to do before the sign-in suffices; null if it does. */
  missing(signedIn: SignedIn): Wording | null
  /** Accounts for which the person may act, as further choices below their own. */
  shared?(signedIn: SignedIn): readonly SharedChoice[]
}

interface SharedChoice {
  value: string
  name: Wording
  note: Wording
}

/** Most accounts that are shown at first, the chosen one at the top. The others can be unfolded. */
const MAX_SHOWN = 3

/** Lists the accounts, and the choice to sign in with another one. */
export function accountChooser(device: Device, { chosen, missing, shared = () => [] }: Choosing): Html {
  const isChosen = (signedIn: SignedIn) =>
    signedIn.account.did === chosen || shared(signedIn).some(({ value }) => value === chosen)
  const ordered = [...device.known.filter(isChosen), ...device.known.filter((signedIn) => !isChosen(signedIn))]
  const shown = ordered.length > MAX_SHOWN + 1 ? ordered.slice(0, MAX_SHOWN) : ordered
  const folded = ordered.slice(shown.length)
  const choices = (some: readonly SignedIn[]) =>
    some.map((signedIn) => [
      accountChoice(signedIn, chosen, missing(signedIn)),
      shared(signedIn).map((choice) => sharedChoice(choice, signedIn, chosen, missing(signedIn))),
    ])
  return html`
<fieldset>
  <legend>${fieldTexts.chooseAccount}</legend>
  <div class="accounts">
    ${choices(shown)}
    ${folded.length > 0 && html`<details class="more"><summary>${fieldTexts.more({ count: folded.length })}</summary><div class="accounts">${choices(folded)}</div></details>`}
    <label class="account">
      <input class="other" type="radio" name="account" value="other"${chosen === 'other' && html` checked`}>
      <span class="who"><span>${fieldTexts.anotherAccount}</span></span>
    </label>
  </div>
</fieldset>`
}

/**
 * The choice of one account. If its sign-in does not suffice, an account without a password has to be chosen in its
 * wallet.
 */
const accountChoice = ({ account }: SignedIn, chosen: string, missing: Wording | null): Html => html`
<label class="account">
  <input type="radio" name="account" value="${account.did}"${missing !== null && account.hasPassword && html` class="stale"`}${chosen === account.did && html` checked`}>
  <span class="who">
    <span>${accountName(account)}</span>
    ${missing !== null && html`<small>${missing}</small>`}
  </span>
</label>`

/** The choice of a shared account. It requires the same of the acting person as the choice of their own account. */
const sharedChoice = (
  { value, name, note }: SharedChoice,
  { account: { hasPassword } }: SignedIn,
  chosen: string,
  missing: Wording | null,
): Html => html`
<label class="account">
  <input type="radio" name="account" value="${value}"${missing !== null && hasPassword && html` class="stale"`}${chosen === value && html` checked`}>
  <span class="who">
    <span>${name}</span>
    <small>${note}</small>
    ${missing !== null && html`<small>${missing}</small>`}
  </span>
</label>`

/** Returns the chosen account among those of the chooser; null if the form names none of them. */
export function chosenAccount(device: Device | null, form: URLSearchParams): SignedIn | null {
  const did = parseDid(form.get('account') ?? '')
  return device?.known.find(({ account }) => account.did === did) ?? null
}
