/**
 * The part of the identity page with which people put a key of their own above the key of this server: the key of a
 * wallet, or a key that is made for them and shown once, before it is added.
 */
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import type { Endpoint } from '../../../http/endpoint.ts'
import { newSigningSecret, openSigningKey } from '../../../platform/secrets/signing-keys.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey, parseDidKey } from '../../../protocol/keys.ts'
import { formatSecretMultikey } from '../../../protocol/secret-multikey.ts'
import { addOwnKey } from '../../identity/account-changes/account-changes.ts'
import { chargeMail, requestCode } from '../../identity/mails/mails.ts'
import { accountForm } from './account-view.ts'
import { formAddress } from './form-page.ts'
import {
  codeField,
  errorNote,
  faultAt,
  faultOf,
  faultTexts,
  field,
  goodNote,
  hidden,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderForm, type Holder } from '../pages/pages.ts'
import { addedKeyTexts as texts } from './added-key-texts.ts'

const PATH = 'identity/own-key'
const CURVE = 'p256'

/** The progress of adding a key. */
export type OwnKey =
  /** Nothing has begun yet. `publicKey`: the key that was typed. */
  | { stage: 'ask'; publicKey: string; fault: Fault | null }
  /**
   * A code was mailed. `secretKey`: the key that was just made; null if it is the person's own, or was shown before.
   */
  | { stage: 'code'; publicKey: string; secretKey: string | null; fault: Fault | null }
  | { stage: 'done' }

export const noOwnKey: OwnKey = { stage: 'ask', publicKey: '', fault: null }

export const ownKeyPart = (holder: Holder, ownKey: OwnKey): Html => html`
<section class="card" id="own-key">
  <div class="tight">
    <h2>${texts.title}</h2>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${content(holder, ownKey)}
</section>`

function content(holder: Holder, ownKey: OwnKey): Html {
  switch (ownKey.stage) {
    case 'ask':
      return asking(holder, ownKey)
    case 'code':
      return confirming(holder, ownKey)
    case 'done':
      return html`${goodNote(texts.done)}`
  }
}

const asking = (holder: Holder, { publicKey, fault }: OwnKey & { stage: 'ask' }): Html => html`
${errorNote(fault)}
<p>${texts.codeNeeded}</p>
${accountForm(
  holder,
  `${PATH}/begin`,
  html`<div><button>${texts.make}</button></div><p class="quiet">${texts.shownOnce}</p>`,
)}
<details${publicKey !== '' && html` open`}>
  <summary>${texts.useWallet}</summary>
  ${accountForm(
    holder,
    `${PATH}/begin`,
    html`
  ${field({ id: 'own-key-public', name: 'wallet_key', label: texts.walletKey, value: publicKey, required: true, maxLength: 200, hint: texts.walletKeyHint, fault })}
  <div><button>${texts.sendCode}</button></div>`,
  )}
</details>`

const confirming = (holder: Holder, { publicKey, secretKey, fault }: OwnKey & { stage: 'code' }): Html => html`
${errorNote(fault) ?? goodNote(texts.codeSent)}
${
  secretKey !== null &&
  html`
<div class="note warn">
  <p>${texts.secret}</p>
  <p class="secret">${secretKey}</p>
</div>`
}
<dl class="facts"><div><dt>${texts.toAdd}</dt><dd class="copy">${publicKey}</dd></div></dl>
${accountForm(
  holder,
  PATH,
  html`
${hidden({ wallet_key: publicKey })}
${codeField({ id: 'own-key-code', fault })}
<p class="quiet">${texts.warning}</p>
<div><button class="primary">${texts.add}</button></div>`,
)}`

type Show = (call: PageCall, holder: Holder, ownKey: OwnKey) => Promise<Response>

async function begin(call: PageCall, { account: { did } }: Holder, form: URLSearchParams): Promise<OwnKey> {
  const typed = form.get('wallet_key')?.trim() ?? null
  if (typed !== null && parseDidKey(typed) === null)
    return { stage: 'ask', publicKey: typed, fault: faultAt('wallet_key', faultTexts.walletKey) }
  const fault = await sendCode(call, did)
  if (fault) return { stage: 'ask', publicKey: typed ?? '', fault }
  if (typed !== null) return { stage: 'code', publicKey: typed, secretKey: null, fault: null }
  const secret = newSigningSecret(CURVE)
  const publicKey = formatDidKey(openSigningKey(CURVE, secret).publicKey)
  return { stage: 'code', publicKey, secretKey: formatSecretMultikey(CURVE, secret), fault: null }
}

const sendCode = (call: PageCall, did: Did): Promise<Fault | null> =>
  faultOf(async () => {
    await chargeMail(call, did, 'plc_operation')
    await requestCode(call, did, 'plc_operation')
  })

async function add(call: PageCall, { account: { did } }: Holder, form: URLSearchParams): Promise<OwnKey> {
  const publicKey = (form.get('wallet_key') ?? '').trim()
  const fault = await faultOf(async () => {
    await charge(call, 'updateHandle')
    return addOwnKey(call, did, { publicKey, code: (form.get('code') ?? '').trim() })
  })
  return fault === null ? { stage: 'done' } : { stage: 'code', publicKey, secretKey: null, fault }
}

/** `show` renders the identity page with this part in its present stage. */
export const ownKeyForms = (show: Show): Endpoint[] => [
  ...[PATH, `${PATH}/begin`].map((path) => formAddress(`/account/${path}`, '/account/identity#own-key')),
  holderForm(`/account/${PATH}/begin`, async (call, holder, form) =>
    show(call, holder, await begin(call, holder, form)),
  ),
  holderForm(`/account/${PATH}`, async (call, holder, form) => show(call, holder, await add(call, holder, form))),
]
