/** The door of blobs: what records refer to, where their bytes are, and what operators do with them. */
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { blobUsage, renewGrace } from './blob-store.ts'
import { faultyBlobsOf, ownersOfFaulty } from './blob-fault-store.ts'
import { mendBlobs } from './blob-mending.ts'
import { takeBlob } from './blob-upload.ts'
import { downloadSpaceBlob } from './blob-download.ts'
import { expectedBlobs } from './expected-blobs.ts'
import { openStored } from './missing-files.ts'
import { blobStorage } from './open-storage.ts'
import { referenceFaults } from './reconcile.ts'
import { allMissing, countReferencedCids, referenceBytes } from './reference-store.ts'
import {
  countMissingInSpace,
  countSpaceReferences,
  countSpaceReferencesOutside,
  countUpTo,
  isOfSpacesAlone,
  isReferrer,
  listSpaceBlobs,
  listSpaceReferences,
  replaceSpaceReferences,
} from './space-reference-store.ts'
import { applySpaceBlobChanges } from './space-references.ts'

export { arrivalLocks, ownArrivedBlobs, placeBlob, type ArrivedBlob } from './blob-arrival.ts'
export { applyBlobChanges, replaceBlobReferences } from './blob-references.ts'
export { endQuarantine, findQuarantine, listQuarantines, QUARANTINE, quarantineBlob } from './blob-quarantine.ts'
export { downloadBlob } from './blob-download.ts'
export { openBlobBucket, openStorageOf } from './open-storage.ts'
export type { BlobStorage, StoredBlob } from './blob-storage.ts'
export { DamagedOnTheWay } from './object-reading.ts'
export {
  accountBlobs,
  blobTakedown,
  findReadable,
  hasBlobs,
  ownedAmong,
  setBlobTakedown,
  storedBlobs,
} from './blob-store.ts'

/** Where the bytes of blobs are. `open` fetches a missing file from the mirror. */
export const blobBytes = { storage: blobStorage, open: openStored }

/** For blobs whose CID is known before they arrive: receive one, or renew one that the account has already. */
export const knownBlobs = { take: takeBlob, renew: renewGrace }

/** What is wrong with the blobs of accounts, and what can be done about it. */
export const blobHealth = { faultyOf: faultyBlobsOf, ownersOfFaulty, referenceFaults, mend: mendBlobs }

/**
 * Which blobs an account lacks although its records refer to them, and how many bytes references take in the database.
 */
export const blobReferences = { allMissing, bytes: referenceBytes }

/**
 * How many blobs an account has and should have; the same for clients that ask often; and how many are stored, with
 * their bytes.
 */
export const blobCounts = { exact: countBlobs, recent: recentBlobCounts, stored: blobUsage }

/** Blobs that records in spaces refer to. */
export const spaceBlobs = {
  change: applySpaceBlobChanges,
  list: listSpaceBlobs,
  referencesOf: listSpaceReferences,
  countReferences: countSpaceReferences,
  countReferencesOutside: countSpaceReferencesOutside,
  countMissing: countMissingInSpace,
  replace: replaceSpaceReferences,
  download: downloadSpaceBlob,
  /** SQL: whether a record refers to blobs. */
  areReferredBy: isReferrer,
  /** SQL: how many references records have, up to a maximum. */
  countUpTo,
  /** SQL: matches a row of `blob` to which only records in spaces refer. */
  areAlone: isOfSpacesAlone,
}

interface BlobCounts {
  /** Blobs to which public records refer. */
  expected: number
  /** Blobs that are stored, except those to which only records in spaces refer. */
  imported: number
  /** Bytes of all stored blobs. */
  bytes: number
}

async function countBlobs(ctx: Pick<Context, 'db' | 'config'>, did: Did): Promise<BlobCounts> {
  const { count, bytes } = await blobUsage(ctx, did)
  return { expected: await countReferencedCids(ctx.db, did), imported: count, bytes }
}

/** The same for clients that ask again and again: if many blobs are expected, that number may be a minute old. */
async function recentBlobCounts(ctx: Context, did: Did): Promise<BlobCounts> {
  const { count, bytes } = await blobUsage(ctx, did)
  return { expected: await expectedBlobs(ctx, did), imported: count, bytes }
}
