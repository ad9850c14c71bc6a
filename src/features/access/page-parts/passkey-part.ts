/** The part of a form that asks for a passkey. Browsers that run no script do not show it. */
import { asset } from '../../../http/asset.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { fieldTexts as texts } from './field-texts.ts'
import script from './passkeys.js' with { type: 'text' }

/** What a page with such a part loads. */
export const passkeyScript = asset('/assets/passkeys.js', 'text/javascript', script)

/** The field in which the answer of a device arrives; empty if no passkey was used. */
export const PASSKEY = 'passkey'

/** Returns the answer of a device in a form; null if no passkey was used. */
export const passkeyAnswer = (form: URLSearchParams): string | null => form.get(PASSKEY) || null

interface PasskeyPart {
  /** Whether the device makes a passkey, instead of using one. */
  makes?: boolean
  label?: Wording
  /** What the form sends beside, as with the button that it stands for. */
  action?: { name: string; value: string }
  isPrimary?: boolean
}

/** `options` are what the browser needs, those of `offerPasskey` or `beginPasskey`; null shows nothing. */
export const passkeyPart = (
  options: object | null,
  { makes = false, label = texts.usePasskey, action, isPrimary = false }: PasskeyPart = {},
): Html | null =>
  options &&
  html`
<div class="stack" data-passkey="${makes ? 'create' : 'get'}" data-options="${JSON.stringify(options)}" hidden>
  <p class="note error" role="alert" hidden>${makes ? texts.passkeyNotMade : texts.passkeyNotUsed}</p>
  <input type="hidden" name="${PASSKEY}" value="">
  <div class="actions"><button${isPrimary && html` class="primary"`}${!makes && html` formnovalidate`}${action && html` name="${action.name}" value="${action.value}"`}>${label}</button></div>
</div>`
