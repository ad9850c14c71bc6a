/** The pages of the data browser as HTML, for account holders and for operators. */
import { html, plainName, type Html, type Wording } from '../../../http/html.ts'
import { factsPhrase, sizePhrase, timePhrase } from '../../../http/texts.ts'
import { collectionWords } from '../../access/scope-words/scope-words.ts'
import type { BlobsView, CollectionsView, CommitsView, Counted, RecordsView, RecordView } from './browsed-data.ts'
import { dataTexts as texts } from './data-texts.ts'
import { beginningOfJson } from './indented-json.ts'
import { recordWords } from './record-words.ts'

/** URLs and rights of one kind of reader. */
export interface Surroundings {
  /** The address of a part of the data. */
  link(parameters: Readonly<Record<string, string>>): string
  /** The address of the bytes of a blob. */
  blobUrl(cid: string): string
  /**
   * Operators can also open what is taken down. Lists show them no images, because the audit log records each one. The
   * frame of the console names the account in the heading of the page.
   */
  isOperator: boolean
  /** The page from which the data is reached. */
  home: string
  /** What the account is called. */
  account: string
}

/** Media types that browsers show in a page. An SVG may contain scripts. */
const shownTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])
export const isShownType = (mimeType: string): boolean => shownTypes.has(mimeType)

/** Larger images are shown on request only. */
const MAX_PREVIEW_BYTES = 2 * 1000 ** 2
/** A page has 60 kB at most, with the stylesheet. */
const MAX_JSON_BYTES = 24_000

const time = (at: string): Html => html`<time datetime="${at}">${timePhrase(Date.parse(at))}</time>`

const amount = ({ count, isMore }: Counted): Wording =>
  isMore ? texts.recordsMore({ number: count }) : texts.records({ count })

const part = (
  surroundings: Surroundings,
  title: Wording | Html,
  content: Html,
  more: Html | null,
  back: Html,
): Html => html`
<section class="card">
  <div class="tight">
    ${surroundings.isOperator ? html`<h2>${title}</h2>` : html`<h1>${title}</h1><p><strong>${surroundings.account}</strong></p>`}
  </div>
  ${content}
  <p class="links">${more} ${back}</p>
</section>`

function moreLink({ link }: Surroundings, parameters: Record<string, string>, cursor: string | undefined): Html | null {
  return cursor === undefined ? null : html`<a href="${link({ ...parameters, cursor })}">${texts.more}</a>`
}

/** The everyday name of a collection begins a line here. */
const kindWords = (collection: string): Html => {
  const words = collectionWords(collection)
  return words === collection ? html`${words}` : html`<span class="sentence">${words}</span>`
}

/** Null if the collection has no everyday name. */
const nsidLine = (collection: string): Html | null =>
  collectionWords(collection) === collection ? null : html`<small><code>${collection}</code></small>`

const toData = ({ link }: Surroundings): Html => html`<a href="${link({})}">${texts.backToData}</a>`

const listOf = (rows: readonly Html[], none: Wording): Html =>
  rows.length === 0 ? html`<p class="note">${none}</p>` : html`<ul class="list">${rows}</ul>`

const recordLink = ({ link }: Surroundings, path: string, words: Wording = path): Html =>
  html`<a href="${link({ part: 'record', path })}">${words}</a>`

export const collectionsPart = (around: Surroundings, { head, collections, cursor }: CollectionsView): Html => html`
${part(
  around,
  texts.title,
  html`
<p class="quiet">${texts.lead}</p>
<h2>${texts.collections}</h2>
${listOf(
  collections.map(
    ({ collection, records }) => html`
<li><div class="body"><strong><a href="${around.link({ part: 'records', collection })}">${kindWords(collection)}</a></strong>${nsidLine(collection)}<small>${amount(records)}</small></div></li>`,
  ),
  texts.collectionsNone,
)}`,
  moreLink(around, {}, cursor),
  html`<a href="${around.link({ part: 'blobs' })}">${texts.blobsTitle}</a> <a href="${around.link({ part: 'commits' })}">${texts.commitsTitle}</a> <a href="${around.home}">${texts.backToAccount}</a>`,
)}
${
  head &&
  html`
<section class="card">
  <h2>${texts.headTitle}</h2>
  <p class="quiet">${texts.headAbout}</p>
  ${facts([
    [texts.written, time(head.writtenAt)],
    [texts.revision, html`<code>${head.rev}</code>`],
    ['CID', html`<code>${head.cid}</code>`],
    [texts.root, html`<code>${head.data}</code>`],
  ])}
</section>`
}`

const facts = (rows: readonly (readonly [Wording, Html])[]): Html =>
  html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

export const recordsPart = (around: Surroundings, { collection, records, cursor }: RecordsView): Html =>
  part(
    around,
    kindWords(collection),
    html`
${nsidLine(collection)}
${listOf(
  records.map(({ path, value, bytes, indexedAt, isTakenDown }) => {
    const { what, text } = recordWords(path, value)
    return html`
<li><div class="body">
  <strong>${recordLink(around, path, what)}</strong>
  ${text !== null && html`<span>${text}</span>`}
  <small><code>${path.slice(collection.length + 1)}</code></small>
  <small>${factsPhrase([time(indexedAt), sizePhrase(bytes)])}</small>
  ${isTakenDown && html`<small>${texts.takenDown}</small>`}
</div></li>`
  }),
  texts.collectionsNone,
)}`,
    moreLink(around, { part: 'records', collection }, cursor),
    toData(around),
  )

/** Returns the beginning of a text that takes at most this many bytes once it is escaped. */
function escapedWithin(text: string, maxBytes: number): string {
  const bytesOf = (part: string) => Buffer.byteLength(Bun.escapeHTML(part))
  let part = text.slice(0, maxBytes)
  for (let bytes = bytesOf(part); bytes > maxBytes; bytes = bytesOf(part))
    part = part.slice(0, Math.floor((part.length * maxBytes) / bytes))
  return part
}

export function recordPart(around: Surroundings, record: RecordView): Html {
  const { path, uri, value, blobs, hasMoreBlobs } = record
  const collection = path.slice(0, path.indexOf('/'))
  const { what, text } = recordWords(path, value)
  const json = value === null ? '' : beginningOfJson(value, MAX_JSON_BYTES)
  const shown = escapedWithin(json, MAX_JSON_BYTES)
  const [, , did = '', name = '', rkey = ''] = uri.split('/')
  const raw = `/xrpc/com.atproto.repo.getRecord?${new URLSearchParams({ repo: did, collection: name, rkey })}`
  return part(
    around,
    value === null ? collectionWords(collection) : what,
    html`
${text !== null && html`<p>${text}</p>`}
${record.isTakenDown && html`<p class="note warn">${texts.takenDown}</p>`}
${facts([
  [texts.address, html`<code>${uri}</code>`],
  ['CID', html`<code>${record.cid}</code>`],
  [texts.revision, html`<code>${record.rev}</code>`],
  [texts.stored, time(record.indexedAt)],
  [texts.size, html`${sizePhrase(record.bytes)}`],
])}
${
  blobs.length > 0 &&
  html`<h2>${texts.files}</h2><ul class="list">${blobs.map((cid) => html`<li><div class="body"><a href="${around.blobUrl(cid)}"><code>${cid}</code></a></div></li>`)}</ul>${hasMoreBlobs && html`<p class="quiet">${texts.filesMore}</p>`}`
}
<h2>${texts.json}</h2>
${value === null ? html`<p class="note error">${texts.damaged}</p>` : html`<pre class="data" tabindex="0">${shown}</pre>`}
${shown.length < json.length && html`<p>${texts.jsonCut({ raw: (words) => html`<a href="${raw}">${words}</a>` })}</p>`}`,
    null,
    html`<a href="${around.link({ part: 'records', collection })}">${collectionWords(collection)}</a> ${toData(around)}`,
  )
}

export const blobsPart = (around: Surroundings, { blobs, cursor }: BlobsView): Html =>
  part(
    around,
    texts.blobsTitle,
    html`
<p class="quiet">${texts.blobsLead}</p>
${listOf(
  blobs.map((blob) => blobRow(around, blob)),
  texts.blobsNone,
)}`,
    moreLink(around, { part: 'blobs' }, cursor),
    toData(around),
  )

function blobRow(around: Surroundings, blob: BlobsView['blobs'][number]): Html {
  const { cid, mimeType, size, uploadedAt, isTakenDown, records, hasMoreRecords } = blob
  const isPreviewed = !around.isOperator && isShownType(mimeType) && size <= MAX_PREVIEW_BYTES && !isTakenDown
  return html`
<li><div class="body">
  ${isPreviewed && html`<img class="preview" src="${around.blobUrl(cid)}" alt="" loading="lazy">`}
  <strong>${factsPhrase([plainName(mimeType), sizePhrase(size)])}</strong>
  <small>${time(uploadedAt)}</small>
  ${isTakenDown && html`<small>${texts.takenDown}</small><small><code>${cid}</code></small>`}
  ${(around.isOperator || !isTakenDown) && html`<small><a href="${around.blobUrl(cid)}">${texts.open}</a></small>`}
  ${
    records.length === 0
      ? html`<small>${texts.unused}</small>`
      : html`<small>${texts.usedBy}</small>${records.map((path) => html`<small><code>${recordLink(around, path)}</code></small>`)}${hasMoreRecords && html`<small>${texts.usedByMore}</small>`}`
  }
</div></li>`
}

export const commitsPart = (around: Surroundings, { commits, cursor }: CommitsView): Html =>
  part(
    around,
    texts.commitsTitle,
    html`
<p class="quiet">${texts.commitsLead}</p>
${listOf(
  commits.map(
    ({ rev, writtenAt, records, paths }) => html`
<li><div class="body">
  <strong><code>${rev}</code></strong>
  <small>${factsPhrase([time(writtenAt), amount(records)])}</small>
  ${paths.map((path) => html`<small><code>${recordLink(around, path)}</code></small>`)}
</div></li>`,
  ),
  texts.collectionsNone,
)}`,
    moreLink(around, { part: 'commits' }, cursor),
    toData(around),
  )
