/** Compares the rows of blobs with the objects of a bucket. */
import type { Pace } from '../../../base/pace.ts'
import type { StoredObject } from '../../../platform/network/bucket.ts'
import type { StoredBlob } from './blob-storage.ts'
import { ROW_COST_BYTES } from './sweep-pace.ts'

export type Difference = { kind: 'missing'; blob: StoredBlob } | { kind: 'unknown'; object: StoredObject }

export interface Compared {
  /** Ascending by CID. */
  rows: AsyncIterable<StoredBlob[]>
  /** Ascending by key. */
  objects: AsyncIterable<StoredObject[]>
  /** Keys must have the same order as CIDs. */
  keyOf(cid: string): string
  pace: Pace
  /** Counts what was read. */
  tally: { rows: number; keys: number }
  /** Called with each blob that has an object of its size. */
  onMatch?: (blob: StoredBlob) => Promise<void>
}

/**
 * Yields blobs and objects that only one side has. An object of a different size counts as missing. Walks rows and keys
 * in parallel, so memory holds one page of each.
 */
export async function* bucketDifferences({
  rows,
  objects,
  keyOf,
  pace,
  tally,
  onMatch,
}: Compared): AsyncGenerator<Difference> {
  const rowsOneByOne = flat(rows, pace)
  const objectsOneByOne = flat(objects, pace)
  let row = await rowsOneByOne.next()
  let object = await objectsOneByOne.next()
  while (!row.done || !object.done) {
    const blob = row.done ? null : row.value
    const key = object.done ? null : object.value.key
    const wanted = blob && keyOf(blob.cid)
    const takesRow = wanted !== null && (key === null || wanted <= key)
    const takesKey = key !== null && (wanted === null || key <= wanted)
    if (takesRow && !(takesKey && object.value!.size === blob!.size)) yield { kind: 'missing', blob: blob! }
    else if (takesRow) await onMatch?.(blob!)
    else yield { kind: 'unknown', object: object.value! }
    if (takesRow) {
      tally.rows++
      row = await rowsOneByOne.next()
    }
    if (takesKey) {
      tally.keys++
      object = await objectsOneByOne.next()
    }
  }
}

async function* flat<T>(pages: AsyncIterable<T[]>, pace: Pace): AsyncGenerator<T> {
  for await (const page of pages) {
    await pace(page.length * ROW_COST_BYTES)
    yield* page
  }
}
