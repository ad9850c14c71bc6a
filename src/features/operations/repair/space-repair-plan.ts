/**
 * Plans what can be rebuilt of an account's repositories in spaces, and from what. Changes nothing.
 *
 * These repositories have no tree and no stored signature. The state of the set hash says which records are right: it
 * proves every attempt to complete them from the rows, the latest changes, a backup or an archive. If no attempt fits,
 * what is stored is kept, and what no source has is lost.
 */
import type { Context } from '../../../platform/context.ts'
import { unthrottled } from '../../../base/pace.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { decode, type Data, type DataObject } from '../../../protocol/cbor.ts'
import { Cid, cidFromBytes, cidOfCbor, equalBytes, parseCid } from '../../../protocol/cid.ts'
import { parseTid, type Did, type SpaceUri, type Tid } from '../../../protocol/identifiers.ts'
import type { PublicKey } from '../../../protocol/keys.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { parseSpaceUri, type SpaceAddress } from '../../../protocol/space-address.ts'
import { parseSpaceCommit, verifySpaceCommit } from '../../../protocol/space-commit.ts'
import { addToSet, emptySetState, removeFromSet, setElement } from '../../../protocol/space-hash.ts'
import { tidMicros } from '../../../protocol/tid.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { spaceParts, type ChangeLog, type SpacePlace } from '../../data/spaces/spaces.ts'
import type { BlockPool, Source } from './block-pool.ts'
import { isPath, maxPage } from './row-store.ts'
import {
  hasSpaceRows,
  placeTrace,
  repoTrace,
  spaceInBackup,
  spaceReferences,
  spacesInBackup,
  spacesWithReferences,
} from './space-row-store.ts'

const PAGE_SPACES = 100
const MAX_AHEAD_MILLIS = 10 * 60_000

/** A record to write. Its block is in the pool. */
export interface PlannedSpaceRecord {
  path: string
  cid: Cid
  /** Null: the revision of the repair. */
  rev: Tid | null
}

export interface PlannedSpace {
  id: number
  address: SpaceAddress
  /** The revision in its row; null if that is lost. */
  before: Tid | null
  /** Null: a new one. */
  rev: Tid | null
  /** The revision that a new one has to follow. */
  newestRev: Tid | null
  records: number
  state: Uint8Array
  puts: readonly PlannedSpaceRecord[]
  deletes: readonly string[]
  /** Whether to forget the latest changes: readers then compare hashes, and read all records again. */
  forgetsChanges: boolean
  /** Records whose references are replaced, and the references that they get. */
  referrers: readonly string[]
  references: readonly { record: string; cid: string; rev: Tid | null }[]
}

export interface SpaceRepairPlan {
  did: Did
  spaces: readonly PlannedSpace[]
  /** Spaces of which only references to blobs are left. These references are removed. */
  strays: readonly SpaceUri[]
  /** Holds the blocks of records. */
  pool: BlockPool
  steps: string[]
  /** What the repair loses because no source has it, in words. */
  losses: string[]
  /** Records that a source has, but that may have been deleted since, each as `<number of the repository> <path>`. */
  uncertain: string[]
  /** What cannot be decided and is therefore left alone. */
  undecided: string[]
}

export interface SpaceSources {
  pool: BlockPool
  /** Roots of an archive whose blocks are in the pool. */
  archiveRoots: readonly Cid[]
  backup: Reader | null
}

/** `keepUncertain`: whether records come back that may have been deleted since. */
export async function planSpaceRepair(
  ctx: Context,
  did: Did,
  sources: SpaceSources,
  keepUncertain: boolean,
): Promise<SpaceRepairPlan> {
  const key = await signingKeyOf(ctx, ctx.db, did)
  const isAhead = (rev: Tid) => tidMicros(rev) / 1000 > ctx.clock.now() + MAX_AHEAD_MILLIS
  return ctx.db.snapshot(async (reader) => {
    const plan = {
      did,
      pool: sources.pool,
      steps: [],
      losses: [],
      uncertain: [],
      undecided: [],
    }
    const planner = new SpacePlanner(reader, plan, sources, key?.publicKey ?? null, isAhead)
    return { ...plan, ...(await planner.planAll(keepUncertain)) }
  })
}

type Entries = ReadonlyMap<string, Cid>

/** The rows of records. */
interface StoredRecords {
  /** CIDs in the rows, by path. */
  said: Map<string, Cid>
  /** CIDs of the blocks, by path. */
  are: Map<string, Cid>
  revs: Map<string, string>
  /** Keys of rows that are not paths. */
  misnamed: string[]
  /** Paths of rows whose CID is invalid. */
  nameless: Set<string>
}

interface Base {
  source: Source
  entries: Entries
  /** Null if it is not known: then changes cannot be added to this state. */
  rev: Tid | null
}

class SpacePlanner {
  /** The last state, from which the next is computed: adding or removing an element takes 50 µs. */
  #known: { entries: Entries; state: Uint8Array } = { entries: new Map(), state: emptySetState() }

  constructor(
    readonly reader: Reader,
    readonly plan: Omit<SpaceRepairPlan, 'spaces' | 'strays'>,
    readonly sources: SpaceSources,
    readonly key: PublicKey | null,
    readonly isAhead: (rev: Tid) => boolean,
  ) {}

  async planAll(keepUncertain: boolean): Promise<Pick<SpaceRepairPlan, 'spaces' | 'strays'>> {
    const { reader, plan } = this
    const planned: PlannedSpace[] = []
    const seen = new Set<SpaceUri>()
    for (let after = ''; ;) {
      const places = await spaceParts.places(reader, plan.did, after, PAGE_SPACES)
      for (const place of places) {
        const faults = spaceParts.faults(reader, plan.did, place, unthrottled)
        const isDamaged = (await faults.next()).done !== true
        if (!isDamaged) seen.add(place.space)
        const settled = isDamaged ? await this.#settle(place) : null
        if (settled === null || seen.has(settled.address.uri)) continue
        seen.add(settled.address.uri)
        planned.push(await this.#planSpace(settled, keepUncertain))
      }
      if (places.length < PAGE_SPACES) break
      after = places.at(-1)!.space
    }
    const { lost, strays } = await this.#lostPlaces(seen)
    for (const settled of lost) planned.push(await this.#planSpace(settled, keepUncertain))
    return { spaces: planned, strays }
  }

  /** Returns the space and the number of a damaged repository; null if nothing tells them. */
  async #settle({ space, repo, placeId }: SpacePlace): Promise<Settled | null> {
    const { reader, plan } = this
    if (repo !== null && placeId !== null && repo.id !== placeId) {
      const [ofRow, ofPlace] = [await hasSpaceRows(reader, repo.id), await hasSpaceRows(reader, placeId)]
      const foreign = await repoTrace(reader, placeId)
      const id = ofPlace && !ofRow && foreign === null ? placeId : repo.id
      plan.steps.push(`repository ${id} in a space: its number was stored in only one of two places`)
      return this.#settled(id, space, repo)
    }
    const id = repo?.id ?? placeId!
    const [row, noted] = [await repoTrace(reader, id), await placeTrace(reader, id)]
    if (row !== null && noted !== null && (row.did !== noted.did || row.space !== noted.space)) {
      const isRow = await this.#isPlausible(row, row)
      const isNoted = await this.#isPlausible(noted, row)
      if (isRow === isNoted) {
        plan.undecided.push(`repository ${id} in a space: two rows disagree where it belongs`)
        return null
      }
      const right = isRow ? row : noted
      if (right.did !== plan.did) {
        plan.undecided.push(`repository ${id} in a space: it belongs to ${right.did}, whose repair puts it right`)
        return null
      }
      plan.steps.push(`repository ${id} in a space: one of two rows says where it belongs`)
      const place = (await this.#placesOf(right.did)).find((one) => one.space === right.space)
      return this.#settled(id, right.space, place?.repo ?? null)
    }
    if (row === null) plan.steps.push(`repository ${id} in a space: its row is lost, and made again`)
    if (noted === null) plan.steps.push(`repository ${id} in a space: where it belongs is noted again`)
    return this.#settled(id, space, repo)
  }

  #settled(id: number, space: SpaceUri, repo: SpacePlace['repo']): Settled | null {
    const address = parseSpaceUri(space)
    if (address !== null) return { id, address, repo }
    this.plan.undecided.push(`repository ${id} in a space: nothing says where it belongs`)
    return null
  }

  async #isPlausible(
    { did, space }: { did: Did | null; space: SpaceUri },
    { authority, type }: { authority: string; type: string },
  ): Promise<boolean> {
    const address = parseSpaceUri(space)
    return (
      did !== null &&
      address?.authority === authority &&
      address.type === type &&
      (await accountOf(this.reader, did)) !== null
    )
  }

  /**
   * Finds repositories that have lost both of their rows. A backup knows their numbers; they count if anything else is
   * left of them. Without a backup, only references are left of them.
   */
  async #lostPlaces(seen: ReadonlySet<SpaceUri>): Promise<{ lost: Settled[]; strays: SpaceUri[] }> {
    const { reader, plan, sources } = this
    const referring = new Set((await spacesWithReferences(reader, plan.did)).filter((space) => !seen.has(space)))
    const lost: Settled[] = []
    for (const { id, space } of sources.backup === null ? [] : await spacesInBackup(sources.backup, plan.did)) {
      if (seen.has(space) || (await repoTrace(reader, id)) !== null || (await placeTrace(reader, id)) !== null) continue
      if (!referring.has(space) && !(await hasSpaceRows(reader, id))) continue
      const settled = this.#settled(id, space, null)
      if (settled === null) continue
      referring.delete(space)
      plan.steps.push(`repository ${id} in a space: its rows are lost, and a backup says where it belongs`)
      lost.push(settled)
    }
    const strays: SpaceUri[] = []
    // Two rows of such a repository disagree about where it belongs.
    const undecided = new Set((await this.#placesOf(plan.did)).map(({ space }) => space))
    for (const space of referring) {
      const isPlace = parseSpaceUri(space) !== null
      if (isPlace && undecided.has(space)) continue
      strays.push(space)
      if (isPlace) plan.losses.push('references to blobs in a space, of whose records nothing is left')
      else plan.steps.push('references to blobs in something that is not a space are removed')
    }
    return { lost, strays }
  }

  #placesOf(did: Did): Promise<SpacePlace[]> {
    return spaceParts.places(this.reader, did, '', Number.MAX_SAFE_INTEGER)
  }

  async #planSpace({ id, address, repo }: Settled, keepUncertain: boolean): Promise<PlannedSpace> {
    const { plan, reader } = this
    const name = `repository ${id} in a space`
    const log = await spaceParts.changes(reader, id, unthrottled)
    const rows = await this.#readRecords(reader, id, 'records')
    const bases = await this.#basesOf(address)
    const isProof = repo !== null && repo.state.length === emptySetState().length
    const found = this.#entriesOf({ name, rows, log, bases, target: isProof ? repo.state : null })
    const entries = new Map(found.entries)
    if (found.how === null) {
      for (const [path, cid] of found.uncertain) {
        plan.uncertain.push(`${id} ${path}`)
        if (keepUncertain) entries.set(path, cid)
      }
      const unknown = (repo?.records ?? 0) - entries.size
      if (unknown > 0 && found.uncertain.size === 0)
        plan.losses.push(`${name}: ${unknown} records of which nothing is left`)
    }
    this.#findBlocks(name, entries, rows)
    const state = this.#stateOf(entries)
    const newestRev = this.#newestRev(repo, log, rows)
    const revs = new Map([...entries].map(([path, cid]) => [path, revOf(path, cid, rows, log, newestRev)]))
    const isLogRight =
      log.faults.length === 0 &&
      [...log.last].every(([path, { cid }]) => (entries.get(path)?.toString() ?? null) === cid) &&
      [...entries].every(([path, cid]) => {
        const rev = revs.get(path)!
        return rev !== null && spaceParts.changeFault(log, { path, cid, rev }) === null
      })
    const isSame =
      isProof &&
      equalBytes(state, repo.state) &&
      isLogRight &&
      repo.rev === newestRev &&
      (log.newest ?? repo.rev) === repo.rev
    if (!isSame) plan.steps.push(`${name}: it gets a new revision, and its latest changes are forgotten`)
    const deletes = [...[...rows.said.keys()].filter((path) => !entries.has(path)), ...rows.misnamed]
    const puts = [...entries].flatMap(([path, cid]): PlannedSpaceRecord[] => {
      const rev = revs.get(path) ?? (isSame ? newestRev : null)
      const isThere =
        !rows.nameless.has(path) && [rows.said, rows.are].every((stored) => stored.get(path)?.equals(cid) === true)
      return isThere && rows.revs.get(path) === rev ? [] : [{ path, cid, rev }]
    })
    if (puts.length + deletes.length > 0)
      plan.steps.push(`${name}: ${puts.length} records are written, and ${deletes.length} rows go`)
    const records = { entries, revOf: (path: string) => revs.get(path) ?? (isSame ? newestRev : null) }
    return {
      id,
      address,
      before: repo?.rev ?? null,
      rev: isSame ? repo.rev : null,
      newestRev,
      records: entries.size,
      state,
      puts,
      deletes,
      forgetsChanges: !isSame,
      ...(await this.#referencesOf(name, address.uri, records)),
    }
  }

  async #readRecords(reader: Reader, id: number, source: Source): Promise<StoredRecords> {
    const rows: StoredRecords = { said: new Map(), are: new Map(), revs: new Map(), misnamed: [], nameless: new Set() }
    for await (const page of spaceParts.records(reader, id, maxPage))
      for (const { path, cid, rev, value } of page) {
        if (isObject(value)) this.sources.pool.add(source, value)
        if (!isPath(path)) rows.misnamed.push(path)
        else {
          const said = cidFromBytes(cid.bytes)
          const is = cidOfCbor(value)
          if (said === null) rows.nameless.add(path)
          rows.said.set(path, said ?? is)
          rows.are.set(path, is)
          rows.revs.set(path, rev)
        }
      }
    return rows
  }

  /** Complete older states from other sources. */
  async #basesOf({ uri }: SpaceAddress): Promise<Base[]> {
    const { sources, plan } = this
    const bases: Base[] = []
    const stored = sources.backup && (await spaceInBackup(sources.backup, plan.did, uri))
    if (stored) {
      const { said, are } = await this.#readRecords(sources.backup!, stored.id, 'backup')
      const entries = new Map([...said].filter(([path, cid]) => are.get(path)!.equals(cid)))
      bases.push({ source: 'backup', entries, rev: parseTid(stored.rev) })
    }
    const archived = this.#archiveOf(uri)
    if (archived !== null) bases.push(archived)
    return bases
  }

  #archiveOf(space: SpaceUri): Base | null {
    const { sources, plan, key } = this
    const [commitCid, indexCid] = sources.archiveRoots
    const commit = commitCid === undefined ? null : sources.pool.get(commitCid)
    const index = indexCid === undefined ? null : sources.pool.get(indexCid)
    if (commit === null || index === null || key === null) return null
    try {
      const signed = parseSpaceCommit(decode(commit))
      if (!verifySpaceCommit(signed, space, plan.did, key)) return null
      const links = Object.entries(decode(index) as DataObject)
      const entries = new Map(links.filter((link): link is [string, Cid] => isPath(link[0]) && link[1] instanceof Cid))
      return { source: 'archive', entries, rev: signed.rev }
    } catch (error) {
      if (error instanceof Malformed) return null
      throw error
    }
  }

  /**
   * Returns the records that a repository should have. `how` says what they follow from, if the set hash proves them.
   * Otherwise `how` is null, and `uncertain` has further records from other sources.
   */
  #entriesOf({ name, rows, log, bases, target }: Known): Found {
    const { said, are } = rows
    const logged = withChanges(said, log, '')
    const tries: [Entries, string][] = [
      [said, 'its records'],
      [withAll(said, are), 'the blocks of its records'],
      [logged, 'its records and its latest changes'],
      [withoutMoved(logged, said, log), 'its records and its latest changes'],
      ...bases.flatMap(({ source, entries, rev }): [Entries, string][] => [
        [rev === null ? entries : withChanges(entries, log, rev), `the ${source} and its latest changes`],
        [withChanges(withAll(entries, said), log, ''), `its records and the ${source}`],
        [entries, `the ${source}`],
      ]),
    ]
    for (const [entries, how] of tries) {
      if (target === null || !equalBytes(this.#stateOf(entries), target)) continue
      if (entries !== said) this.plan.steps.push(`${name}: its records follow from ${how}, as the set hash proves`)
      return { entries, how, uncertain: new Map() }
    }
    const uncertain = new Map<string, Cid>()
    for (const { entries } of bases)
      for (const [path, cid] of entries) if (!logged.has(path) && !log.last.has(path)) uncertain.set(path, cid)
    this.plan.steps.push(`${name}: the set hash is made again from what is left`)
    return { entries: logged, how: null, uncertain }
  }

  #stateOf(entries: Entries): Uint8Array {
    const before = this.#known
    const state = new Uint8Array(before.state)
    for (const [path, cid] of before.entries)
      if (!entries.get(path)?.equals(cid)) removeFromSet(state, setElement(path, cid))
    for (const [path, cid] of entries)
      if (!before.entries.get(path)?.equals(cid)) addToSet(state, setElement(path, cid))
    // Copy the entries, because callers may change them.
    this.#known = { entries: new Map(entries), state }
    return new Uint8Array(state)
  }

  /** Remove records whose block no source has, or replace them by another version that is left. */
  #findBlocks(name: string, entries: Map<string, Cid>, { are }: StoredRecords): void {
    const { plan, sources } = this
    const found = new Map<Source, number>()
    for (const [path, cid] of entries) {
      const block = sources.pool.locate(cid)
      if (block !== null) {
        if (!are.get(path)?.equals(cid)) found.set(block.source, (found.get(block.source) ?? 0) + 1)
        continue
      }
      const other = are.get(path)
      if (other !== undefined && sources.pool.get(other) !== null) {
        plan.losses.push(`${name}: record ${path} as ${cid}: another version of it is left, and takes its place`)
        entries.set(path, other)
      } else {
        plan.losses.push(`${name}: record ${path}`)
        entries.delete(path)
      }
    }
    for (const [source, count] of found) plan.steps.push(`${name}: ${count} records come from the ${source}`)
  }

  #newestRev(repo: SpacePlace['repo'], log: ChangeLog, { revs }: StoredRecords): Tid | null {
    const own = repo === null ? null : parseTid(repo.rev)
    // Row and changes agree, so it was a revision, whatever the clock says now.
    if (own !== null && own === log.newest) return own
    const all = [own, log.newest, ...[...revs.values()].map(parseTid)]
    return all.reduce(
      (most, rev) => (rev !== null && !this.isAhead(rev) && (most === null || rev > most) ? rev : most),
      null,
    )
  }

  async #referencesOf(
    name: string,
    space: SpaceUri,
    { entries, revOf: revAt }: { entries: Entries; revOf: (path: string) => Tid | null },
  ): Promise<Pick<PlannedSpace, 'referrers' | 'references'>> {
    const { plan, sources, reader } = this
    const stored = Map.groupBy(await spaceReferences(reader, plan.did, space), ({ record }) => record)
    const referrers = new Set([...stored.keys()].filter((path) => !entries.has(path)))
    const references: { record: string; cid: string; rev: Tid | null }[] = []
    for (const [path, cid] of entries) {
      const has = new Set(spaceParts.blobsOf(sources.pool.get(cid)!))
      const named = stored.get(path) ?? []
      const rev = revAt(path)
      if (has.size === named.length && named.every((one) => has.has(one.cid) && one.rev === rev)) continue
      referrers.add(path)
      for (const blob of has) references.push({ record: path, cid: blob, rev })
    }
    if (referrers.size > 0) plan.steps.push(`${name}: references to blobs of ${referrers.size} records are put right`)
    return { referrers: [...referrers], references }
  }
}

interface Settled {
  id: number
  address: SpaceAddress
  repo: SpacePlace['repo']
}

interface Known {
  name: string
  rows: StoredRecords
  log: ChangeLog
  bases: readonly Base[]
  /** The state of the set hash; null if it is lost. */
  target: Uint8Array | null
}

interface Found {
  entries: Entries
  how: string | null
  uncertain: ReadonlyMap<string, Cid>
}

function isObject(value: Uint8Array): boolean {
  try {
    const data: Data = decode(value)
    return (
      typeof data === 'object' &&
      data !== null &&
      !Array.isArray(data) &&
      !(data instanceof Uint8Array) &&
      !(data instanceof Cid)
    )
  } catch (error) {
    if (error instanceof Malformed) return false
    throw error
  }
}

const withAll = (entries: Entries, others: Entries): Entries => new Map([...entries, ...others])

/** Returns the entries with the changes since a revision applied. */
function withChanges(entries: Entries, { last }: ChangeLog, since: string): Entries {
  const changed = new Map(entries)
  for (const [path, { rev, cid }] of last) {
    if (rev <= since) continue
    const parsed = cid === null ? null : parseCid(cid)
    if (parsed === null) changed.delete(path)
    else changed.set(path, parsed)
  }
  return changed
}

/** Without moved rows: no change mentions them, and their record is missing at the path where a change wrote it. */
function withoutMoved(entries: Entries, said: Entries, { last }: ChangeLog): Entries {
  const missing = new Set([...last].flatMap(([path, { cid }]) => (cid === null || said.has(path) ? [] : [cid])))
  return new Map([...entries].filter(([path, cid]) => last.has(path) || !missing.has(cid.toString())))
}

/** Returns the revision of a record; null if nothing tells it. */
function revOf(path: string, cid: Cid, { revs }: StoredRecords, { last }: ChangeLog, newest: Tid | null): Tid | null {
  const change = last.get(path)
  if (change?.cid === cid.toString()) return parseTid(change.rev)
  const rev = parseTid(revs.get(path) ?? '')
  return change === undefined && rev !== null && newest !== null && rev <= newest ? rev : null
}
