/**
 * References of records in spaces to blobs. Such a reference keeps a blob from being deleted, and does not make it
 * public: whether a blob is public follows from `blob_reference` alone.
 */
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { checkReferences, type AddedReference } from './blob-references.ts'
import { findOwned, restartClocks } from './blob-store.ts'
import { deleteSpaceReferences, insertSpaceReferences } from './space-reference-store.ts'

export interface SpaceBlobChanges {
  did: Did
  space: SpaceUri
  /** Revision of the write. */
  rev: Tid
  now: Millis
  /** Records that the write updates or deletes, as `collection/rkey`. */
  replaced: readonly string[]
  /** The most references that these records can have. */
  replacedReferences: number
  /** References of records that the write creates or updates. */
  added: readonly AddedReference[]
}

/**
 * Updates references in the transaction of a write. Refuses with `BlobNotFound`, `InvalidMimeType` or `InvalidSize`.
 */
export async function applySpaceBlobChanges(
  tx: Tx,
  { did, space, rev, now, replaced, replacedReferences, added }: SpaceBlobChanges,
): Promise<void> {
  const dropped = await deleteSpaceReferences(tx, did, space, replaced, replacedReferences)
  if (added.length > 0) {
    const cids = new Set(added.map(({ cid }) => cid))
    checkReferences(added, await findOwned(tx, did, [...cids]), dropped)
    await insertSpaceReferences(tx, { did, space, rev }, added)
  }
  if (dropped.length > 0)
    await restartClocks(
      tx,
      did,
      dropped.map(({ cid }) => cid),
      now,
    )
}
