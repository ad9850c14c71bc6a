/** Passkeys on the page of factors: the list, and the page on which a device creates one. */
import { html, textIn, type Html, type Wording } from '../../../http/html.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { page } from '../../../http/page.ts'
import { pageLanguage } from '../../../http/page-language.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { MAX_PASSKEY_NAME_CHARS, type ListedFactors } from '../factors/factors.ts'
import type { Holder } from '../pages/pages.ts'
import {
  day,
  errorNote,
  field,
  hidden,
  passkeyPart,
  passkeyScript,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { accountForm } from './account-view.ts'
import { factorsTexts as texts } from './factors-texts.ts'

type Listed = ListedFactors['passkeys'][number]

export const passkeysPart = (holder: Holder, { passkeys, mayAddPasskey }: ListedFactors): Html => html`
<section class="card" id="passkeys">
  <div class="tight">
    <h2>${texts.passkeys}</h2>
    <p class="quiet">${texts.passkeyLead}</p>
  </div>
  ${passkeys.length > 0 && html`<ul class="list">${passkeys.map((passkey, i) => row(holder, passkey, `passkey-${i}`))}</ul>`}
  ${
    mayAddPasskey
      ? accountForm(
          holder,
          'factors',
          html`${hidden({ change: 'add-passkey' })}<div><button class="primary">${texts.addPasskey}</button></div>`,
        )
      : html`<p class="note">${passkeys.length > 0 ? texts.passkeysFull : texts.passkeysUnavailable}</p>`
  }
</section>`

/** When a factor was added, and when it was last used. */
export const usedWords = (addedAt: Millis, lastUsedAt: Millis | null): Wording =>
  lastUsedAt === null
    ? texts.unused({ added: day(addedAt) })
    : texts.used({ added: day(addedAt), used: day(lastUsedAt) })

function row(holder: Holder, passkey: Listed, id: string): Html {
  const { credentialId, name, createdAt, lastUsedAt, isSynced, isElsewhere } = passkey
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${usedWords(createdAt, lastUsedAt)}</small>
    ${isSynced && html`<small>${texts.synced}</small>`}
    ${isElsewhere && html`<small>${texts.elsewhere}</small>`}
    <details><summary>${texts.renameOf({ name })}</summary>${accountForm(
      holder,
      'factors',
      html`
${hidden({ change: 'rename-passkey', id: credentialId })}
${field({ id: `${id}-name`, name: 'name', label: texts.name, value: name, required: true, maxLength: MAX_PASSKEY_NAME_CHARS })}
<div><button class="small">${texts.rename}</button></div>`,
    )}</details>
  </div>
  ${accountForm(holder, 'factors', html`${hidden({ change: 'remove-passkey', id: credentialId })}<button class="small danger" aria-label="${texts.removeOf({ name })}">${texts.remove}</button>`)}
</li>`
}

interface NewPasskeyView {
  /** The page of factors. */
  action: string
  options: object
  fault: Fault | null
}

export async function newPasskeyPage(
  call: PageCall,
  { account, device }: Holder,
  { action, options, fault }: NewPasskeyView,
): Promise<Response> {
  const { openedWith } = requestOrigin(call)
  const program = openedWith === null ? texts.unknownDevice : programPhrase(openedWith)
  const name = await textIn(program, pageLanguage(call))
  return page(call, {
    title: texts.addPasskey,
    status: fault?.status,
    script: passkeyScript.url,
    body: html`
<form method="post" action="${action}" class="card ask">
  ${hidden({ form_token: device.formToken, account: account.did, change: 'confirm-passkey' })}
  <div class="tight">
    <h1>${texts.addPasskey}</h1>
    <p class="quiet">${texts.addPasskeyLead}</p>
  </div>
  ${errorNote(fault)}
  ${field({ name: 'name', label: texts.name, value: name, required: true, maxLength: MAX_PASSKEY_NAME_CHARS })}
  <p class="note" data-no-passkey>${texts.needsScript}</p>
  ${passkeyPart(options, { makes: true, label: texts.makePasskey, isPrimary: true })}
  <p class="links"><a href="${action}">${texts.cancel}</a></p>
</form>`,
  })
}
