/**
 * Caches pages of `listRecords` as JSON. Web pages that show somebody's records ask for the same page again and again;
 * a page stays correct while the edition of the repository is the same.
 */
import { JsonText } from '../../http/endpoint.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { listRecordCids, listRecords, type RecordRange } from './record-store.ts'
import { recordTexts } from './record-texts.ts'
import { findEdition } from './repo-store.ts'

/** Size of the cache in characters of one or two bytes: about 150 pages of a hundred posts. */
const MAX_CHARS = 8 * 1024 ** 2

interface KeptPage {
  /** Edition of the repository that the page was read from. */
  edition: string
  page: JsonText
}

const keptPages = perContext(() => new BoundedCache<KeptPage>(MAX_CHARS, (key, { page }) => key.length + page.text.length))

/** Returns `{"records":[…],"cursor":"…"}`; without records if the account has no repository. */
export async function recordPage(ctx: Context, did: Did, range: RecordRange): Promise<JsonText> {
  const kept = keptPages(ctx)
  const { collection, after, descending, limit } = range
  const key = `${did} ${collection} ${after ?? ''} ${descending} ${limit}`
  // Read the edition before the rows: a write in between only causes a spurious reload.
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

/** Paths of a page with the texts of their records. Values are only read if a text is not cached. */
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

/** A record view as JSON. Nothing in the URI needs escaping. */
export const viewText = (did: Did, path: string, text: string): string => `{"uri":"at://${did}/${path}",${text}}`
