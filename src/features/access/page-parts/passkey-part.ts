/** The part of a form that asks for a passkey. Hidden without scripts. */
import { asset } from '../../../http/asset.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { fieldTexts as texts } from './field-texts.ts'
import script from './passkeys.js' with { type: 'text' }

/** The script that a page with this part loads. */
export const passkeyScript = asset('/assets/passkeys.js', 'text/javascript', script)

/** The form field with the response of the authenticator; empty if no passkey was used. */
export const PASSKEY = 'passkey'

/** Returns the response of the authenticator; null if no passkey was used. */
export const passkeyAnswer = (form: URLSearchParams): string | null => form.get(PASSKEY) || null

interface PasskeyPart {
  /** Whether to create a passkey instead of using one. */
  makes?: boolean
  label?: Wording
  /** The field that the replaced button would send. */
  action?: { name: string; value: string }
  isPrimary?: boolean
}

/** `options` are those of `offerPasskey` or `beginPasskey`; null shows nothing. */
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
