/**
 * Writes of an account to its repository in a space. The first write makes the repository.
 *
 * There is no commit to sign and no event: readers ask, and each gets a commit of its own (`space-reading.ts`).
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { forbidden, invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, together, type Tx } from '../../../platform/database/database.ts'
import type { Cid } from '../../../protocol/cid.ts'
import type { Did, Nsid, RecordKey, Tid } from '../../../protocol/identifiers.ts'
import { parseSpaceUri, spaceRecordUri, type SpaceAddress } from '../../../protocol/space-address.ts'
import { addToSet, emptySetState, removeFromSet, setElement, setLanes } from '../../../protocol/space-hash.ts'
import type { SpacePermissions } from '../../../protocol/space-scopes.ts'
import { revalidationOf, type AccessCaller } from '../../access/callers/callers.ts'
import { activeWriter } from '../../identity/account-keys/account-keys.ts'
import { refuseRecords } from '../../identity/quotas/quotas.ts'
import { blobReferences, spaceBlobs } from '../blobs/blobs.ts'
import { newRecords, nextRev, requireConfirmedAddress } from '../repo/repo.ts'
import { scopeMissing, spacePermissions } from './space-access.ts'
import {
  deleteSpaceRecords,
  findSpaceRepo,
  insertSpaceOps,
  insertSpaceRepo,
  putSpaceRecords,
  spaceRecordsBefore,
  spaceTotals,
  updateSpaceRepo,
  type RecordBefore,
  type RecordsBefore,
  type SpaceRepo,
} from './space-store.ts'

/** Most operations in one request. */
const MAX_WRITES = 200
/** Writes that are prepared, and elements that are hashed, in one turn of the event loop: a millisecond. */
const WRITES_PER_TURN = 16
/**
 * Most references to blobs that a request with several writes may delete. A record may have thousands, each of which is
 * a row. A single write needs no such bound: the length of the one record that it replaces bounds its references.
 */
const MAX_DROPPED_REFERENCES = 5000
/**
 * Longest URI of a space that can be written in. The DID of its authority may have any length, but entries of an index
 * may not.
 */
const MAX_SPACE_CHARS = 1024

export type SpaceWrite =
  | { action: 'create'; collection: Nsid; rkey?: RecordKey; record: Record<string, unknown> }
  | { action: 'update' | 'put'; collection: Nsid; rkey: RecordKey; record: Record<string, unknown> }
  | { action: 'delete'; collection: Nsid; rkey: RecordKey; lenient?: boolean }

export interface SpaceWriteInput {
  space: string
  repo: Did
  validate?: boolean
  writes: readonly SpaceWrite[]
}

export interface SpaceWriteResult {
  uri: string
  /** Null for a delete. */
  cid: Cid | null
  validationStatus?: 'valid' | 'unknown'
}

type PreparedRecord = Awaited<ReturnType<typeof newRecords.prepare>>

/** A write with the record that it writes, if it writes one. */
interface Prepared {
  action: SpaceWrite['action']
  collection: Nsid
  path: string
  written: PreparedRecord | null
  /** The record's element in the set hash, as lanes. */
  lanes: Uint8Array | null
  isLenient: boolean
}

/**
 * Apply the writes at one revision, all or none; later ones see earlier ones. Results are in the order of the writes,
 * with the bytes of all records and of their references to blobs.
 *
 * Refuses with `Forbidden` if the repository is not the caller's, with `ScopeMissingError` what the grant does not
 * cover, with `RecordAlreadyExists` or `RecordNotFound`, and with `InvalidRequest` above the limits of the server.
 */
export async function writeToSpace(
  ctx: Context,
  caller: AccessCaller,
  input: SpaceWriteInput,
): Promise<{ results: SpaceWriteResult[]; bytes: number }> {
  const { did } = caller
  if (input.repo !== did) throw forbidden('Only the account itself may write to its repository')
  if (input.writes.length > MAX_WRITES) throw invalidRequest(`Too many writes. Max: ${MAX_WRITES}`)
  if (input.space.length > MAX_SPACE_CHARS)
    throw invalidRequest(`The URI of the space is too long. Max: ${MAX_SPACE_CHARS} characters`)
  const space = parseSpaceUri(input.space)!
  const permissions = spacePermissions(ctx, caller)
  // Only the transaction knows whether a put creates or updates. Refuse here, before any work, a write that the grant
  // allows in no case.
  for (const write of input.writes)
    if (!mayBeAllowed(permissions, space, write))
      throw missing(space, possibleActions[write.action][0]!, write.collection)
  await requireConfirmedAddress(ctx, did)
  const prepared: Prepared[] = []
  for (const write of input.writes) {
    if (prepared.length > 0 && prepared.length % WRITES_PER_TURN === 0) await nextTurn()
    prepared.push(await prepare(ctx, write, input.validate))
  }
  await ctx.db.transactionOn(accountLock(did), (tx) => apply(ctx, tx, { caller, space, permissions, prepared }))
  const results = prepared.map(({ path, written }) => ({
    uri: spaceRecordUri(space.uri, did, path),
    cid: written && written.record.cid,
    ...(written?.status && { validationStatus: written.status }),
  }))
  return { results, bytes: prepared.reduce((sum, one) => sum + bytesOf(one, did + space.uri), 0) }
}

/** Bytes of a write in the database. `named`: the other names in the row of each reference to a blob. */
function bytesOf({ path, written }: Prepared, named: string): number {
  if (written === null) return 0
  const { bytes, blobs } = written.record
  const references = blobs.map(({ ref }) => ({ record: path, cid: ref.toString() }))
  return bytes.length + blobReferences.bytes(references, named)
}

const possibleActions = {
  create: ['create'],
  update: ['update'],
  put: ['create', 'update'],
  delete: ['delete'],
} as const satisfies Record<SpaceWrite['action'], readonly string[]>

const mayBeAllowed = (permissions: SpacePermissions, space: SpaceAddress, { action, collection }: SpaceWrite) =>
  possibleActions[action].some((possible) => permissions.mayWrite(space, possible, collection))

const missing = ({ authority, type, skey }: SpaceAddress, action: 'create' | 'update' | 'delete', collection: Nsid) =>
  scopeMissing({ authority, type, skey, collections: [collection], actions: [action], manage: [] })

async function prepare(ctx: Context, write: SpaceWrite, validate: boolean | undefined): Promise<Prepared> {
  const { action, collection } = write
  const rkey = write.rkey ?? (newRecords.nextKey(ctx) as string as RecordKey)
  const written = write.action === 'delete' ? null : await newRecords.prepare(ctx, { ...write, rkey, validate })
  const isLenient = write.action === 'delete' && write.lenient === true
  const path = `${collection}/${rkey}`
  const lanes = written && setLanes(setElement(path, written.record.cid))
  return { action, collection, path, written, lanes, isLenient }
}

interface Job {
  caller: AccessCaller
  space: SpaceAddress
  permissions: SpacePermissions
  prepared: readonly Prepared[]
}

/** What a path had before the write and has after it. */
interface Change {
  path: string
  cid: Cid | null
  prev: Cid | null
  /** The element for `cid` in the set hash, as lanes. */
  lanes: Uint8Array | null
}

async function apply(ctx: Context, tx: Tx, { caller, space, permissions, prepared }: Job): Promise<void> {
  const { did } = caller
  const paths = prepared.map(({ path }) => path)
  const [{ maxRecords }, before] = await together(
    activeWriter(ctx, tx, did, revalidationOf(ctx, caller)),
    findSpaceRepo(tx, did, space.uri),
  )
  const { records: known, references } =
    before === null ? nothingBefore : await spaceRecordsBefore(tx, did, before, paths, MAX_DROPPED_REFERENCES + 1)
  const changes = changesOf(space, permissions, prepared, known)
  if (changes.length === 0) return
  if (prepared.length > 1 && references > MAX_DROPPED_REFERENCES)
    throw invalidRequest(`Too many blobs in the records of these writes. Max: ${MAX_DROPPED_REFERENCES} for several`)

  const state = before === null ? emptySetState() : new Uint8Array(before.state)
  await changeSet(tx, state, changes)
  const added = changes.reduce((sum, { cid, prev }) => sum + Number(cid !== null) - Number(prev !== null), 0)
  await requireRoom(ctx, tx, { did, before, added, maxRecords })
  const rev = nextRev(ctx, before?.rev ?? null)
  const after = { rev, state, records: (before?.records ?? 0) + added }
  const id = before === null ? await insertSpaceRepo(tx, did, space, after) : before.id
  if (before !== null) await updateSpaceRepo(tx, before, after)
  await store(ctx, tx, { did, space, id, rev, prevRev: before?.rev ?? '', prepared, changes, known, references })
}

/**
 * Applies changes to the state of a set hash. Computes the elements of the previous records, in turns with requests
 * that read.
 */
async function changeSet(tx: Tx, state: Uint8Array, changes: readonly Change[]): Promise<void> {
  const lanesAt = new Map<string, Uint8Array | null>()
  let made = 0
  for (const { path, prev, lanes } of changes) {
    if (prev !== null) {
      const known = lanesAt.get(path)
      if (!known && ++made % WRITES_PER_TURN === 0) await tx.turn()
      removeFromSet(state, known ?? setElement(path, prev))
    }
    if (lanes !== null) addToSet(state, lanes)
    lanesAt.set(path, lanes)
  }
}

const nothingBefore: RecordsBefore = { records: new Map(), references: 0 }

/** Returns what each write changes, given the stored CIDs. Leaves out writes that change nothing. */
function changesOf(
  space: SpaceAddress,
  permissions: SpacePermissions,
  prepared: readonly Prepared[],
  stored: ReadonlyMap<string, RecordBefore>,
): Change[] {
  const present = new Map([...stored].map(([path, { cid }]) => [path, cid]))
  const changes: Change[] = []
  for (const { action, collection, path, written, lanes, isLenient } of prepared) {
    const prev = present.get(path) ?? null
    const doing = action === 'put' ? (prev === null ? 'create' : 'update') : action
    if (!permissions.mayWrite(space, doing, collection)) throw missing(space, doing, collection)
    if (doing === 'create' && prev !== null)
      throw new Refusal(400, 'RecordAlreadyExists', `There is already a record at ${path}`)
    if (doing !== 'create' && prev === null) {
      if (isLenient) continue
      throw new Refusal(400, 'RecordNotFound', `There is no record at ${path}`)
    }
    const cid = written && written.record.cid
    if (cid !== null && cid.equals(prev)) continue
    changes.push({ path, cid, prev, lanes })
    if (cid === null) present.delete(path)
    else present.set(path, cid)
  }
  return changes
}

/**
 * Refuses writes that add records beyond the limits on records in a space and on spaces, or beyond the account's quota,
 * which counts its records in all spaces.
 */
async function requireRoom(
  ctx: Context,
  tx: Tx,
  { did, before, added, maxRecords }: { did: Did; before: SpaceRepo | null; added: number; maxRecords: number },
): Promise<void> {
  if (added <= 0) return
  const { maxPerAccount, maxRecordsPerSpace } = ctx.config.spaces
  if ((before?.records ?? 0) + added > maxRecordsPerSpace)
    throw invalidRequest(`Too many records in the space. Max: ${maxRecordsPerSpace}`)
  if (before !== null && maxRecords === 0) return
  const { spaces, records } = await spaceTotals(tx, did)
  if (before === null && spaces >= maxPerAccount) throw invalidRequest(`Too many spaces. Max: ${maxPerAccount}`)
  if (maxRecords !== 0) refuseRecords(records + added, maxRecords)
}

interface Stored {
  did: Did
  space: SpaceAddress
  id: number
  rev: Tid
  prevRev: Tid | ''
  prepared: readonly Prepared[]
  changes: readonly Change[]
  known: ReadonlyMap<string, RecordBefore>
  /** How many references to blobs the records of the paths had; `MAX_DROPPED_REFERENCES` + 1 if they had more. */
  references: number
}

async function store(
  ctx: Context,
  tx: Tx,
  { did, space, id, rev, prevRev, prepared, changes, known, references }: Stored,
): Promise<void> {
  // If a path is written more than once, its last change counts.
  const last = new Map(changes.map(({ path, cid }) => [path, cid]))
  const records = new Map(
    prepared.flatMap(({ path, written }) =>
      written !== null && last.get(path)?.equals(written.record.cid) ? [[path, written.record]] : [],
    ),
  )
  const gone = [...last].flatMap(([path, cid]) => (cid === null ? [path] : []))
  await together(
    deleteSpaceRecords(tx, id, gone),
    putSpaceRecords(
      tx,
      id,
      [...records].map(([path, { cid, bytes }]) => ({ path, cid, rev, value: bytes })),
    ),
    insertSpaceOps(tx, id, { rev, prevRev }, changes),
    spaceBlobs.change(tx, {
      did,
      space: space.uri,
      rev,
      now: ctx.clock.now(),
      replaced: [...last.keys()].filter((path) => known.get(path)?.refers === true),
      replacedReferences: references > MAX_DROPPED_REFERENCES ? Infinity : references,
      added: [...records].flatMap(([path, { blobs, isValidated }]) =>
        blobs.map(({ ref, mimeType, size }) => ({
          record: path,
          cid: ref.toString(),
          mimeType,
          size,
          validated: isValidated,
        })),
      ),
    }),
  )
}
