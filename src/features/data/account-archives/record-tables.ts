/** The tables of an archive: records of the usual collections in a form that people read. */
import { setImmediate } from 'node:timers/promises'
import type { Reader } from '../../../platform/database/database.ts'
import { BYTE_ORDER_MARK, csvRow } from '../../../protocol/csv.ts'
import { decode, type Data } from '../../../protocol/cbor.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import { recordUri, type Did } from '../../../protocol/identifiers.ts'
import { recordsOf } from '../repo/repo.ts'

/** Records read at once. A single one may have a megabyte. */
const PAGE_RECORDS = 50
/** Bytes of records that are decoded in one turn of the event loop. */
const TURN_BYTES = 512 * 1024

/** Returns the text of a cell from a record. */
type Column = (record: Data) => string

interface RecordTable {
  name: string
  collection: string
  columns: Readonly<Record<string, Column>>
}

/** The text at a path; empty if there is none. Texts of a list are joined. */
const at =
  (...path: readonly string[]): Column =>
  (record) => {
    const value = path.reduce<Data | undefined>((within, name) => memberOf(within, name), record)
    if (Array.isArray(value)) return value.filter((item) => typeof item === 'string').join(' ')
    return typeof value === 'string' ? value : ''
  }

const memberOf = (value: Data | undefined, name: string): Data | undefined =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, Data>)[name]
    : undefined

const blobs: Column = (record) => blobCids(record).join(' ')
const createdAt = at('createdAt')
const aboutAccount = { createdAt, did: at('subject') }
const aboutRecord = { createdAt, subject: at('subject', 'uri') }

export const recordTables: readonly RecordTable[] = [
  {
    name: 'posts',
    collection: 'app.bsky.feed.post',
    columns: {
      createdAt,
      text: at('text'),
      langs: at('langs'),
      replyTo: at('reply', 'parent', 'uri'),
      link: at('embed', 'external', 'uri'),
      blobs,
    },
  },
  { name: 'follows', collection: 'app.bsky.graph.follow', columns: aboutAccount },
  { name: 'blocks', collection: 'app.bsky.graph.block', columns: aboutAccount },
  { name: 'likes', collection: 'app.bsky.feed.like', columns: aboutRecord },
  { name: 'reposts', collection: 'app.bsky.feed.repost', columns: aboutRecord },
  {
    name: 'lists',
    collection: 'app.bsky.graph.list',
    columns: { createdAt, name: at('name'), purpose: at('purpose'), description: at('description') },
  },
]

/** Yields a table as CSV, in pages: a line of names, and a row for each record. */
export async function* tableText(
  reader: Reader,
  did: Did,
  { collection, columns }: RecordTable,
): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK + csvRow(['uri', ...Object.keys(columns)])
  const cells = Object.values(columns)
  for (let after = `${collection}/`; ;) {
    const page = await recordsOf(reader, did, after, PAGE_RECORDS)
    const rows = page.filter(({ path }) => path.startsWith(`${collection}/`))
    let [text, bytes] = ['', 0]
    for (const { path, value } of rows) {
      if (bytes + value.length > TURN_BYTES && bytes > 0) {
        await setImmediate()
        bytes = 0
      }
      bytes += value.length
      const record = decode(value)
      text += csvRow([recordUri(did, path), ...cells.map((cell) => cell(record))])
    }
    yield text
    if (rows.length < PAGE_RECORDS) return
    after = rows.at(-1)!.path
    await setImmediate()
  }
}
