/** The door of blobs. What only the garbage collector uses is at the end. */
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { blobUsage, deleteAllBlobs } from './blob-store.ts'
import { countReferencedCids, deleteAllReferences } from './reference-store.ts'

export { applyBlobChanges, replaceBlobReferences, type AddedReference } from './blob-references.ts'
export { blobFolderIn, blobStorage, openBlobBucket, openStorageOf } from './open-storage.ts'
export type { BlobStorage, StoredBlob } from './blob-storage.ts'
export type { BlobFolder } from './blob-folder.ts'
export { blobTakedown, findReadable, hasBlobs, ownedAmong, setBlobTakedown, storedBlobs } from './blob-store.ts'
export { removeBlobFiles } from './blob-removal.ts'

/** Counts of referenced and of stored blobs, and stored bytes. */
export async function countBlobs(
  reader: Reader,
  did: Did,
): Promise<{ expected: number; imported: number; bytes: number }> {
  const { count, bytes } = await blobUsage(reader, did)
  return { expected: await countReferencedCids(reader, did), imported: count, bytes }
}

/**
 * Call in the transaction that purges an account. Returns the CIDs for `removeBlobFiles`, to be called once it is
 * durable.
 */
export async function deleteAccountBlobs(tx: Tx, did: Did, now: Millis): Promise<string[]> {
  await deleteAllReferences(tx, did)
  return deleteAllBlobs(tx, did, now)
}

export { HEAD_BYTES } from './blob-storage.ts'
export {
  deleteExpired,
  findExpired,
  findMimeType,
  findReconciled,
  listClocks,
  correctClocks,
  upsertReconciled,
  upsertUpload,
  type ExpiredBlob,
} from './blob-store.ts'
export { cancelRemoval, continueRemovals, forgetRemovals, Overtaken, removeFiles } from './blob-removal.ts'
export { deleteRemovals, listRemovals } from './removal-store.ts'
export { mimeTypeOf } from './mime-type.ts'
export { deleteReferences, insertReferences, listReferenced, listReferences } from './reference-store.ts'
