/**
 * Pages of collections as JSON, by what was asked for. Web pages that show somebody's records ask for the same page again
 * and again; it stays right for as long as the repository shows the same.
 */
import { JsonText } from '../../http/endpoint.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { listRecordCids, listRecords, type RecordRange } from './record-store.ts'
import { recordTexts } from './record-texts.ts'
import { findEdition } from './repo-store.ts'

/** Pages kept, in characters of one or two bytes: some 150 of a hundred posts. */
const MAX_CHARS = 8 * 1024 ** 2

interface KeptPage {
  /** Of the repository. */
  edition: string
  page: JsonText
}

const keptPages = perContext(() => new BoundedCache<KeptPage>(MAX_CHARS, (key, { page }) => key.length + page.text.length))

/** `{"records":[…],"cursor":"…"}`, of an account that has a repository or none. */
export async function recordPage(ctx: Context, did: Did, range: RecordRange): Promise<JsonText> {
  const kept = keptPages(ctx)
  const { collection, after, descending, limit } = range
  const key = `${did} ${collection} ${after ?? ''} ${descending} ${limit}`
  // Asked for first: what is written between the two statements makes the page newer than its edition, and it is read again.
  const edition = await findEdition(ctx.db, did)
  const known = kept.get(key)
  if (known?.edition === edition) return known.page
  const page = await pageText(ctx, did, range)
  if (edition !== null) kept.set(key, { edition, page })
  return page
}

async function pageText(ctx: Context, did: Did, range: RecordRange): Promise<JsonText> {
  const items = await itemsOf(ctx, did, range)
  const records = items.map(({ path, text }) => viewText(did, path, text)).join(',')
  const last = items.at(-1)
  const cursor = last === undefined ? '' : `,"cursor":"${last.path.slice(range.collection.length + 1)}"`
  return new JsonText(`{"records":[${records}]${cursor}}`)
}

interface PageItem {
  path: string
  text: string
}

/** A page with the texts of its records. Values are read only where a text is not kept. */
async function itemsOf(ctx: Context, did: Did, range: RecordRange): Promise<PageItem[]> {
  const texts = recordTexts(ctx)
  const items: PageItem[] = []
  for (const { path, cid } of await listRecordCids(ctx.db, did, range)) {
    const text = texts.kept(cid)
    if (text === undefined) return (await listRecords(ctx.db, did, range)).map((record) => ({ path: record.path, text: texts.of(record) }))
    items.push({ path, text })
  }
  return items
}

/** A record as it is shown; nothing in its URI needs an escape. */
export const viewText = (did: Did, path: string, text: string): string => `{"uri":"at://${did}/${path}",${text}}`
