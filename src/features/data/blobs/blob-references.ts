/**
 * Updates blob references in the transaction of a commit: written records add references, deleted records remove them.
 * The grace clock of a blob starts when its last reference is removed. Nothing is deleted here.
 */
import { Refusal } from '../../../http/errors.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis, Tid } from '../../../protocol/identifiers.ts'
import { claimBlobs, releaseUnreferenced, correctClocks, type ClaimedBlob } from './blob-store.ts'
import {
  addReferences,
  deleteAllReferences,
  deleteReferences,
  insertReferences,
  type ReferenceRow,
} from './reference-store.ts'

export interface AddedReference {
  /** `collection/rkey` of the record that refers to the blob. */
  record: string
  cid: string
  mimeType: string
  size: number
  /** Whether the record was validated against the lexicon of its type. */
  validated: boolean
}

export interface BlobChanges {
  did: Did
  /** Revision of the commit that writes the records. */
  rev: Tid
  now: Millis
  /** Records that the commit updates or deletes, as `collection/rkey`. */
  replaced: readonly string[]
  /** References of records that the commit creates or updates. */
  added: readonly AddedReference[]
}

const blobNotFound = (cid: string) => new Refusal(400, 'BlobNotFound', `Could not find blob: ${cid}`)
const mismatch = (name: string, what: string, stored: string | number, given: string | number) =>
  new Refusal(400, name, `Referenced ${what} does not match stored blob. Expected: ${stored}, Got: ${given}`)

/** Refuses with `BlobNotFound`, `InvalidMimeType` or `InvalidSize`. Runs no statement if nothing changes. */
export async function applyBlobChanges(tx: Tx, { did, rev, now, replaced, added }: BlobChanges): Promise<void> {
  if (replaced.length === 0 && added.length === 0) return
  const dropped = replaced.length === 0 ? [] : await deleteReferences(tx, did, replaced)
  if (added.length > 0) {
    const claimed = await claimBlobs(tx, did, unique(added.map(({ cid }) => cid)))
    checkReferences(added, claimed, dropped)
    await insertReferences(tx, did, rev, added)
  }
  const kept = new Set(added.map(({ cid }) => cid))
  const released = unique(dropped.map(({ cid }) => cid).filter((cid) => !kept.has(cid)))
  if (released.length > 0) await releaseUnreferenced(tx, did, released, now)
}

/**
 * Refuses with `BlobNotFound`, `InvalidMimeType` or `InvalidSize`. `dropped`: the references that the same write
 * removes.
 */
export function checkReferences(
  added: readonly AddedReference[],
  claimed: readonly ClaimedBlob[],
  dropped: readonly ReferenceRow[],
): void {
  const byCid = new Map(claimed.map((blob) => [blob.cid, blob]))
  const held = new Set(dropped.map(heldKey))
  for (const reference of added) {
    const blob = byCid.get(reference.cid)
    if (!blob) throw blobNotFound(reference.cid)
    // A record that keeps its reference may keep its type and size, even if these are wrong: it may come from another
    // server.
    const isTrusted = held.has(heldKey(reference)) || (blob.isPermanent && !reference.validated)
    if (isTrusted) continue
    if (blob.mimeType !== reference.mimeType)
      throw mismatch('InvalidMimeType', 'Mimetype', blob.mimeType, reference.mimeType)
    if (blob.size !== reference.size) throw mismatch('InvalidSize', 'Size', blob.size, reference.size)
  }
}

const heldKey = ({ record, cid }: ReferenceRow) => `${record} ${cid}`
const unique = (cids: readonly string[]) => [...new Set(cids)]

/**
 * Replace all references of an account by those of an imported repository, which come in batches. References are not
 * checked, because their blobs may be uploaded later. Blobs to which the repository does not refer start their grace at
 * `now`.
 */
export async function replaceBlobReferences(
  tx: Tx,
  { did, rev, now, batches }: { did: Did; rev: Tid; now: Millis; batches: Iterable<readonly ReferenceRow[]> },
): Promise<void> {
  await deleteAllReferences(tx, did)
  for (const references of batches) await addReferences(tx, did, rev, references)
  await correctClocks(tx, did, now)
}
