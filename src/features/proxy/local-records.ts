/**
 * What an account wrote that another service has not seen yet: records of later commits than the last one it says it
 * has read.
 */
import type { Context } from '../../platform/context.ts'
import { decode } from '../../protocol/cbor.ts'
import { dataToJson } from '../../protocol/data-model.ts'
import { recordUri, type AtUri, type Did, type Handle, type Millis, type Tid } from '../../protocol/identifiers.ts'
import type { LexRecords } from '../../protocol/lexicons/generated/types.ts'
import { validateRecord } from '../../protocol/lexicons/lexicons.ts'
import { accountNotFound, accountOf } from '../accounts/accounts.ts'
import { INVALID_HANDLE } from '../identity/identity.ts'
import { hasRecordsUpTo, readRecord, recordsSince, type StoredRecord } from '../repo/repo.ts'

export type Post = LexRecords['app.bsky.feed.post']
export type Profile = LexRecords['app.bsky.actor.profile']

export interface LocalPost {
  uri: AtUri
  cid: string
  indexedAt: Millis
  record: Post
}

export interface LocalChanges {
  /** Null when it did not change. */
  profile: Profile | null
  /** Oldest first. */
  posts: LocalPost[]
  /** Of the profile and the posts; null when only other records changed. */
  oldestAt: Millis | null
}

/** The account as its own views show it. */
export interface LocalAuthor {
  did: Did
  handle: Handle
  profile: Profile | null
}

const POST_COLLECTION = 'app.bsky.feed.post'
const PROFILE_PATH = 'app.bsky.actor.profile/self'

/** A service that is further behind is not waited for. */
const MAX_RECORDS = 10

/**
 * Null when there is nothing new. So it is too when every record is new: a repository that has just moved here is as
 * new to us as to anybody, and its commits say nothing about what the service knew before.
 */
export async function changesSince({ db }: Context, did: Did, rev: Tid): Promise<LocalChanges | null> {
  const records = await recordsSince(db, did, rev, MAX_RECORDS)
  if (records.length === 0 || !(await hasRecordsUpTo(db, did, rev))) return null
  const visible = records.filter(({ takedownRef }) => takedownRef === null)
  const profile = visible.find(({ path }) => path === PROFILE_PATH)
  const posts = visible.filter(({ path }) => path.startsWith(`${POST_COLLECTION}/`))
  const listed = profile ? [profile, ...posts] : posts
  return {
    profile: profile ? contentOf('app.bsky.actor.profile', profile) : null,
    posts: posts.flatMap((stored) => localPost(did, stored) ?? []),
    oldestAt: listed.length === 0 ? null : Math.min(...listed.map(({ indexedAt }) => indexedAt)),
  }
}

function localPost(did: Did, stored: StoredRecord): LocalPost | null {
  const record = contentOf(POST_COLLECTION, stored)
  return record && { uri: recordUri(did, stored.path), cid: String(stored.cid), indexedAt: stored.indexedAt, record }
}

/** Null for a record that was written unchecked and does not hold. */
function contentOf<Name extends keyof LexRecords>(collection: Name, { value }: StoredRecord): LexRecords[Name] | null {
  const record = dataToJson(decode(value))
  return validateRecord(collection, record).status === 'valid' ? (record as unknown as LexRecords[Name]) : null
}

export async function localAuthor({ db }: Context, did: Did): Promise<LocalAuthor> {
  const account = await accountOf(db, did)
  if (!account) throw accountNotFound()
  const profile = await readRecord(db, did, PROFILE_PATH)
  const visible = profile?.takedownRef === null ? profile : null
  return { did, handle: account.handle ?? INVALID_HANDLE, profile: visible && contentOf('app.bsky.actor.profile', visible) }
}
