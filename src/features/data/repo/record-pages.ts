/**
 * Caches pages of `listRecords` as JSON. Web pages that show a user's records request the same page again and again; a
 * page stays correct while the edition of the repository is the same.
 */
import { JsonText } from '../../../http/endpoint.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { withinBytes } from '../../../base/within-bytes.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { listRecordEntries, listRecords, type RecordEntry, type RecordRange } from './record-store.ts'
import { recordViews } from './record-views.ts'

/** Size of the cache in characters of one or two bytes: about 150 pages of a hundred posts. */
const MAX_CHARS = 8 * 1024 ** 2

/**
 * Most bytes of records in a page; a single record may exceed them. Decoding takes up to 50 ms per MiB, and 100 of the
 * largest records would keep the server busy for seconds.
 */
const MAX_PAGE_BYTES = 512 * 1024

/** Most collections of large records whose page length is remembered. */
const MAX_SHORT_PAGES = 1000
/** A collection whose pages have become this long is forgotten. */
const MAX_SHORT_PAGE = 64

interface KeptPage {
  /** Edition of the repository that the page was read from. */
  edition: string
  page: JsonText
}

const keptPages = perContext(
  () => new BoundedCache<KeptPage>(MAX_CHARS, (key, { page }) => key.length + page.text.length),
)

/**
 * How many records to look at for a page, by account and collection. SQLite reads all of a record that it passes, and
 * 100 of the largest have 100 MB, of which the page shows half a megabyte.
 */
const shortPages = perContext(() => new BoundedCache<number>(MAX_SHORT_PAGES))

/**
 * Returns `{"records":[…],"cursor":"…"}`. `edition` is the edition of the repository, read before the call: a write in
 * between only causes a spurious reload. It is null if the account has no repository, and the page then has no records.
 */
export async function recordPage(
  ctx: Context,
  did: Did,
  edition: string | null,
  range: RecordRange,
): Promise<JsonText> {
  const kept = keptPages(ctx)
  const { collection, after, descending, limit } = range
  const key = `${did} ${collection} ${after ?? ''} ${descending} ${limit}`
  const known = kept.get(key)
  if (known?.edition === edition) return known.page
  const page = await pageText(ctx, did, range)
  if (edition !== null) kept.set(key, { edition, page })
  return page
}

async function pageText(ctx: Context, did: Did, range: RecordRange): Promise<JsonText> {
  const items = await itemsOf(ctx, did, range)
  // Append piece by piece: the runtime then copies each text once, when the page is complete.
  let page = '{"records":['
  let separator = ''
  for (const { text } of items) {
    page += separator
    page += text
    separator = ','
  }
  const last = items.at(-1)
  const cursor = last === undefined ? '' : `,"cursor":"${last.path.slice(range.collection.length + 1)}"`
  return new JsonText(`${page}]${cursor}}`)
}

interface PageItem {
  path: string
  text: string
}

/**
 * Paths of a page with the views of their records. Values are read only if a view is not cached. The page ends early if
 * its records would exceed `MAX_PAGE_BYTES`.
 */
async function itemsOf(ctx: Context, did: Did, range: RecordRange): Promise<PageItem[]> {
  const views = recordViews(ctx)
  const items: PageItem[] = []
  const entries = await entriesOf(ctx, did, range)
  for (const entry of entries) {
    const text = views.kept(did, entry)
    if (text === undefined) {
      const records = await listRecords(ctx.db, did, { ...range, limit: entries.length })
      return records.map((record) => ({ path: record.path, text: views.of(did, record) }))
    }
    items.push({ path: entry.path, text })
  }
  return items
}

async function entriesOf(ctx: Context, did: Did, range: RecordRange): Promise<readonly RecordEntry[]> {
  const short = shortPages(ctx)
  const place = `${did} ${range.collection}`
  const known = short.get(place)
  const limit = Math.min(range.limit, known ?? Infinity)
  const found = await listRecordEntries(ctx.db, did, { ...range, limit })
  const entries = withinBytes(found, MAX_PAGE_BYTES)
  if (entries.length < found.length) short.set(place, entries.length + 1)
  else if (limit < range.limit && limit < MAX_SHORT_PAGE) short.set(place, 2 * limit)
  else if (limit < range.limit) short.delete(place)
  return entries
}
