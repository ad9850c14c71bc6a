/** A holder's signature on a change of the identity: made here with a secret key that is entered, or made elsewhere. */
import { parsedJson } from '../../../base/parsed-json.ts'
import { html, type Html } from '../../../http/html.ts'
import { signWithSecret, type MoveView } from '../../identity/migration/migration.ts'
import { field, hidden, type Fault } from '../page-parts/page-parts.ts'
import { ownKeyTexts as texts } from './own-key-texts.ts'

/** The operation to sign, as the page shows it. */
type Change = Pick<MoveView, 'operation' | 'agreement'>

/** Longest secret key that the form takes, in characters. A multikey has about fifty. */
const MAX_SECRET_CHARS = 200

/** Fields of a form that `holderSignature` reads. An entered secret key is never shown again. */
export const signatureFields = ({ operation, agreement }: Change, fault: Fault | null): Html => html`
${hidden({ agreement: agreement ?? '' })}
${field({ name: 'secret_key', label: texts.secretKey, type: 'password', maxLength: MAX_SECRET_CHARS, hint: texts.secretKeyHint, fault })}
<details${fault?.field === 'operation' && html` open`}>
  <summary>${texts.elsewhere}</summary>
  <div class="stack">
    <p class="quiet">${texts.elsewhereAbout}</p>
    <p class="copy">${JSON.stringify(operation)}</p>
    ${field({ name: 'operation', label: texts.signed, fault })}
  </div>
</details>`

/**
 * Returns the signed operation from the form, unverified, or the current operation signed with the secret key in the
 * form. Throws what `signWithSecret` and `change` throw.
 */
export async function holderSignature(form: URLSearchParams, change: () => Promise<Change>): Promise<unknown> {
  const secretKey = (form.get('secret_key') ?? '').trim()
  if (secretKey === '') return parsedJson(form.get('operation') ?? '')
  return signWithSecret(await change(), { secretKey, agreement: form.get('agreement') })
}
