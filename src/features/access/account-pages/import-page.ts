/** The page on which people restore their account from an archive of it. */
import { ZIP_MAGIC } from '../../../base/zip-magic.ts'
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { UploadedFile } from '../../../http/uploaded-form.ts'
import { importArchive, type Restored } from '../../data/account-archives/account-archives.ts'
import { isMoving } from '../../identity/migration/migration.ts'
import { requireNotTakendown } from '../auth/auth.ts'
import { accountForm, accountUrl, uploadForm } from './account-view.ts'
import { formAddress } from './form-page.ts'
import { importTexts as texts } from './import-texts.ts'
import { moveUrl } from './move-page.ts'
import {
  accountName,
  errorNote,
  faultAt,
  faultOf,
  fileField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderPage, holderUpload, holderUrl, provenForm, type Holder } from '../pages/pages.ts'

const ACTION = 'archive/import'
const PATH = `/account/${ACTION}`
/**
 * Action of the form that asks a holder with an old sign-in for proof. It comes before the upload, because that page
 * cannot carry a file along.
 */
const PROOF_ACTION = `${ACTION}/begin`

export const importUrl = (did: string): string => holderUrl(PATH, did)

const importPage = (call: PageCall, holder: Holder, fault: Fault | null): Promise<Response> =>
  page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.heading({ account: accountName(holder.account) })}</h1>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${errorNote(fault)}
  ${
    call.ctx.config.repos.importsEnabled
      ? importForm(holder, fault)
      : html`<p class="note warn" role="status">${texts.refused}</p>`
  }
  ${backLink(holder)}
</section>`,
  })

const backLink = ({ account }: Holder): Html =>
  html`<p class="links"><a href="${accountUrl(account.did)}">${texts.back}</a></p>`

const lines: readonly [title: Phrase, items: readonly Phrase[]][] = [
  [texts.isReplaced, [texts.replacedRecords, texts.replacedPreferences]],
  [texts.isAdded, [texts.addedBlobs]],
  [texts.stays, [texts.staysAccess]],
]

const importForm = (holder: Holder, fault: Fault | null): Html => html`
  ${lines.map(
    ([title, items]) => html`
  <section class="stack">
    <h2>${title}</h2>
    <ul class="findings">${items.map((item) => html`<li>${item}</li>`)}</ul>
  </section>`,
  )}
  ${holder.isProven ? fileForm(holder, fault) : accountForm(holder, PROOF_ACTION, html`<div class="actions"><button class="primary">${texts.proceed}</button></div>`)}`

const fileForm = (holder: Holder, fault: Fault | null): Html =>
  uploadForm(
    holder,
    ACTION,
    html`
  <label class="check"><input type="checkbox" name="sure" value="yes" required><span>${texts.sure}</span></label>
  ${fileField({ label: texts.file, accept: '.zip,application/zip', hint: texts.fileHint, fault })}
  <div class="actions"><button class="primary">${texts.restore}</button></div>`,
  )

const resultPage = (call: PageCall, holder: Holder, { hasRepo, blobs, preferences }: Restored): Promise<Response> =>
  page(call, {
    title: texts.restored,
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.restoredHeading({ account: accountName(holder.account) })}</h1>
    <p class="note good" role="status">${texts.restoredWhole}</p>
  </div>
  <dl class="facts">
    <div><dt>${texts.records}</dt><dd>${hasRepo ? texts.recordsReplaced : texts.recordsAsBefore}</dd></div>
    <div><dt>${texts.blobs}</dt><dd>${texts.blobsAdded({ added: blobs.stored, present: blobs.present })}</dd></div>
    <div><dt>${texts.preferences}</dt><dd>${texts.preferencesAdded({ added: preferences })}</dd></div>
  </dl>
  ${backLink(holder)}
</section>`,
  })

/** Returns null if the file is no ZIP file. */
async function restore(call: PageCall, { account: { did } }: Holder, file: UploadedFile): Promise<Restored | null> {
  await charge(call, { name: 'importAccount', key: did })
  await requireNotTakendown(call, did)
  return (await file.beginsWith(ZIP_MAGIC)) ? importArchive(call, did, file) : null
}

export const importPageRoutes: Endpoint[] = [
  holderPage(PATH, (call, holder) => importPage(call, holder, null)),
  provenForm(`/account/${PROOF_ACTION}`, async (_, { account: { did } }) => seeOther(importUrl(did))),
  formAddress(`/account/${PROOF_ACTION}`, PATH),
  holderUpload(PATH, async (call, holder, fields, file) => {
    if (await isMoving(call.ctx.db, holder.account.did)) return seeOther(moveUrl(holder.account.did))
    if (!holder.isProven) return importPage(call, holder, faultAt(null, texts.signedInLongAgo))
    if (file === null) return importPage(call, holder, faultAt('file', texts.chooseFile))
    if (fields.get('sure') !== 'yes') return importPage(call, holder, faultAt(null, texts.confirm))
    if (!call.ctx.config.repos.importsEnabled) return importPage(call, holder, faultAt(null, texts.refused))
    let restored: Restored | null = null
    const fault = await faultOf(async () => {
      restored = await restore(call, holder, file)
    })
    if (restored !== null) return resultPage(call, holder, restored)
    return importPage(call, holder, fault ?? faultAt('file', texts.noZip))
  }),
]
