/** The data of an account as JSON for programs, in pages. */
import { invalidRequest, notFound } from '../../../http/errors.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { cidText } from '../../../protocol/cid.ts'
import { parseNsid, parseTid, recordUri, wireTime, type Did, type Tid } from '../../../protocol/identifiers.ts'
import { jsonText } from '../../../protocol/json-text.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { tidMicros } from '../../../protocol/tid.ts'
import { readRecord, repoHead } from '../../data/repo/repo.ts'
import {
  blobsOfRecord,
  listBrowsedBlobs,
  listBrowsedRecords,
  listCountedCollections,
  listRevisions,
  pathsOfRevision,
  recordsWithBlob,
} from './browsed-data-store.ts'

/** Rows on a page. */
export const ROWS = 20
/** The records of a collection or a commit are counted up to this number. */
const MAX_COUNTED = 1000
/** Larger records are not described in lists. */
const MAX_LISTED_BYTES = 16 * 1024
/** How many records are named for a blob or a commit, and how many blobs for a record. */
const NAMED = 5

type Json = Record<string, unknown>

/** A count that stops at a bound. */
export interface Counted {
  count: number
  /** Whether there are more. */
  isMore: boolean
}

const counted = (found: number, max: number): Counted => ({ count: Math.min(found, max), isMore: found > max })

/** Returns the value of a record; null if its block is damaged. */
function valueOf(block: Uint8Array): Json | null {
  try {
    return JSON.parse(jsonText(block)) as Json
  } catch (error) {
    if (error instanceof Malformed) return null
    throw error
  }
}

const timeOf = (rev: Tid): string => wireTime(Math.floor(tidMicros(rev) / 1000))

export interface CollectionsView {
  /** Null if the account has no repository. */
  head: { cid: string; rev: string; data: string; writtenAt: string } | null
  collections: { collection: string; records: Counted }[]
  cursor?: string
}

/** The head of the repository, and a page of its collections. */
export async function collectionsView(reader: Reader, did: Did, after: string | null): Promise<CollectionsView> {
  const repo = await repoHead(reader, did)
  const rows = await listCountedCollections(reader, did, { after, limit: ROWS, maxCounted: MAX_COUNTED })
  return {
    head: repo && {
      cid: cidText(repo.head.bytes),
      rev: repo.rev,
      data: cidText(repo.data.bytes),
      writtenAt: timeOf(repo.rev),
    },
    collections: rows.map(({ collection, records }) => ({ collection, records: counted(records, MAX_COUNTED) })),
    cursor: rows.length === ROWS ? rows.at(-1)!.collection : undefined,
  }
}

export interface ListedRecord {
  uri: string
  path: string
  cid: string
  bytes: number
  rev: string
  indexedAt: string
  isTakenDown: boolean
  /** Null if it is large. */
  value: Json | null
}

export interface RecordsView {
  collection: string
  records: ListedRecord[]
  cursor?: string
}

/** A page of a collection, the highest record keys first. Throws `InvalidRequest` if `name` is not an NSID. */
export async function recordsView(reader: Reader, did: Did, name: string, after: string | null): Promise<RecordsView> {
  const collection = parseNsid(name)
  if (collection === null) throw invalidRequest('collection: not an NSID')
  const rows = await listBrowsedRecords(reader, did, {
    collection,
    after,
    limit: ROWS,
    maxValueBytes: MAX_LISTED_BYTES,
  })
  return {
    collection,
    records: rows.map(({ path, cid, bytes, rev, indexedAt, takedownRef, value }) => ({
      uri: recordUri(did, path),
      path,
      cid: cidText(cid),
      bytes,
      rev,
      indexedAt: wireTime(indexedAt),
      isTakenDown: takedownRef !== null,
      value: value && valueOf(value),
    })),
    cursor: rows.length === ROWS ? rows.at(-1)!.path.slice(collection.length + 1) : undefined,
  }
}

export interface RecordView extends ListedRecord {
  blobs: string[]
  hasMoreBlobs: boolean
}

/** One record with its value. Throws `NotFound` if there is none at the path. */
export async function recordView(reader: Reader, did: Did, path: string): Promise<RecordView> {
  const record = await readRecord(reader, did, path)
  if (record === null) throw notFound('There is no such record.')
  const blobs = await blobsOfRecord(reader, did, path, NAMED + 1)
  return {
    uri: recordUri(did, path),
    path,
    cid: cidText(record.cid.bytes),
    bytes: record.value.length,
    rev: record.rev,
    indexedAt: wireTime(record.indexedAt),
    isTakenDown: record.takedownRef !== null,
    value: valueOf(record.value),
    blobs: blobs.slice(0, NAMED),
    hasMoreBlobs: blobs.length > NAMED,
  }
}

export interface BlobsView {
  blobs: {
    cid: string
    mimeType: string
    size: number
    uploadedAt: string
    isTakenDown: boolean
    /** Paths of some records that refer to it. */
    records: string[]
    hasMoreRecords: boolean
  }[]
  cursor?: string
}

/** A page of the blobs of an account, each with records that refer to it. */
export async function blobsView(reader: Reader, did: Did, after: string | null): Promise<BlobsView> {
  const rows = await listBrowsedBlobs(reader, did, after ?? '', ROWS)
  const records = await Promise.all(rows.map(({ cid }) => recordsWithBlob(reader, did, cid, NAMED + 1)))
  return {
    blobs: rows.map(({ cid, mimeType, size, uploadedAt, takedownRef }, i) => ({
      cid,
      mimeType,
      size,
      uploadedAt: wireTime(uploadedAt),
      isTakenDown: takedownRef !== null,
      records: records[i]!.slice(0, NAMED),
      hasMoreRecords: records[i]!.length > NAMED,
    })),
    cursor: rows.length === ROWS ? rows.at(-1)!.cid : undefined,
  }
}

export interface CommitsView {
  commits: {
    rev: string
    writtenAt: string
    records: Counted
    /** Paths of some of them. */
    paths: string[]
  }[]
  cursor?: string
}

/**
 * A page of the commits that wrote records which still exist, newest first. A repository keeps only its newest commit;
 * the others are known by what they wrote. Throws `InvalidRequest` if the cursor is not a revision.
 */
export async function commitsView(reader: Reader, did: Did, after: string | null): Promise<CommitsView> {
  if (after !== null && parseTid(after) === null) throw invalidRequest('Malformed cursor')
  const revs = await listRevisions(reader, did, after, ROWS)
  const paths = await Promise.all(revs.map((rev) => pathsOfRevision(reader, did, rev, MAX_COMMIT_COUNTED + 1)))
  return {
    commits: revs.map((rev, i) => ({
      rev,
      writtenAt: timeOf(rev),
      records: counted(paths[i]!.length, MAX_COMMIT_COUNTED),
      paths: paths[i]!.slice(0, NAMED),
    })),
    cursor: revs.length === ROWS ? revs.at(-1)! : undefined,
  }
}

const MAX_COMMIT_COUNTED = 100
