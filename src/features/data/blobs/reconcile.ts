/**
 * Compares blob references with records before blobs are deleted.
 *
 * Both are written together and should always agree, but if a reference were lost, its blob would be deleted. The
 * references of an account are therefore compared when its repository has changed since the last comparison, and
 * whenever one of its blobs is due for deletion.
 *
 * Pages of records and references are compared outside a transaction; only differences are read again and corrected
 * inside one.
 */
import { recordSource } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import { inPages, type Reader, type Tx } from '../../../platform/database/database.ts'
import { decode } from '../../../protocol/cbor.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import type { Throttle } from '../../../base/pace.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import type { Usage } from '../../identity/quotas/quotas.ts'
import { cancelRemoval, Overtaken } from './blob-removal.ts'
import { deleteReferences, insertReferences, listReferenced, listReferences } from './reference-store.ts'
import {
  correctClocks,
  findMimeType,
  isWithheld,
  listClocks,
  ownershipsOf,
  upsertUpload,
  type Ownership,
} from './blob-store.ts'
import { HEAD_BYTES } from './blob-storage.ts'
import { noteUsage, usageWith } from './blob-usage.ts'
import { mimeTypeOf } from './mime-type.ts'
import { blobStorage } from './open-storage.ts'

/** Rows compared at once; requests wait in the meantime. */
const PAGE_RECORDS = 25
const PAGE_CIDS = 100
/** Blobs without an owner that are looked for in the storage, per account and pass: most of them do not exist. */
const MAX_LOOKS = 1000
/**
 * In DAG-CBOR, every blob reference of either form contains the text `mimeType`, after a head byte that gives its
 * length, eight.
 */
const blobMark = Buffer.from('\x68mimeType')

export interface Reconciled {
  /** Records whose references were corrected. */
  mended: number
  /** Referenced files that the account did not own. */
  adopted: number
}

/**
 * Correct the references and grace clocks of an account. Throws if a record cannot be read; then no blob of the account
 * may be deleted. `isMending`: the account may exceed its quota afterwards, as it did before its rows were lost.
 */
export async function reconcileAccount(
  ctx: Context,
  did: Did,
  { now, throttled, isMending = false }: { now: Millis; throttled: Throttle; isMending?: boolean },
): Promise<Reconciled> {
  const mended = await mendReferences(ctx, did, throttled)
  const { done: areClocksRight } = await wrongClocks(ctx.db, did, throttled).next()
  if (!areClocksRight) await ctx.db.transaction((tx) => correctClocks(tx, did, now))
  return { mended, adopted: await adoptReferenced(ctx, did, { now, throttled, isMending }) }
}

/**
 * Returns, in words, where the references and grace clocks of an account disagree with its records. `reader` must be of
 * a snapshot, in which records can be read. `throttled` runs each piece of the work. Begins after the record `after`.
 * If `isDue` returns true before the end, returns the record to continue after.
 */
export async function referenceFaults(
  ctx: Context,
  reader: Reader,
  did: Did,
  { throttled, after, isDue }: { throttled: Throttle; after: string; isDue: () => boolean },
): Promise<{ faults: string[]; next: string | null }> {
  const faults: string[] = []
  for (let place: string | null = after; place !== null;) {
    const { end, differing }: Page = await throttled(() => comparePage(ctx, reader, did, place!))
    faults.push(...differing.map((path) => `the blob references of record ${path} do not match the record`))
    if (end !== null && isDue()) return { faults, next: end }
    place = end
  }
  for await (const cid of wrongClocks(reader, did, throttled))
    faults.push(`whether blob ${cid} is due for deletion disagrees with its references`)
  return { faults, next: null }
}

async function mendReferences(ctx: Context, did: Did, throttled: Throttle): Promise<number> {
  let mended = 0
  for (let after: string | null = ''; after !== null;) {
    const { end, differing }: Page = await throttled(() => comparePage(ctx, ctx.db, did, after!))
    for (const path of differing) {
      if (!(await throttled(() => ctx.db.transaction((tx) => mendRecord(ctx, tx, did, path))))) continue
      mended++
      ctx.log.warn('blob references corrected', { did, path })
    }
    after = end
  }
  return mended
}

interface Page {
  /** Where the next page starts; null after the last page. */
  end: string | null
  differing: string[]
}

async function comparePage(ctx: Context, reader: Reader, did: Did, after: string): Promise<Page> {
  const { records, isEnd } = await recordSource(ctx).page(reader, did, after, PAGE_RECORDS)
  const end = isEnd ? null : records.at(-1)!.path
  const truth = new Map(records.map(({ path, value }) => [path, blobsIn(value)]))
  const claimed = Map.groupBy(await listReferences(reader, did, { after, end }), ({ record }) => record)
  const paths = [...new Set([...truth.keys(), ...claimed.keys()])]
  const differing = paths.filter(
    (path) =>
      !sameSet(
        truth.get(path) ?? [],
        (claimed.get(path) ?? []).map(({ cid }) => cid),
      ),
  )
  return { end, differing }
}

/** Correct the references of one record. Returns false if a commit has corrected them in the meantime. */
async function mendRecord(ctx: Context, tx: Tx, did: Did, path: string): Promise<boolean> {
  const record = await recordSource(ctx).find(tx, did, path)
  const truth = record === null ? [] : blobsIn(record.value)
  const claimed = await deleteReferences(tx, did, [path])
  if (record !== null)
    await insertReferences(
      tx,
      did,
      record.rev,
      truth.map((cid) => ({ record: path, cid })),
    )
  return !sameSet(
    truth,
    claimed.map(({ cid }) => cid),
  )
}

function blobsIn(value: Uint8Array): readonly string[] {
  if (!Buffer.from(value.buffer, value.byteOffset, value.byteLength).includes(blobMark)) return []
  return blobCids(decode(value))
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const known = new Set(b)
  return a.length === b.length && a.every((one) => known.has(one))
}

/** Yields the blobs whose grace clock `correctClocks` would change. */
async function* wrongClocks(reader: Reader, did: Did, throttled: Throttle): AsyncGenerator<string, void> {
  const pages = inPages(PAGE_CIDS, { cid: '' }, ({ cid }, limit) =>
    throttled(() => listClocks(reader, did, cid, limit)),
  )
  for await (const page of pages) for (const { cid, isWrong } of page) if (isWrong) yield cid
}

/**
 * Give the account the blobs to which its records refer if their files exist: another account made them public, or a
 * crash left them. The account has to upload a blob itself if operators withhold it from the readers of another
 * account, if no owner has made it public, or if it exceeds the quota.
 */
async function adoptReferenced(
  ctx: Context,
  did: Did,
  { now, throttled, isMending }: { now: Millis; throttled: Throttle; isMending: boolean },
): Promise<number> {
  const storage = blobStorage(ctx)
  let adopted = 0
  let looks = 0
  /** A blob of this size or more exceeds the quota. */
  let tooLarge = Infinity
  const pages = inPages(PAGE_CIDS, { cid: '' }, ({ cid: cursor }, limit) =>
    throttled(() => listReferenced(ctx.db, { did, cursor, limit })),
  )
  for await (const page of pages) {
    const lacking = page.filter(({ isOwned }) => !isOwned).map(({ cid }) => cid)
    const ownerships = lacking.length === 0 ? new Map<string, Ownership>() : await ownershipsOf(ctx.db, lacking)
    for (const cid of lacking) {
      const known = ownerships.get(cid) ?? null
      if (known?.isFree === false || (known === null && !isMending && ++looks > MAX_LOOKS)) continue
      const size = known === null ? await storage.sizeOf(cid) : known.size
      if (size === null || size >= tooLarge) continue
      if (!isMending && !hasRoom(await usageWith(ctx, ctx.db, did, size))) {
        tooLarge = size
        continue
      }
      const isAdopted = await storage.alone(cid, () => adopt(ctx, did, cid, { now, isMending, mayHave: isFree }))
      if (!isAdopted) continue
      adopted++
      ctx.log.info('blob adopted', { did, cid })
    }
  }
  return adopted
}

/**
 * Gives an account the blob that its record in a space refers to. Returns false if operators withhold the blob of any
 * owner, or if the bytes are damaged.
 */
export async function adoptForSpace(ctx: Context, did: Did, cid: string): Promise<boolean> {
  const mayHave = async (reader: Reader) => !(await isWithheld(reader, cid))
  if (!(await mayHave(ctx.db))) return false
  return blobStorage(ctx).alone(cid, () => adopt(ctx, did, cid, { now: ctx.clock.now(), isMending: true, mayHave }))
}

const isFree = async (reader: Reader, cid: string): Promise<boolean> =>
  (await ownershipsOf(reader, [cid])).get(cid)?.isFree !== false

const hasRoom = ({ after, quota }: Usage): boolean => quota === 0 || after <= quota

interface Adoption {
  now: Millis
  isMending: boolean
  /** Called again once the bytes were read, which may take long: operators may withhold the blob meanwhile. */
  mayHave(reader: Reader, cid: string): Promise<boolean>
}

/**
 * Give the account a blob whose bytes are stored. Returns false if the bytes are damaged, are being removed or exceed
 * the quota, if the account may not have them, or if it was deleted.
 */
async function adopt(ctx: Context, did: Did, cid: string, { now, isMending, mayHave }: Adoption): Promise<boolean> {
  const storage = blobStorage(ctx)
  const content = await storage.digest(cid)
  if (content?.cid !== cid) return false
  const mimeType = (await findMimeType(ctx.db, cid)) ?? (await mimeTypeOf(await headOf(ctx, content), null))
  try {
    return await ctx.db.transaction(async (tx) => {
      if ((await accountStatus(tx, did)) === null || !(await mayHave(tx, cid))) return false
      const usage = await usageWith(ctx, tx, did, content.size)
      if (!isMending && !hasRoom(usage)) return false
      noteUsage(ctx, did, usage)
      if (storage.isShared) await cancelRemoval(tx, cid, null)
      await upsertUpload(ctx, tx, { did, cid, mimeType, size: content.size }, now)
      return true
    })
  } catch (error) {
    if (error instanceof Overtaken) return false
    throw error
  }
}

async function headOf(ctx: Context, { cid, size }: { cid: string; size: number }): Promise<Uint8Array> {
  const body = await blobStorage(ctx).open({ cid, size }, { range: { first: 0, last: Math.min(size, HEAD_BYTES) - 1 } })
  if (body === null) throw new Error(`blob ${cid} was deleted in the meantime`)
  return new Response(body).bytes()
}
