/**
 * Before blobs are deleted: do the references say what the records say?
 *
 * They are written together, so that they always should. But a reference that got lost would cost a blob, and so an
 * account is walked again when its repository has changed since the last time, and whenever something of it is due.
 *
 * Records and references are compared page by page outside of any transaction; only what differs is looked at again,
 * and put right, inside one.
 */
import type { Context } from '../../platform/context.ts'
import { inPages, type Tx } from '../../platform/database/database.ts'
import { decode } from '../../protocol/cbor.ts'
import { blobCids } from '../../protocol/data-model.ts'
import type { Throttle } from '../../base/pace.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import {
  blobFiles,
  cidQueue,
  deleteReferences,
  findMimeType,
  HEAD_BYTES,
  insertReferences,
  listClocks,
  listReferenced,
  listReferences,
  mimeTypeOf,
  correctClocks,
  upsertUpload,
} from '../blobs/blobs.ts'
import { readRecord, recordsOf } from '../repo/repo.ts'

/** Looked at in one go; requests wait as long as that takes. */
const PAGE_RECORDS = 25
const PAGE_CIDS = 100
/** In DAG-CBOR every reference to a blob, of either shape, carries the text `mimeType`, under a head that says that it is eight bytes long. */
const blobMark = Buffer.from('\x68mimeType')

export interface Reconciled {
  /** Records whose references were put right. */
  mended: number
  /** Referenced files that the account did not own. */
  adopted: number
}

/** Throws when a record cannot be read: then nothing of the account may be deleted. */
export async function reconcileAccount(ctx: Context, did: Did, now: Millis, throttled: Throttle): Promise<Reconciled> {
  const mended = await mendReferences(ctx, did, throttled)
  if (await hasWrongClocks(ctx, did, throttled)) await ctx.db.transaction((tx) => correctClocks(tx, did, now))
  return { mended, adopted: await adoptReferenced(ctx, did, now, throttled) }
}

async function mendReferences(ctx: Context, did: Did, throttled: Throttle): Promise<number> {
  let mended = 0
  for (let after: string | null = ''; after !== null; ) {
    const { end, differing }: Page = await throttled(() => comparePage(ctx, did, after!))
    for (const path of differing) {
      if (!(await throttled(() => ctx.db.transaction((tx) => mendRecord(tx, did, path))))) continue
      mended++
      ctx.log.warn('blob references mended', { did, path })
    }
    after = end
  }
  return mended
}

interface Page {
  /** Where the next one starts; null after the last. */
  end: string | null
  differing: string[]
}

async function comparePage({ db }: Context, did: Did, after: string): Promise<Page> {
  const records = await recordsOf(db, did, after, PAGE_RECORDS)
  const end = records.length < PAGE_RECORDS ? null : records.at(-1)!.path
  const truth = new Map(records.map(({ path, value }) => [path, blobsIn(value)]))
  const claimed = Map.groupBy(await listReferences(db, did, { after, end }), ({ record }) => record)
  const paths = [...new Set([...truth.keys(), ...claimed.keys()])]
  const differing = paths.filter((path) => !sameSet(truth.get(path) ?? [], (claimed.get(path) ?? []).map(({ cid }) => cid)))
  return { end, differing }
}

/** Returns false if a commit has put the references right in the meantime. */
async function mendRecord(tx: Tx, did: Did, path: string): Promise<boolean> {
  const record = await readRecord(tx, did, path)
  const truth = record === null ? [] : blobsIn(record.value)
  const claimed = await deleteReferences(tx, did, [path])
  if (record !== null) await insertReferences(tx, did, record.rev, truth.map((cid) => ({ record: path, cid })))
  return !sameSet(truth, claimed.map(({ cid }) => cid))
}

function blobsIn(value: Uint8Array): readonly string[] {
  if (!Buffer.from(value.buffer, value.byteOffset, value.byteLength).includes(blobMark)) return []
  return blobCids(decode(value))
}

const sameSet = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((one) => b.includes(one))

async function hasWrongClocks({ db }: Context, did: Did, throttled: Throttle): Promise<boolean> {
  const pages = inPages(PAGE_CIDS, { cid: '' }, ({ cid }, limit) => throttled(() => listClocks(db, did, cid, limit)))
  for await (const page of pages) if (page.some(({ isWrong }) => isWrong)) return true
  return false
}

/** Give the account what its records point at and is here already: brought by somebody else, or left by a crash. */
async function adoptReferenced(ctx: Context, did: Did, now: Millis, throttled: Throttle): Promise<number> {
  const files = blobFiles(ctx)
  let adopted = 0
  const pages = inPages(PAGE_CIDS, { cid: '' }, ({ cid: cursor }, limit) => throttled(() => listReferenced(ctx.db, { did, cursor, limit })))
  for await (const page of pages) {
    for (const { cid, isOwned } of page) {
      if (isOwned || (await files.sizeOf(cid)) === null) continue
      const isAdopted = await cidQueue(ctx).run(cid, async () => {
        const file = await files.readable(cid)
        if (file === null) return false
        const mimeType = (await findMimeType(ctx.db, cid)) ?? (await mimeTypeOf(await file.slice(0, HEAD_BYTES).bytes(), null))
        await ctx.db.transaction((tx) => upsertUpload(tx, { did, cid, mimeType, size: file.size }, now))
        return true
      })
      if (!isAdopted) continue
      adopted++
      ctx.log.info('blob adopted', { did, cid })
    }
  }
  return adopted
}
