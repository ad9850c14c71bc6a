/**
 * Finds what an account wrote that another service has not indexed yet: the records of commits after the revision that
 * the service reports.
 */
import type { Context } from '../../../platform/context.ts'
import { decode } from '../../../protocol/cbor.ts'
import { dataToJson } from '../../../protocol/data-model.ts'
import {
  INVALID_HANDLE,
  recordUri,
  type AtUri,
  type Did,
  type Handle,
  type Millis,
  type Tid,
} from '../../../protocol/identifiers.ts'
import type { LexRecords } from '../../../protocol/lexicons/generated/types.ts'
import { validateRecord } from '../../../protocol/lexicons/lexicons.ts'
import { accountNotFound, accountOf } from '../../identity/accounts/accounts.ts'
import { readRecord, recordsSince, type StoredRecord } from '../repo/repo.ts'

export type Post = LexRecords['app.bsky.feed.post']
export type Profile = LexRecords['app.bsky.actor.profile']

export interface LocalPost {
  uri: AtUri
  cid: string
  indexedAt: Millis
  record: Post
}

export interface LocalChanges {
  /** Null if it did not change. */
  profile: Profile | null
  /** Oldest first. */
  posts: LocalPost[]
  /** When the oldest of the profile and the posts was indexed; null if only other records changed. */
  oldestAt: Millis | null
}

/** The account as views of its own records show it. */
export interface LocalAuthor {
  did: Did
  handle: Handle
  profile: Profile | null
}

const POST_COLLECTION = 'app.bsky.feed.post'
const PROFILE_PATH = 'app.bsky.actor.profile/self'

/** At most this many records after the revision are considered, oldest first. */
const MAX_RECORDS = 10
/** Larger records are not added to responses, because each such request would decode them. */
const MAX_RECORD_BYTES = 64 * 1024
/** Most bytes of all added records: decoding ten of the largest would take up to 100 ms. */
const MAX_TOTAL_BYTES = 2 * MAX_RECORD_BYTES

/** Returns the changes after `rev`, or null if `recordsSince` finds none. */
export async function changesSince({ db }: Context, did: Did, rev: Tid): Promise<LocalChanges | null> {
  const records = await recordsSince(db, did, rev, MAX_RECORDS)
  if (records.length === 0) return null
  const visible = records.filter(({ takedownRef }) => takedownRef === null)
  const profile = visible.find(({ path }) => path === PROFILE_PATH)
  const posts = visible.filter(({ path }) => path.startsWith(`${POST_COLLECTION}/`))
  const listed = profile ? [profile, ...posts] : posts
  let bytes = 0
  const hasRoom = ({ value: { length } }: StoredRecord) =>
    length <= MAX_RECORD_BYTES && (bytes += length) <= MAX_TOTAL_BYTES
  return {
    profile: profile && hasRoom(profile) ? contentOf('app.bsky.actor.profile', profile) : null,
    posts: posts.filter(hasRoom).flatMap((stored) => localPost(did, stored) ?? []),
    oldestAt: listed.length === 0 ? null : Math.min(...listed.map(({ indexedAt }) => indexedAt)),
  }
}

function localPost(did: Did, stored: StoredRecord): LocalPost | null {
  const record = contentOf(POST_COLLECTION, stored)
  return record && { uri: recordUri(did, stored.path), cid: String(stored.cid), indexedAt: stored.indexedAt, record }
}

/** Returns null if the record is unusually large, or was written without validation and does not match its lexicon. */
function contentOf<Name extends keyof LexRecords>(collection: Name, { value }: StoredRecord): LexRecords[Name] | null {
  if (value.length > MAX_RECORD_BYTES) return null
  const record = dataToJson(decode(value))
  return validateRecord(collection, record).status === 'valid' ? (record as unknown as LexRecords[Name]) : null
}

/** Throws `AccountNotFound` if the account is gone. Leaves out a profile that was taken down. */
export async function localAuthor({ db }: Context, did: Did): Promise<LocalAuthor> {
  const account = await accountOf(db, did)
  if (!account) throw accountNotFound()
  const profile = await readRecord(db, did, PROFILE_PATH)
  const visible = profile?.takedownRef === null ? profile : null
  return {
    did,
    handle: account.handle ?? INVALID_HANDLE,
    profile: visible && contentOf('app.bsky.actor.profile', visible),
  }
}
