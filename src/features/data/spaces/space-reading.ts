/** What an account reads of its own repository in a space: records, the changes to them, and a signed commit. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { withinBytes } from '../../../base/within-bytes.ts'
import { JsonText } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { dataToJson } from '../../../protocol/data-model.ts'
import {
  parseTid,
  type Did,
  type Nsid,
  type RecordKey,
  type SpaceUri,
  type Tid,
} from '../../../protocol/identifiers.ts'
import { jsonText } from '../../../protocol/json-text.ts'
import type { LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import { parseSpaceRecordUri, spaceRecordUri } from '../../../protocol/space-address.ts'
import { COMMIT_SEED_BYTES, signSpaceCommit, type SpaceCommit } from '../../../protocol/space-commit.ts'
import { setHash } from '../../../protocol/space-hash.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import { onceSettled, settledKeyOf } from '../../identity/account-keys/account-keys.ts'
import { repoNotFound } from './space-access.ts'
import {
  findSpaceRecord,
  findSpaceRepo,
  listSpaceEntries,
  listSpaceOps,
  spaceEntriesAt,
  spaceRecordsAt,
  type SpaceEntry,
  type SpaceOp,
  type SpaceRecord,
  type SpaceRepo,
} from './space-store.ts'

/** Most bytes of records in a page; a single record may exceed them. Decoding takes up to 50 ms per MiB. */
const MAX_PAGE_BYTES = 512 * 1024
/** Bytes of records after which other requests get a turn. A single record may have more. */
const TURN_BYTES = 64 * 1024

interface Place {
  space: SpaceUri
  repo: Did
}

/** Throws `RepoNotFound` if the account has written nothing in the space. */
async function repoAt(reader: Reader, { space, repo }: Place): Promise<SpaceRepo> {
  const found = await findSpaceRepo(reader, repo, space)
  if (found === null) throw repoNotFound()
  return found
}

/** A record as `{"uri":…,"cid":…,"value":…}`. */
export async function spaceRecord(
  { db }: Context,
  { collection, rkey, ...place }: Place & { collection: Nsid; rkey: RecordKey },
): Promise<JsonText> {
  const path = `${collection}/${rkey}`
  const record = await findSpaceRecord(db, (await repoAt(db, place)).id, path)
  if (record === null) throw new Refusal(400, 'RecordNotFound', 'Could not find the record')
  const uri = spaceRecordUri(place.space, place.repo, path)
  return new JsonText(
    `{"uri":${JSON.stringify(uri)},"cid":"${record.cid.toString()}","value":${jsonText(record.value)}}`,
  )
}

export interface ListedRecords extends Place {
  collection?: Nsid
  limit: number
  /** URI of the last record of the page before. */
  cursor?: string
  reverse?: boolean
  excludeValues?: boolean
}

/**
 * A page of records by descending URI, or ascending if `reverse`; it ends early if its records would exceed
 * `MAX_PAGE_BYTES`.
 */
export async function spaceRecords(ctx: Context, listed: ListedRecords): Promise<JsonText> {
  const { collection = null, limit, cursor, reverse = false, excludeValues = false, ...place } = listed
  const after = cursor === undefined ? null : pathIn(cursor, place)
  const { entries, shown, values } = await ctx.db.shortSnapshot(async (reader) => {
    const { id } = await repoAt(reader, place)
    const found = await listSpaceEntries(reader, id, { collection, after, descending: !reverse, limit })
    const within = excludeValues ? found : withinBytes(found, MAX_PAGE_BYTES)
    const read = excludeValues ? noRecords : await spaceRecordsAt(reader, id, pathsOf(within))
    return { entries: found, shown: within, values: read }
  })
  const records = await listText(
    shown.map(({ path, cid }) => {
      const [named, rkey] = path.split('/')
      const head = `{"collection":"${named}","rkey":${JSON.stringify(rkey)},"cid":"${cid.toString()}"`
      return { head, value: values.get(path)?.value ?? null }
    }),
  )
  const isShort = shown.length === entries.length && entries.length < limit
  const last = shown.at(-1)
  const next = isShort || last === undefined ? '' : spaceRecordUri(place.space, place.repo, last.path)
  return new JsonText(`{"records":${records}${next && `,"cursor":${JSON.stringify(next)}`}}`)
}

/** An entry of a list: its JSON up to the value, and the block of the value; null if it has none. */
interface ListedItem {
  head: string
  value: Uint8Array | null
}

/** The JSON of a list, whose values are decoded in turns with other requests. */
async function listText(items: readonly ListedItem[]): Promise<string> {
  const texts: string[] = []
  let bytes = 0
  for (const { head, value } of items) {
    if (bytes >= TURN_BYTES) {
      await nextTurn()
      bytes = 0
    }
    texts.push(value === null ? `${head}}` : jsonText(value, { before: `${head},"value":`, after: '}' }))
    bytes += value?.length ?? 0
  }
  return `[${texts.join(',')}]`
}

function pathIn(cursor: string, { space, repo }: Place): string {
  const address = parseSpaceRecordUri(cursor)
  if (address === null || address.space.uri !== space || address.author !== repo) throw malformedCursor()
  return `${address.collection}/${address.rkey}`
}

const malformedCursor = () => new Refusal(400, 'MalformedCursor', 'Malformed cursor')

/** A commit of the present state, made for the caller: `{"commit":…}`. */
export const latestCommit = (ctx: Context, place: Place): Promise<{ commit: ReturnType<typeof commitView> }> =>
  settled(ctx, place.repo, async () => {
    const key = await settledKeyOf(ctx, ctx.db, place.repo)
    return { commit: commitView(signedCommit(key, place, await repoAt(ctx.db, place))) }
  })

/** Runs a read that signs, and runs it again if the key was being replaced. Throws `SigningHeld` if it still is. */
async function settled<T>(ctx: Context, did: Did, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    await onceSettled(ctx, did, error)
    return read()
  }
}

/** A commit of the state that was read, made for one reader. Throws `RepoNotFound` if the account is gone. */
export function signedCommit(
  key: SigningKey | null,
  { space, repo }: Place,
  { rev, state }: Pick<SpaceRepo, 'rev' | 'state'>,
): SpaceCommit {
  if (key === null) throw repoNotFound()
  const ikm = crypto.getRandomValues(new Uint8Array(COMMIT_SEED_BYTES))
  return signSpaceCommit({ space, author: repo, rev, ikm }, setHash(new Uint8Array(state)), key)
}

const commitView = (commit: SpaceCommit): LexDefs['com.atproto.space.defs#commit'] =>
  dataToJson({ ...commit }) as unknown as LexDefs['com.atproto.space.defs#commit']

export interface ListedOps extends Place {
  since?: Tid
  limit: number
  /** `rev/idx` of the last change of the page before. */
  cursor?: string
  excludeValues?: boolean
}

/**
 * A page of changes after a revision, oldest first. The last page has a commit, any other page a cursor. A change
 * includes the value only if the record is still the one that it wrote. Changes are only kept for a while; a reader who
 * has missed some notices by comparing hashes.
 */
export async function spaceOps(ctx: Context, listed: ListedOps): Promise<JsonText> {
  const { since = '', limit, cursor, excludeValues = false, ...place } = listed
  const after = cursor === undefined ? { rev: since as Tid, idx: MAX_INDEX } : placeIn(cursor)
  const page = async (reader: Reader) => {
    const repo = await repoAt(reader, place)
    const ops = await listSpaceOps(reader, repo.id, after, limit)
    const present = excludeValues ? noEntries : await spaceEntriesAt(reader, repo.id, pathsOf(ops))
    const isCurrent = ({ path, cid }: SpaceOp) => cid !== null && cid.equals(present.get(path)?.cid)
    const shown = withinBytes(
      ops.map((op) => ({ op, bytes: isCurrent(op) ? present.get(op.path)!.bytes : 0 })),
      MAX_PAGE_BYTES,
    )
    const current = shown.map(({ op }) => op).filter(isCurrent)
    const values = await spaceRecordsAt(reader, repo.id, pathsOf(current))
    const items = shown.map(({ op }) => ({
      head: opHead(op),
      value: isCurrent(op) ? values.get(op.path)!.value : null,
    }))
    const last = shown.at(-1)
    const end =
      last !== undefined && (shown.length < ops.length || ops.length === limit)
        ? `"cursor":"${last.op.rev}/${last.op.idx}"`
        : `"commit":${JSON.stringify(commitView(signedCommit(await settledKeyOf(ctx, reader, place.repo), place, repo)))}`
    return { items, end }
  }
  const { items, end } = await settled(ctx, place.repo, () => ctx.db.shortSnapshot(page))
  return new JsonText(`{"ops":${await listText(items)},${end}}`)
}

const MAX_INDEX = 9999
const noEntries: ReadonlyMap<string, SpaceEntry> = new Map()
const noRecords: ReadonlyMap<string, SpaceRecord> = new Map()
const pathsOf = (rows: readonly { path: string }[]): string[] => [...new Set(rows.map(({ path }) => path))]

function opHead({ rev, path, cid, prev }: SpaceOp): string {
  const [collection, rkey] = path.split('/')
  const op = JSON.stringify({ rev, collection, rkey, cid: cid && cid.toString(), prev: prev && prev.toString() })
  return op.slice(0, -1)
}

function placeIn(cursor: string): Pick<SpaceOp, 'rev' | 'idx'> {
  const [text = '', place = '', ...rest] = cursor.split('/')
  const rev = parseTid(text)
  if (rev === null || !/^\d{1,4}$/.test(place) || rest.length > 0) throw malformedCursor()
  return { rev, idx: Number(place) }
}
