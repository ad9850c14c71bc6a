/** The page on which people restore their account from an archive of it. */
import { ZIP_MAGIC } from '../../../base/zip-magic.ts'
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { UploadedFile } from '../../../http/uploaded-form.ts'
import { importArchive, type Restored } from '../../data/account-archives/account-archives.ts'
import { isMoving } from '../../identity/migration/migration.ts'
import { requireNotTakendown } from '../auth/auth.ts'
import { accountName, accountUrl, uploadForm } from './account-view.ts'
import { moveUrl } from './move-page.ts'
import {
  errorNote,
  faultAt,
  faultOf,
  fileField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderOf, holderUpload, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const ACTION = 'archive/import'
const PATH = `/account/${ACTION}`

export const importUrl = (did: string): string => `${PATH}?${new URLSearchParams({ account: did })}`

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const wanted = call.url.searchParams.get('account')
  const holder = await holderOf(call, wanted)
  return holder ? importPage(call, holder, null) : seeOther(await signInUrl(call, wanted))
}

const importPage = ({ ctx }: PageCall, holder: Holder, fault: Fault | null): Response =>
  page(ctx.config, {
    title: 'Restore from an archive',
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Restore ${accountName(holder.account)} from an archive</h1>
    <p class="quiet">From a ZIP file that this server, or another one of its kind, has exported for this account.</p>
  </div>
  ${errorNote(fault)}
  ${
    ctx.config.repos.importsEnabled
      ? importForm(holder, fault)
      : html`<p class="note warn" role="status">This server does not accept archives.</p>`
  }
  ${backLink(holder)}
</section>`,
  })

const backLink = ({ account }: Holder): Html =>
  html`<p class="links"><a href="${accountUrl(account.did)}">Back to your account</a></p>`

const lines = {
  'Is replaced': [
    'Your posts, likes, follows and all other records: they will be those in the archive. What you have written since the export is gone.',
    'Preferences that the archive has, such as muted words and saved feeds.',
  ],
  'Is added': ['Every picture and video in the archive that this server does not have.'],
  'Stays as it is': ['Your handle, password, app passwords and sessions, and your followers.'],
}

const importForm = (holder: Holder, fault: Fault | null): Html => html`
  ${Object.entries(lines).map(
    ([title, items]) => html`
  <section class="stack">
    <h2>${title}</h2>
    <ul class="findings">${items.map((item) => html`<li>${item}</li>`)}</ul>
  </section>`,
  )}
  ${uploadForm(
    holder,
    ACTION,
    html`
  <label class="check"><input type="checkbox" name="sure" value="yes" required><span>Replace my posts and other records by those in the archive</span></label>
  ${fileField({ label: 'The archive', accept: '.zip,application/zip', hint: 'Keep this page open until the upload has ended. If it breaks off, upload the file again.', fault })}
  <div class="actions"><button class="primary">Restore my account</button></div>`,
  )}`

const resultPage = ({ ctx }: PageCall, holder: Holder, { hasRepo, blobs, preferences }: Restored): Response =>
  page(ctx.config, {
    title: 'Restored',
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${accountName(holder.account)} is restored</h1>
    <p class="note good" role="status">The whole archive has been taken over.</p>
  </div>
  <dl class="facts">
    <div><dt>Posts and other records</dt><dd>${hasRepo ? 'Those in the archive' : 'As they were: the archive has none'}</dd></div>
    <div><dt>Pictures and videos</dt><dd>${blobs.stored.toLocaleString('en')} added, ${blobs.present.toLocaleString('en')} were here already</dd></div>
    <div><dt>Preferences</dt><dd>${preferences.toLocaleString('en')} from the archive</dd></div>
  </dl>
  ${backLink(holder)}
</section>`,
  })

async function restore(call: PageCall, { account: { did } }: Holder, file: UploadedFile): Promise<Restored> {
  if (!call.ctx.config.repos.importsEnabled) throw invalidRequest('This server does not accept archives.')
  charge(call, { name: 'importAccount', key: did })
  await requireNotTakendown(call, did)
  if (!(await file.beginsWith(ZIP_MAGIC)))
    throw invalidRequest('This file is no archive of an account: it is no ZIP file.')
  return importArchive(call, did, file)
}

export const importPageRoutes: Endpoint[] = [
  route('GET', PATH, { handler: show }),
  holderUpload(PATH, async (call, holder, fields, file) => {
    if (await isMoving(call.ctx.db, holder.account.did)) return seeOther(moveUrl(holder.account.did))
    if (file === null) return importPage(call, holder, faultAt('file', 'Please choose the file of your archive.'))
    if (fields.get('sure') !== 'yes')
      return importPage(call, holder, faultAt(null, 'Please confirm that your posts are replaced.'))
    let restored: Restored | null = null
    const fault = await faultOf(async () => {
      restored = await restore(call, holder, file)
    })
    return restored === null ? importPage(call, holder, fault) : resultPage(call, holder, restored)
  }),
]
