/**
 * Plans what can be rebuilt of a repository, and from what. Changes nothing.
 *
 * The newest commit with a valid signature says which tree is right: its root proves every attempt to complete the
 * tree. Stored records outside that tree are kept, unless the event log says that they were deleted. Only what no
 * source has is lost.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { Cid, cidFromBytes } from '../../../protocol/cid.ts'
import { parseCommit, verifyCommit } from '../../../protocol/commit.ts'
import { checkEvent } from '../../../protocol/event-check.ts'
import { parseTid, type Did, type Tid } from '../../../protocol/identifiers.ts'
import type { PublicKey } from '../../../protocol/keys.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { buildTree } from '../../../protocol/mst.ts'
import { tidMicros } from '../../../protocol/tid.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { rawParts } from '../../data/repo/repo.ts'
import { BlockPool, type Source } from './block-pool.ts'
import { END, isIn, readPartly, type Gap } from './partial-tree.ts'
import { isPath, NO_NUMBER, nextOrphan, rawEvents, rawNodes, rawRecords, rawRepo, type RawRepo } from './row-store.ts'

export interface RepairSources {
  /** An archive of the repository (CAR). */
  car?: AsyncIterable<Uint8Array>
  /** The database of a backup. */
  backup?: Reader | null
}

/** A record that the repaired repository has. */
export interface PlannedRecord {
  cid: Cid
  /** Where the block comes from. */
  source: Source
  /** Revision and time of its row, if the row holds the same record. */
  written: { rev: Tid; at: number } | null
}

export interface RepairPlan {
  did: Did
  /** The row of the repository; null if it is lost. */
  repo: RawRepo | null
  /** Number under which the rows of the repository are stored; null if there are none. */
  repoId: number | null
  /** The revision of the repair must not be lower. */
  newestRev: Tid | null
  records: Map<string, PlannedRecord>
  pool: BlockPool
  /** Numbers of events that no subscriber can read. */
  brokenEvents: number[]
  /** What is wrong, and what the repair does about it, in words. */
  steps: string[]
  /** What the repair loses because no source has it, in words. */
  losses: string[]
  /** Records that a source has, but that may have been deleted since. */
  uncertain: string[]
  /** Roots of the archive. */
  archiveRoots: readonly Cid[]
}

/** Throws `OperatorError` if there is no such account, or nothing at all of its repository. */
export async function planRepair(ctx: Context, did: Did, sources: RepairSources): Promise<RepairPlan> {
  const key = await signingKeyOf(ctx, ctx.db, did)
  if (key === null) throw new OperatorError(`${did} has no account here`)
  const pool = new BlockPool(ctx.config.dataDir)
  try {
    const isAhead = (rev: Tid) => tidMicros(rev) > ctx.clock.now() * 1000
    const archiveRoots = sources.car === undefined ? [] : await pool.addCar('archive', sources.car)
    const base = await baseOf(did, pool, { archiveRoots, backup: sources.backup ?? null }, key.publicKey)
    return await ctx.db.snapshot(async (reader) => ({
      ...(await new Planner(did, key.publicKey, pool, base, isAhead).plan(reader)),
      archiveRoots,
    }))
  } catch (error) {
    pool.close()
    throw error
  }
}

/** A complete older state from another source. */
interface Base {
  rev: Tid
  entries: Map<string, Cid>
}

async function baseOf(
  did: Did,
  pool: BlockPool,
  { archiveRoots, backup }: { archiveRoots: readonly Cid[]; backup: Reader | null },
  key: PublicKey,
): Promise<Base | null> {
  const roots = archiveRoots.slice(0, 1)
  const stored = backup === null ? null : await rawRepo(backup, did)
  if (stored !== null) {
    await addRows(backup!, stored.id, stored.fresh, pool, { nodes: 'backup', records: 'backup' }, () => {})
    roots.push(pool.add('backup', stored.commitBlock))
  }
  const bases: Base[] = []
  for (const root of roots) {
    const commit = commitOf(pool.get(root), did, key)
    if (commit === null) continue
    const { entries, gaps } = await readPartly(commit.data, (cid) => pool.get(cid))
    if (gaps.length === 0) bases.push({ rev: commit.rev, entries })
  }
  return bases.sort((a, b) => (a.rev < b.rev ? 1 : -1))[0] ?? null
}

/** A commit of the repository, signed with a key; null if the block is no such commit. */
function commitOf(bytes: Uint8Array | null, did: Did, key: PublicKey): { rev: Tid; data: Cid } | null {
  if (bytes === null) return null
  try {
    const commit = parseCommit(bytes)
    return commit.did === did && verifyCommit(commit, key) ? commit : null
  } catch (error) {
    if (error instanceof Malformed) return null
    throw error
  }
}

interface Row {
  /** The CID of its block. */
  cid: Cid
  /** The CID in the row; null if the row has none. */
  said: Cid | null
  rev: Tid
  at: number
}

async function addRows(
  reader: Reader,
  repoId: number,
  fresh: Uint8Array,
  pool: BlockPool,
  as: { nodes: Source; records: Source },
  onRecord: (path: string, row: Row) => void,
): Promise<void> {
  for (const { bytes } of rawParts.readableNodes(fresh)) pool.add(as.nodes, bytes)
  for await (const page of rawNodes(reader, repoId)) for (const { bytes } of page) pool.add(as.nodes, bytes)
  for await (const page of rawRecords(reader, repoId))
    for (const { path, cid, rev, indexedAt, value } of page)
      onRecord(path, { cid: pool.add(as.records, value), said: cidFromBytes(cid), rev, at: indexedAt })
}

/** Returns the entries in the order of the tree. */
export const inOrder = <Entry>(entries: ReadonlyMap<string, Entry>): [string, Entry][] =>
  [...entries].sort(([one], [other]) => (one < other ? -1 : 1))

const rootOf = (entries: ReadonlyMap<string, Cid>): Cid => buildTree(inOrder(entries), () => {})

class Planner {
  readonly #steps: string[] = []
  readonly #losses: string[] = []
  readonly #uncertain: string[] = []
  readonly #brokenEvents: number[] = []
  /** Sound rows by path: the block has the CID in the row, and the path is valid. */
  readonly #rows = new Map<string, Row>()
  /** How many nodes of the tree are not in the table of nodes, by the source that has them. */
  readonly #foreignNodes = new Map<Source, number>()
  /** Rows whose block does not have the CID in the row. */
  readonly #unsound = new Map<string, Row>()
  /** The last change of each path in the event log. */
  readonly #changes = new Map<string, { rev: Tid; cid: Cid | null }>()
  readonly #commits: { rev: Tid; data: Cid; source: string }[] = []

  constructor(
    readonly did: Did,
    readonly key: PublicKey,
    readonly pool: BlockPool,
    readonly base: Base | null,
    readonly isAhead: (rev: Tid) => boolean,
  ) {}

  async plan(reader: Reader): Promise<Omit<RepairPlan, 'archiveRoots'>> {
    const { did, pool } = this
    const repo = await rawRepo(reader, did)
    await this.#readLog(reader)
    if (repo !== null) this.#addCommit(repo.commitBlock, 'its row')
    if (repo !== null) await this.#readRows(reader, repo.id, repo.fresh)
    const repoId = repo === null ? await this.#findOrphan(reader) : repo.id
    const newest = this.#commits.sort((a, b) => (a.rev < b.rev ? 1 : -1))[0] ?? null
    const isHeadRight = repo !== null && newest !== null && newest.source === 'its row' && newest.rev === repo.rev
    if (repo === null) this.#steps.push('the row of the repository is lost: it is rebuilt')
    else if (!isHeadRight)
      this.#steps.push(
        newest === null
          ? 'no commit with a valid signature is left: the tree of the row is signed again'
          : `the head is damaged: the newest valid commit is of revision ${newest.rev}, from ${newest.source}`,
      )
    const root = newest?.data ?? (repo && cidFromBytes(repo.data))
    const entries = await this.#entriesAt(root)
    this.#keepUnlisted(entries)
    // A revision that no commit has may be damaged, and relays refuse revisions from the future.
    const newestRev =
      newest?.rev ?? (repo !== null && parseTid(repo.rev) !== null && !this.isAhead(repo.rev) ? repo.rev : null)
    const records = this.#findBlocks(entries, newestRev)
    if (this.#brokenEvents.length > 0)
      this.#steps.push(
        `${this.#brokenEvents.length} events of the log cannot be read by subscribers: they are taken out, and the new #sync stands for them`,
      )
    if (records.size === 0 && repo === null && this.#commits.length === 0)
      throw new OperatorError(`nothing is left of the repository of ${did}: name a backup or an archive`)
    return {
      did,
      repo,
      repoId,
      newestRev,
      records,
      pool,
      brokenEvents: this.#brokenEvents,
      steps: this.#steps,
      losses: this.#losses,
      uncertain: this.#uncertain,
    }
  }

  #addCommit(bytes: Uint8Array | null, source: string): void {
    const commit = commitOf(bytes, this.did, this.key)
    if (commit !== null) this.#commits.push({ ...commit, source })
  }

  async #readLog(reader: Reader): Promise<void> {
    for await (const page of rawEvents(reader, this.did))
      for (const event of page) {
        const body = await this.pool.addEvent(event.frame)
        const checked = await checkEvent(event)
        if (!checked.ok) {
          if (event.seq !== NO_NUMBER) this.#brokenEvents.push(event.seq)
        } else if (checked.state !== null) {
          const { rev, commit, ops } = checked.state
          this.#addCommit(commit.bytes, 'the event log')
          for (const { path, cid } of ops) this.#changes.set(path, { rev: rev as Tid, cid })
        }
        // A commit proves itself, whatever is wrong with the event around it.
        if (!checked.ok && body !== null && body['commit'] instanceof Cid)
          this.#addCommit(this.pool.get(body['commit']), 'the event log')
      }
  }

  async #readRows(reader: Reader, repoId: number, fresh: Uint8Array): Promise<void> {
    let misnamed = 0
    await addRows(reader, repoId, fresh, this.pool, { nodes: 'nodes', records: 'records' }, (path, row) => {
      if (!isPath(path)) misnamed++
      else if (row.said === null || !row.said.equals(row.cid)) this.#unsound.set(path, row)
      else this.#rows.set(path, row)
    })
    for (const path of this.#unsound.keys()) this.#steps.push(`record ${path} does not match its CID`)
    if (misnamed > 0) this.#steps.push(`${misnamed} records are stored under invalid paths`)
  }

  /** If a repository has lost its own row, find the rest of its rows: their tree has a root that was signed. */
  async #findOrphan(reader: Reader): Promise<number | null> {
    const roots = new Set(this.#commits.map(({ data }) => data.toString()))
    for (let id = await nextOrphan(reader, 0); id !== null; id = await nextOrphan(reader, id)) {
      const entries = new Map<string, Cid>()
      for await (const page of rawRecords(reader, id))
        for (const { path, cid } of page) {
          const parsed = cidFromBytes(cid)
          if (parsed !== null && isPath(path)) entries.set(path, parsed)
        }
      if (!roots.has(rootOf(entries).toString())) continue
      await this.#readRows(reader, id, new Uint8Array())
      this.#steps.push(`the rows of repository ${id} belong to no repository, and their tree is the signed one`)
      return id
    }
    return null
  }

  #readNode(cid: Cid): Uint8Array | null {
    const found = this.pool.locate(cid)
    if (found !== null && found.source !== 'nodes')
      this.#foreignNodes.set(found.source, (this.#foreignNodes.get(found.source) ?? 0) + 1)
    return found?.bytes ?? null
  }

  /** Returns the entries of the right tree, as far as they can be known. */
  async #entriesAt(root: Cid | null): Promise<Map<string, Cid>> {
    const { entries, gaps } =
      root === null
        ? { entries: new Map<string, Cid>(), gaps: [{ after: '', before: END }] }
        : await readPartly(root, (cid) => this.#readNode(cid))
    for (const [source, count] of this.#foreignNodes)
      this.#steps.push(`${count} nodes of the tree come from the ${source}`)
    if (gaps.length === 0) return entries
    const rows = new Map(entries)
    for (const [path, { cid }] of this.#rows) if (isIn(gaps, path)) rows.set(path, cid)
    const [said, meant] = [new Map(rows), new Map(rows)]
    for (const [path, row] of this.#unsound) {
      if (!isIn(gaps, path)) continue
      if (row.said !== null) said.set(path, row.said)
      meant.set(path, row.cid)
    }
    const logged = this.#withChanges(said, gaps, '')
    const replayed = this.base === null ? null : this.#withChanges(this.base.entries, null, this.base.rev)
    const tries: [Map<string, Cid> | null, string][] = [
      [said, 'from its records'],
      [meant, 'from its records'],
      [logged, 'from its records and the event log'],
      [replayed, 'from the older state and the event log'],
      [this.base?.entries ?? null, 'from the older state'],
    ]
    for (const [tried, how] of tries) {
      if (root === null || tried === null || !rootOf(tried).equals(root)) continue
      this.#steps.push(`the tree lacks ${gaps.length} branches: it is rebuilt ${how}, and is the signed one`)
      return tried
    }
    return this.#guessed(logged, gaps, root)
  }

  #withChanges(entries: ReadonlyMap<string, Cid>, gaps: readonly Gap[] | null, since: string): Map<string, Cid> {
    const changed = new Map(entries)
    for (const [path, { rev, cid }] of this.#changes) {
      if (rev <= since || (gaps !== null && !isIn(gaps, path))) continue
      if (cid === null) changed.delete(path)
      else changed.set(path, cid)
    }
    return changed
  }

  /** No attempt gives the signed root: keep everything that is known, and report what cannot be known. */
  #guessed(known: Map<string, Cid>, gaps: readonly Gap[], root: Cid | null): Map<string, Cid> {
    for (const [path, cid] of this.base?.entries ?? []) {
      if (!isIn(gaps, path) || known.has(path)) continue
      const change = this.#changes.get(path)
      if (change !== undefined && change.rev > this.base!.rev) continue
      known.set(path, cid)
      this.#uncertain.push(path)
    }
    this.#steps.push(`the tree lacks ${gaps.length} branches: it is rebuilt from what is left`)
    if (root !== null)
      for (const { after, before } of gaps)
        this.#losses.push(
          `records between ${after === '' ? 'the beginning' : after} and ${before === END ? 'the end' : before}, if there were others than those that are left`,
        )
    return known
  }

  /** Rows outside the tree were acknowledged and are being served: keep them, unless they were deleted. */
  #keepUnlisted(entries: Map<string, Cid>): void {
    const rowless = new Map<string, string>()
    for (const [path, cid] of entries) if (!this.#rows.has(path)) rowless.set(cid.toString(), path)
    for (const [path, { cid, rev }] of this.#rows) {
      const entry = entries.get(path)
      if (entry?.equals(cid)) continue
      const home = rowless.get(cid.toString())
      if (entry === undefined && home !== undefined) {
        this.#steps.push(`record ${home} is stored under ${path}: it is moved back`)
        continue
      }
      const change = this.#changes.get(path)
      if (entry === undefined) {
        if (change !== undefined && change.cid === null && change.rev >= rev)
          this.#steps.push(`record ${path} is stored, although revision ${change.rev} deleted it: it is removed`)
        else {
          entries.set(path, cid)
          this.#steps.push(`record ${path} is stored, but not in the tree: it is added to it`)
        }
      } else if (change?.cid?.equals(cid)) {
        entries.set(path, cid)
        this.#steps.push(
          `record ${path} is older in the tree than in revision ${change.rev}: the newer one replaces it`,
        )
      }
    }
  }

  #findBlocks(entries: ReadonlyMap<string, Cid>, newestRev: Tid | null): Map<string, PlannedRecord> {
    const records = new Map<string, PlannedRecord>()
    const found = new Map<Source, number>()
    for (const [path, cid] of inOrder(entries)) {
      const row = this.#rows.get(path)
      const isOwnRow = row !== undefined && row.cid.equals(cid)
      const written = isOwnRow && newestRev !== null && row.rev <= newestRev ? { rev: row.rev, at: row.at } : null
      const block = this.pool.locate(cid)
      if (block !== null) {
        records.set(path, { cid, source: block.source, written })
        if (!isOwnRow) found.set(block.source, (found.get(block.source) ?? 0) + 1)
        continue
      }
      if (row === undefined) {
        this.#losses.push(`record ${path}`)
        continue
      }
      records.set(path, { cid: row.cid, source: 'records', written: null })
      this.#losses.push(`record ${path} as ${cid}: another version of it is left, and takes its place`)
    }
    for (const [source, count] of found) this.#steps.push(`${count} records come from the ${source}`)
    return records
  }
}
