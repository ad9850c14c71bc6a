/**
 * What a commit does to blobs, in the commit's own transaction: records that are written point at blobs, records
 * that go let go of them. A blob that nothing points at any more gets its grace clock; nothing is deleted here.
 */
import { Refusal } from '../../http/errors.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did, Millis, Tid } from '../../protocol/identifiers.ts'
import { claimBlobs, releaseUnreferenced, correctClocks, type ClaimedBlob } from './blob-store.ts'
import { deleteAllReferences, deleteReferences, insertReferences, type ReferenceRow } from './reference-store.ts'

export interface AddedReference {
  /** `collection/rkey` of the record that points at the blob. */
  record: string
  cid: string
  mimeType: string
  size: number
  /** The record was checked against the lexicon of its type. */
  validated: boolean
}

export interface BlobChanges {
  did: Did
  /** The commit that writes the records. */
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

/** Refuses `BlobNotFound`, `InvalidMimeType` or `InvalidSize`. No statement when nothing changes. */
export async function applyBlobChanges(tx: Tx, { did, rev, now, replaced, added }: BlobChanges): Promise<void> {
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

function checkReferences(added: readonly AddedReference[], claimed: readonly ClaimedBlob[], dropped: readonly ReferenceRow[]): void {
  const byCid = new Map(claimed.map((blob) => [blob.cid, blob]))
  const held = new Set(dropped.map(heldKey))
  for (const reference of added) {
    const blob = byCid.get(reference.cid)
    if (!blob) throw blobNotFound(reference.cid)
    // A record that keeps what it has may say of it what it always said: it may come from another server.
    const isTrusted = held.has(heldKey(reference)) || (blob.isPermanent && !reference.validated)
    if (isTrusted) continue
    if (blob.mimeType !== reference.mimeType) throw mismatch('InvalidMimeType', 'Mimetype', blob.mimeType, reference.mimeType)
    if (blob.size !== reference.size) throw mismatch('InvalidSize', 'Size', blob.size, reference.size)
  }
}

const heldKey = ({ record, cid }: ReferenceRow) => `${record} ${cid}`
const unique = (cids: readonly string[]) => [...new Set(cids)]

/** References of imported records. Their blobs may come later, so that nothing is checked. */
export async function importBlobReferences(
  tx: Tx,
  { did, rev, now, references }: { did: Did; rev: Tid; now: Millis; references: readonly ReferenceRow[] },
): Promise<void> {
  await insertReferences(tx, did, rev, references)
  await correctClocks(tx, did, now)
}

/** Before a whole repository is replaced. What the new one does not take up again is in its grace from `now`. */
export async function forgetBlobReferences(tx: Tx, did: Did, now: Millis): Promise<void> {
  await deleteAllReferences(tx, did)
  await correctClocks(tx, did, now)
}
