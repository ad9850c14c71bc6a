/**
 * Spaces: what accounts write in them, what clients that follow the changes have made of them, and what has to hold.
 * There are two, and every account writes in both.
 */
import { Cid, parseCid } from '../../../src/protocol/cid.ts'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import { decode, type Data } from '../../../src/protocol/cbor.ts'
import type { Did, Nsid, RecordKey, SpaceUri } from '../../../src/protocol/identifiers.ts'
import type { PublicKey } from '../../../src/protocol/keys.ts'
import { spaceUri } from '../../../src/protocol/space-address.ts'
import { parseSpaceCommit, verifySpaceCommit } from '../../../src/protocol/space-commit.ts'
import { addToSet, emptySetState, removeFromSet, setElement, setHash } from '../../../src/protocol/space-hash.ts'
import type { Holder } from './clients.ts'
import type { World } from './world.ts'

const TYPE = 'com.example.forum.place' as Nsid
const KEYS = ['one', 'two'] as RecordKey[]

/** The repository of an account in a space. */
export interface SpacePlace {
  holder: Holder
  skey: RecordKey
  space: SpaceUri
  /** Stands in the ledger for the account. */
  did: string
}

/** A record as a client that follows a repository has it. The text is null while only its CID is known. */
interface Entry {
  cid: string
  text: string | null
}

interface Op {
  rev: string
  collection: string
  rkey: string
  cid: string | null
  prev: string | null
  value?: { text: string }
}

export interface OpsPage {
  ops: Op[]
  cursor?: string
  commit?: object
}

/** What a client that follows a repository has of it. */
export class Copy {
  readonly entries = new Map<string, Entry>()
  readonly #state = emptySetState()
  /** Of the last commit; empty before the first one. */
  rev = ''
  /** The place after the last change, unless that was followed by a commit. */
  cursor: string | null = null

  constructor(
    readonly place: SpacePlace,
    /** How many failovers there were when it began. */
    readonly era: number,
  ) {}

  /** Takes a change. Returns what is wrong with it; null if it follows what is here. */
  take({ rev, collection, rkey, cid, prev, value }: Op): string | null {
    const path = `${collection}/${rkey}`
    const before = this.entries.get(path)
    if ((before?.cid ?? null) !== prev)
      return `the change of ${path} at ${rev} follows ${prev}, and the one before it has left ${before?.cid ?? null}`
    if (before !== undefined) removeFromSet(this.#state, setElement(path, parseCid(before.cid)!))
    if (cid === null) this.entries.delete(path)
    else this.entries.set(path, { cid, text: value?.text ?? null })
    if (cid !== null) addToSet(this.#state, setElement(path, parseCid(cid)!))
    return null
  }

  /** Compares with a commit, which one of the keys has signed. Returns what is wrong; null if nothing is. */
  compare(commit: object, keys: readonly PublicKey[]): string | null {
    const { space, holder } = this.place
    const parsed = parseSpaceCommit(jsonToData(commit))
    if (!keys.some((key) => verifySpaceCommit(parsed, space, holder.did as Did, key)))
      return `the commit ${parsed.rev} does not verify`
    if (parsed.rev < this.rev) return `the commit ${parsed.rev} comes after ${this.rev}`
    this.rev = parsed.rev
    if (!Buffer.from(setHash(this.#state)).equals(parsed.hash))
      return `the hash at ${parsed.rev} is not that of the changes through it`
    const [nameless] = [...this.entries].filter(([, { text }]) => text === null)
    return nameless === undefined ? null : `${nameless[0]} is there, and its value was never sent`
  }
}

interface RepoRow {
  id: number
  did: string
  space: string
  rev: string
  records: number
  state: Uint8Array
}

interface OpRow {
  rev: string
  idx: number
  path: string
  cid: Uint8Array | null
  prev: Uint8Array | null
  prevRev: string | null
}

export class Spaces {
  readonly #copies = new Map<string, Copy>()

  constructor(readonly world: World) {}

  placeOf(holder: Holder): SpacePlace {
    const skey = this.world.timeline.random.of(KEYS)
    return { holder, skey, space: this.#uri(skey), did: `${holder.did} in ${skey}` }
  }

  /** The first account decides about both. */
  #uri(skey: RecordKey): SpaceUri {
    return spaceUri(this.world.holders[0]!.did as Did, TYPE, skey)
  }

  /** What a client has of a repository. It begins anew after a failover, in which changes may be lost. */
  copyOf(client: string, place: SpacePlace): Copy {
    const key = `${client} ${place.did}`
    const { era } = this.world.watch.ledger
    const known = this.#copies.get(key)
    if (known?.era === era) return known
    const begun = new Copy(place, era)
    this.#copies.set(key, begun)
    return begun
  }

  /** At the end, when nothing is on its way. Returns the texts of records, by what stands for their accounts. */
  finish(): Map<string, Map<string, string>> {
    const { world } = this
    const found = new Map<string, Map<string, string>>()
    const places = new Set(
      world.rows<{ id: number; did: string; space: string }>('SELECT * FROM space_place').map(keyOf),
    )
    for (const row of world.rows<RepoRow>(
      'SELECT id, did, space, rev, record_count AS records, state FROM space_repo',
    )) {
      const skey = row.space.slice(row.space.lastIndexOf('/') + 1)
      const name = `${world.holders.find(({ did }) => did === row.did)!.name} in ${skey}`
      if (!places.delete(keyOf(row))) world.fail(`nothing but its row says where the repository of ${name} belongs`)
      const records = world.rows<{ path: string; cid: Uint8Array; value: Uint8Array }>(
        'SELECT path, cid, value FROM space_record WHERE space_repo_id = ?1 ORDER BY path',
        row.id,
      )
      this.#requireRepo(name, row, records)
      this.#requireOps(name, row, records)
      const texts = records.map(({ path, value }) => [path, String((decode(value) as { text: Data }).text)] as const)
      found.set(`${row.did} in ${skey}`, new Map(texts))
    }
    const [left] = places
    if (left !== undefined) world.fail(`a repository in a space has no row: ${left}`)
    return found
  }

  #requireRepo(name: string, row: RepoRow, records: readonly { path: string; cid: Uint8Array }[]): void {
    const state = emptySetState()
    for (const { path, cid } of records) addToSet(state, setElement(path, new Cid(cid)))
    if (!Buffer.from(state).equals(row.state)) this.world.fail(`the hash of ${name} is not that of its records`)
    if (row.records !== records.length)
      this.world.fail(`${name} has ${records.length} records, and its row says ${row.records}`)
  }

  /** The changes lead from nothing to what is there, revision by revision. */
  #requireOps(name: string, row: RepoRow, records: readonly { path: string; cid: Uint8Array }[]): void {
    const { world } = this
    const present = new Map<string, string>()
    let rev = ''
    for (const op of world.rows<OpRow>(
      'SELECT rev, idx, path, cid, prev, prev_rev AS prevRev FROM space_op WHERE space_repo_id = ?1 ORDER BY rev, idx',
      row.id,
    )) {
      if (op.idx === 0 && op.prevRev !== rev) world.fail(`${op.rev} of ${name} follows ${op.prevRev}, and not ${rev}`)
      if (op.idx > 0 && op.rev !== rev) world.fail(`the first change of ${op.rev} of ${name} is missing`)
      rev = op.rev
      if (textOf(op.prev) !== (present.get(op.path) ?? null))
        world.fail(`a change of ${op.path} of ${name} at ${rev} follows another value than the one that was there`)
      if (op.cid === null) present.delete(op.path)
      else present.set(op.path, textOf(op.cid)!)
    }
    if (rev !== row.rev) world.fail(`${name} is at ${row.rev}, and its last change is ${rev}`)
    const isSame =
      present.size === records.length && records.every(({ path, cid }) => present.get(path) === textOf(cid))
    if (!isSame) world.fail(`the changes of ${name} do not lead to its records`)
  }
}

const keyOf = ({ id, did, space }: { id: number; did: string; space: string }) => `${id} ${did} ${space}`
const textOf = (cid: Uint8Array | null): string | null => cid && new Cid(cid).toString()
