/** The invariants. They are checked at every commit, every answer, every event that the relay gets, and at the end. */
import { recordValue } from '../../../src/features/data/repo/large-records.ts'
import { decode, decodeFirst } from '../../../src/protocol/cbor.ts'
import { Cid } from '../../../src/protocol/cid.ts'
import { parseCommit, verifyCommit } from '../../../src/protocol/commit.ts'
import { formatDidKey, parseDidKey, type PublicKey } from '../../../src/protocol/keys.ts'
import type { Handle } from '../../../src/protocol/identifiers.ts'
import { buildTree } from '../../../src/protocol/mst.ts'
import type { Holder } from './clients.ts'
import { Ledger, type Write } from './ledger.ts'
import type { Committed } from './postgres-server.ts'
import type { Changed } from './storage.ts'
import { shortDigest } from './seams.ts'
import { EPOCH_MILLIS, type Actor } from './timeline.ts'
import type { Mail, Node, World } from './world.ts'

const SOON_MILLIS = 60_000

interface Unnumbered {
  id: number
  did: string
  pieces: Uint8Array[]
}

interface Numbered {
  did: string
  digest: string
}

interface Chain {
  rev: string
  data: string | null
}

interface IdentityBody {
  did: string
  handle?: string
}

interface AccountBody {
  did: string
  active: boolean
}

interface CommitBody {
  repo: string
  rev: string
  since: string | null
  commit: Cid
  blocks: Uint8Array
  prevData?: Cid
}

/** Far more numbers than a world gives. */
const LEAST_GAP = 100_000

export class Watch {
  readonly ledger: Ledger
  /** Events that were committed and have no number yet. */
  readonly #unnumbered = new Map<number, Unnumbered>()
  /** Every event that ever had a number. */
  readonly #log = new Map<number, Numbered>()
  /** The last commit of each repository in the order of numbers. */
  readonly #chains = new Map<string, Chain>()
  /** Handles of the last `#identity` events. */
  readonly #named = new Map<string, string | undefined>()
  /** Accounts that the last `#account` event calls inactive. */
  readonly #inactive = new Set<string>()
  /** The revision before, by account and revision. */
  readonly #since = new Map<string, string | null>()
  readonly #expected: { did: string; rev: string; since: string; by: string }[] = []
  readonly #acknowledged: { did: string; rev: string; cid: string; by: string }[] = []
  readonly #handles = new Map<string, { did: string; by: string }>()
  head: number
  /** Newest event: the head may be that of a gap that a failover has left. */
  newest: number
  numbered = 0
  signIns = 0
  /** The newest number when the world began. */
  readonly #start: number
  /** The log of a server on SQLite is known through this number. */
  #seen: number
  #failovers = 0
  /** Events that went with a database, and may be on their way to the relay. */
  readonly #lost = new Map<number, Numbered>()
  /** Numbers that the relay has. */
  readonly #received = new Set<number>()

  constructor(readonly world: World) {
    this.ledger = new Ledger(world.seed)
    const { server } = world
    server.onCommit = (committed) => this.#committed(committed)
    if (world.directory !== null) world.directory.onAdded = (did, handle) => this.#added(did, handle)
    this.newest = this.head = this.#start = this.#seen = this.#headInDatabase()
    if (this.head === 0) return
    for (const { did, rev, data } of world.rows<{ did: string; rev: string; data: Uint8Array }>(
      'SELECT did, rev, data FROM repo',
    ))
      this.#chains.set(did, { rev, data: new Cid(data).toString() })
  }

  /** The key that others verify an account's commits with. */
  #keyOf(did: string): PublicKey | undefined {
    const { directory, holders } = this.world
    const named = directory?.keyOf(did) ?? null
    const holder = holders.find((one) => one.did === did)
    return named !== null && holder !== undefined ? parseDidKey(named)! : holder?.key
  }

  /** Steps whose end a living node could not store are repeated after five minutes. Nobody waits for that. */
  get isAtRest(): boolean {
    if (this.#unnumbered.size > 0 || this.#misnamed().length > 0) return false
    if (this.world.blobs?.areSwept === false || this.world.blobs?.areFetched === false) return false
    if (this.world.disk !== null) this.newest = this.head = this.#headInDatabase()
    const living = this.#living()
    const { pair } = this.world
    return this.world
      .rows<{ holder: string | null; isTaken: number }>(
        'SELECT taken_by AS holder, taken_until IS NOT NULL AS isTaken FROM step WHERE due_at < ?1',
        // A node whose clock is ahead orders for later than it means.
        EPOCH_MILLIS + this.world.timeline.now + SOON_MILLIS,
      )
      .every(({ holder, isTaken }) => (pair !== null ? isTaken === 1 : holder !== null && living.has(holder)))
  }

  #living(): Set<string | undefined> {
    return new Set(this.world.nodes.map(({ app }) => app?.ctx.db.cluster?.node.id))
  }

  get unrest(): string {
    if (this.#unnumbered.size > 0) return `${this.#unnumbered.size} committed events have no number`
    const [misnamed] = this.#misnamed()
    if (misnamed !== undefined) return misnamed
    if (this.world.blobs?.areSwept === false) return 'blobs without references are still there'
    if (this.world.blobs?.areFetched === false) return 'blobs are not fetched from the mirror'
    return `steps are not done: ${JSON.stringify(this.world.rows('SELECT kind, tries, last_error FROM step'))}`
  }

  #committed({ client, changed }: Committed): void {
    for (const change of changed) if (change.table === 'repo') this.#headChanged(change)
    this.world.blobs?.committed(changed)
    const added = changed.filter(({ table, row }) => table === 'repo_seq' && row !== null)
    const gone = new Map<number, Unnumbered>()
    for (const { table, key, row } of changed) {
      if (table !== 'unnumbered_event') continue
      const id = Number(key[0])
      if (row !== null) this.#unnumbered.set(id, unnumberedOf(id, row))
      else if (this.#unnumbered.has(id)) {
        gone.set(id, this.#unnumbered.get(id)!)
        this.#unnumbered.delete(id)
      }
    }
    if (added.length > 0) {
      this.#requireLease(client)
      this.#numberedBy(client.name, added, [...gone.values()])
    } else if (gone.size > 0 && ![...gone.values()].every(({ did }) => this.#isGone(did)))
      this.world.fail(`${client.name} deletes ${gone.size} events that have no number yet`)
  }

  /** Whoever numbers events is the one that took the lease last. */
  #requireLease(client: Actor): void {
    const [lease] = this.world.rows<{ holder: string }>(`SELECT holder FROM lease WHERE name = 'event-numbers'`)
    const node = this.world.nodes.find(({ actor }) => actor === client)?.app?.ctx.db.cluster?.node
    if (node !== undefined && lease?.holder !== node.id)
      this.world.fail(`${client.name} numbers events without the lease, which another node has`)
  }

  #isGone(did: string): boolean {
    return this.world.rows('SELECT 1 FROM account WHERE did = ?1', did).length === 0
  }

  /** A head verifies under the key of its account, and follows the one before. */
  #headChanged({ row }: Changed): void {
    const {
      did,
      rev,
      data,
      commit_block: block,
    } = (row ?? {}) as {
      did?: string
      rev: string
      data: Uint8Array
      commit_block: Uint8Array
    }
    const key = did === undefined ? undefined : this.#keyOf(did)
    if (key === undefined) return
    const commit = parseCommit(block)
    if (commit.rev !== rev || commit.data.toString() !== new Cid(data).toString())
      this.world.fail(`the head of ${did} is not the commit that its row says`)
    if (!verifyCommit(commit, key)) this.world.fail(`the head of ${did} at ${rev} does not verify`)
  }

  #numberedBy(node: string, added: readonly Changed[], gone: Unnumbered[]): void {
    const { world } = this
    const rows = added.map(({ row }) => row as { seq: number; did: string; event_type: string; frame: Uint8Array })
    rows.sort((a, b) => a.seq - b.seq)
    gone.sort((a, b) => a.id - b.id)
    for (const { seq, did, event_type: type, frame } of rows) {
      const before = this.#log.get(seq)
      const digest = shortDigest(frame)
      if (before !== undefined) {
        if (before.digest !== digest) world.fail(`${node} gives number ${seq} a second time`)
        continue
      }
      // After a failover, nodes leave a gap above what they had sent.
      if (seq !== this.head + 1 && (this.#failovers === 0 || seq <= this.head))
        world.fail(`${node} numbers an event ${seq} after ${this.head}`)
      this.newest = this.head = Math.max(this.head, seq)
      this.numbered++
      this.#log.set(seq, { did, digest })
      const event = gone.shift()
      if (event === undefined || event.did !== did || !isMadeOf(frame, event.pieces))
        world.fail(`event ${seq} of ${did} is not the oldest one that had no number`)
      world.note(node, `numbers ${seq}: ${type} of ${this.#nameOf(did)}`)
      this.#chain(seq, type, frame)
    }
    if (gone.length > 0) world.fail(`${node} deletes ${gone.length} events without giving them a number`)
  }

  #nameOf(did: string): string {
    return this.world.holders.find((holder) => holder.did === did)?.name ?? did
  }

  /** A commit builds on the one before it in the log. */
  #follows(seq: number, body: CommitBody): void {
    const { repo, rev, since, prevData } = body
    const before = this.#chains.get(repo)
    this.#since.set(`${repo} ${rev}`, since)
    if (before !== undefined) {
      if (since !== before.rev) this.world.fail(`event ${seq} follows ${since}, but the one before it is ${before.rev}`)
      if (before.data !== null && prevData?.toString() !== before.data)
        this.world.fail(`event ${seq} builds on a tree that the one before it has not left`)
      if (rev <= before.rev) this.world.fail(`event ${seq} has the revision ${rev}, which is not above ${before.rev}`)
    }
  }

  /** Take an event as the last one of its repository. Its number is null if it has been looked at before. */
  #chain(seq: number | null, type: string, frame: Uint8Array): void {
    if (type === 'identity') {
      const { did, handle } = decode(decodeFirst(frame).rest) as unknown as IdentityBody
      this.#named.set(did, handle)
    }
    if (type === 'account') this.#noteActivity(decode(decodeFirst(frame).rest) as unknown as AccountBody)
    if (type !== 'commit' && type !== 'sync') return
    const body = decode(decodeFirst(frame).rest) as unknown as CommitBody & { did: string }
    if (type === 'commit' && seq !== null) this.#follows(seq, body)
    const did = type === 'commit' ? body.repo : body.did
    if (seq !== null && this.#inactive.has(did))
      this.world.fail(`event ${seq} is a ${type} of ${this.#nameOf(did)}, which is not active`)
    if (type === 'commit') this.#chains.set(body.repo, { rev: body.rev, data: dataOf(body) })
    // The tree is whatever it says.
    else this.#chains.set(body.did, { rev: body.rev, data: null })
  }

  /** The directory names one account for a handle, or none. */
  #added(did: string, handle: Handle | null): void {
    const { world } = this
    world.note('directory', `says that ${this.#nameOf(did)} is ${handle}`)
    const named = handle === null ? [] : world.directory!.named(handle)
    if (named.length > 1)
      world.fail(`the directory says ${handle} of ${named.map((one) => this.#nameOf(one)).join(' and ')}`)
  }

  #noteActivity({ did, active }: AccountBody): void {
    if (active) this.#inactive.delete(did)
    else this.#inactive.add(did)
  }

  acknowledged(writes: readonly Write[], commit: { cid: string; rev: string } | undefined): void {
    const { world } = this
    for (const { did, path, text, cid, by } of writes) {
      if (commit !== undefined) this.#acknowledged.push({ did, ...commit, by })
      if (text === null || cid === null || path === null) continue
      // Other clients may have written to shared keys since.
      if (path.includes('shared-')) continue
      const [row] = world.rows<{ cid: Uint8Array }>(
        'SELECT cid FROM record WHERE repo_id = (SELECT id FROM repo WHERE did = ?1) AND path = ?2',
        did,
        path,
      )
      if (row === undefined) world.fail(`${by} was told that "${text}" is at ${path}, and it is not there`)
      else if (new Cid(row.cid).toString() !== cid)
        world.fail(`${by} was told that ${path} is ${cid}, and it is something else`)
    }
  }

  /** A client was told that its commit is the next one after this revision. */
  expectSince(did: string, rev: string, since: string, by: string): void {
    this.#expected.push({ did, rev, since, by })
  }

  signedUp(handle: string, did: string, by: string): void {
    const other = this.#handles.get(handle)
    if (other !== undefined) this.world.fail(`${by} and ${other.by} both signed up as ${handle}`)
    this.#handles.set(handle, { did, by })
  }

  /** A mail was taken for delivery. */
  mailed(mail: Mail): void {
    const { befallen, mails } = this.world
    const before = mails.find(({ id }) => id === mail.id)
    if (before !== undefined && befallen.length === 0)
      this.world.fail(
        `${before.node} and ${mail.node} sent the mail ${mail.id.slice(-6)} twice, although nothing went wrong`,
      )
  }

  /**
   * Nodes with the same clock id would give the same keys. One whose row went with the database may have the id of
   * another for a moment: it commits nothing with it, and gives up.
   */
  requireOwnClockId(node: Node): void {
    const idOf = (one: Node) => one.app?.ctx.db.cluster?.clockId
    const own = idOf(node)
    if (own === undefined) return
    const isLost = (one: Node) => this.#failovers > 0 && !this.#hasRow(one)
    const other = this.world.nodes.find((one) => one !== node && !one.actor.isDead && idOf(one) === own && !isLost(one))
    if (other !== undefined) this.world.fail(`${node.name} has the clock id of ${other.name}`)
  }

  #hasRow({ app }: Node): boolean {
    return this.world.rows('SELECT 1 FROM node WHERE id = ?1', app!.ctx.db.cluster!.node.id).length > 0
  }

  /** A node that misses changes is right only if the database has lost some. */
  requireLoss({ name }: Node, { name: kind, message }: Error): void {
    if (kind === 'HistoryLost' && this.#failovers === 0)
      this.world.fail(`${name} misses what the database has: ${message}`)
  }

  requireTakenOver(): void {
    const { world } = this
    const living = this.#living()
    const left = world.rows<{ kind: string; holder: string | null }>(
      'SELECT kind, taken_by AS holder FROM step WHERE taken_until IS NOT NULL',
    )
    const [orphan] = left.filter(({ holder }) => !living.has(holder ?? undefined))
    if (orphan !== undefined) world.fail(`nobody has taken over a step (${orphan.kind}) of a node that is gone`)
  }

  signedIn(): void {
    this.signIns++
  }

  /** The database lacks what was committed since then, and the nodes have to notice. */
  failedOver(since: number): void {
    const { world } = this
    const rows = world.rows<{ id: number } & Record<string, unknown>>('SELECT * FROM unnumbered_event')
    this.#unnumbered.clear()
    for (const row of rows) this.#unnumbered.set(row.id, unnumberedOf(row.id, row))
    this.#chains.clear()
    this.#inactive.clear()
    this.#named.clear()
    for (const { event_type: type, frame } of world.rows<{ event_type: string; frame: Uint8Array }>(
      'SELECT event_type, frame FROM repo_seq ORDER BY seq',
    ))
      this.#chain(null, type, frame)
    // What was sent stays sent: its numbers are spent.
    const head = this.#headInDatabase()
    for (const [seq, event] of this.#log)
      if (seq > head && !this.#received.has(seq)) {
        this.#log.delete(seq)
        this.#lost.set(seq, event)
      }
    this.head = head
    this.newest = Math.max(this.#start, ...this.#log.keys())
    this.#failovers++
    this.#forgetPromises(since)
  }

  #forgetPromises(since: number): void {
    this.ledger.forgetPromises(since)
    this.#expected.length = 0
    this.#acknowledged.length = 0
    this.#handles.clear()
  }

  /** A machine has taken over with what the former one had sent by then. It numbers events above all that are spent. */
  tookOver(since: number): void {
    this.#failovers++
    this.#forgetPromises(since)
    for (const [seq, event] of this.#log)
      if (this.world.rows('SELECT 1 FROM repo_seq WHERE seq = ?1', seq).length === 0) {
        this.#log.delete(seq)
        this.#lost.set(seq, event)
      }
  }

  #headInDatabase(): number {
    const { disk } = this.world
    if (disk !== null && !disk.isMigrated) return 0
    const [past] = this.world.rows<{ head: number }>(
      'SELECT max(spent_through, coalesce((SELECT max(seq) FROM repo_seq), 0)) AS head FROM repo_seq_past',
    )
    return past!.head
  }

  /** The relay has received an event, and the one before it was this one. */
  received(seq: number, before: number, frame: Uint8Array, node: Node): void {
    const { world } = this
    if (world.pair?.isAsync === true && !world.pair.isServing(node)) return this.#receivedLost(seq, frame, node)
    if (world.disk !== null) this.#look(seq)
    const known = this.#log.get(seq) ?? this.#lost.get(seq)
    if (known !== undefined) this.#log.set(seq, known)
    this.#received.add(seq)
    if (known === undefined) return world.fail(`${node.name} sends the relay event ${seq}, which is not in the log`)
    if (known.digest !== shortDigest(frame))
      return world.fail(`${node.name} sends the relay another event ${seq} than the one in the log`)
    if (seq === before + 1) return
    // The gap after a failover is far wider than the log is long.
    for (const [missed, event] of this.#log)
      if (missed > before && missed < seq && !this.#lost.has(missed) && !this.#isGone(event.did))
        return world.fail(`${node.name} sends the relay event ${seq} after ${before}, and leaves out ${missed}`)
  }

  /** A machine that was replaced has sent the relay an event, before it noticed. */
  #receivedLost(seq: number, frame: Uint8Array, { name }: Node): void {
    const digest = shortDigest(frame)
    const known = this.#log.get(seq) ?? this.#lost.get(seq)
    if (known !== undefined && known.digest !== digest)
      this.world.fail(`${name}, which was replaced, sends the relay another event ${seq} than the one in the log`)
    this.#received.add(seq)
    if (known === undefined) this.#lost.set(seq, { did: '', digest })
  }

  /** Take the log of a server on SQLite from its file, through an event. */
  #look(seq: number): void {
    for (const row of this.world.rows<{ seq: number; did: string; frame: Uint8Array }>(
      'SELECT seq, did, frame FROM repo_seq WHERE seq > ?1 AND seq <= ?2 ORDER BY seq',
      this.#seen,
      seq,
    )) {
      const digest = shortDigest(row.frame)
      this.#requireNext(row.seq, this.#seen)
      const lost = this.#lost.get(row.seq)
      if (lost !== undefined && lost.digest !== digest)
        this.world.fail(`the log has another event ${row.seq} than the one that was lost`)
      // The machine that was replaced had sent it to the other one too.
      this.#lost.delete(row.seq)
      this.#seen = row.seq
      this.#log.set(row.seq, { did: row.did, digest })
    }
  }

  /** What the relay has received is in the log of a server on SQLite, whatever has happened to it. */
  requireReceived(): void {
    this.#seen = Math.min(this.#seen, this.#headInDatabase())
    for (const seq of this.#received) {
      const [row] = this.world.rows<{ frame: Uint8Array }>('SELECT frame FROM repo_seq WHERE seq = ?1', seq)
      if (row === undefined && this.#lost.has(seq)) continue
      if (row === undefined || shortDigest(row.frame) !== this.#log.get(seq)?.digest)
        this.world.fail(`the relay has event ${seq}, which the log does not have any more`)
    }
    for (const seq of this.#log.keys()) if (seq > this.#seen) this.#log.delete(seq)
  }

  /** Numbers of the log of a server on SQLite have no gap but the one that a takeover leaves with `async`. */
  #requireNext(seq: number, before: number): void {
    const isGap = this.#failovers > 0 && seq > before + LEAST_GAP
    if (seq !== before + 1 && !isGap) this.world.fail(`the log has event ${seq} after ${before}`)
  }

  /** The whole log of a server on SQLite: one numbering, in which commits follow each other. */
  #readFile(): void {
    let before = this.#start
    for (const { seq, event_type: type, frame } of this.world.rows<{
      seq: number
      event_type: string
      frame: Uint8Array
    }>('SELECT seq, event_type, frame FROM repo_seq WHERE seq > ?1 ORDER BY seq', before)) {
      this.#requireNext(seq, before)
      before = seq
      this.numbered++
      this.#chain(seq, type, frame)
    }
  }

  /** Accounts that have another handle than the directory says. */
  #misnamed(): string[] {
    const { directory, holders } = this.world
    if (directory === null) return []
    return holders.flatMap(({ name, did }) => {
      const { handle, key } = this.#identityOf(did)
      if (handle !== directory.handleOf(did))
        return `${name} has the handle ${handle}, and the directory says ${directory.handleOf(did)}`
      return key === directory.keyOf(did)
        ? []
        : `${name} signs with ${key}, and the directory says ${directory.keyOf(did)}`
    })
  }

  #identityOf(did: string): { handle: string | null; key: string } {
    const [account] = this.world.rows<{ handle: string | null; key: string }>(
      'SELECT handle, signing_key AS key FROM account WHERE did = ?1',
      did,
    )
    return account!
  }

  #requireIdentity(holder: Holder): void {
    const { world } = this
    const { now } = world.timeline
    const { handle, key } = this.#identityOf(holder.did)
    if (!this.ledger.keyOf(holder.did, formatDidKey(holder.key)).mayBe(key, now, now))
      world.fail(`${holder.name} signs with ${key} at the end, and a client was told something else`)
    if (!this.ledger.handleOf(holder).mayBe(String(handle), now, now))
      world.fail(`${holder.name} has the handle ${handle} at the end, and a client was told something else`)
    const told = this.#named.get(holder.did)
    if (told !== undefined && told !== handle)
      world.fail(`${holder.name} has the handle ${handle} at the end, and the last event says ${told}`)
  }

  /** The account is as clients were told, and as the last event says. */
  #requireActivity(name: string, did: string): void {
    const { world } = this
    const { now } = world.timeline
    const [account] = world.rows<{ since: number | null }>(
      'SELECT deactivated_at AS since FROM account WHERE did = ?1',
      did,
    )
    const activity = account!.since === null ? 'active' : 'inactive'
    if (!this.ledger.activity(did).mayBe(activity, now, now))
      world.fail(`${name} is ${activity} at the end, and a client was told something else`)
    if (this.#inactive.has(did) !== (activity === 'inactive'))
      world.fail(`${name} is ${activity} at the end, and the last event says something else`)
  }

  /** What the records of a repository say was written, and once. */
  #requireWritten(texts: ReadonlyMap<string, string>): void {
    const { world, ledger } = this
    const seen = new Set<string>()
    for (const [path, text] of texts) {
      const write = ledger.byText.get(text)
      if (write === undefined) world.fail(`"${text}" is at ${path}, and nobody wrote it`)
      else if (write.told === 'refused')
        world.fail(`"${text}" is at ${path}, but ${write.by} was told that this was not done`)
      if (seen.has(text)) world.fail(`"${text}" was written twice`)
      seen.add(text)
    }
  }

  /** Everything at the end, when nothing is on its way. */
  finish(): void {
    const { world, ledger } = this
    const { now } = world.timeline
    if (world.disk !== null) this.#readFile()
    world.blobs?.finish()
    for (const { did, rev, since, by } of this.#expected)
      if (this.#since.get(`${did} ${rev}`) !== since)
        world.fail(
          `${by} swapped the head at ${since}, but its commit ${rev} follows ${this.#since.get(`${did} ${rev}`)}`,
        )
    for (const { did, rev, by } of this.#acknowledged)
      if (!this.#since.has(`${did} ${rev}`))
        world.fail(`${by} was told of the commit ${rev}, of which there is no event`)
    const found = world.spaces?.finish() ?? new Map<string, Map<string, string>>()
    for (const holder of world.holders) {
      const { name, did } = holder
      const [repo] = world.rows<{ id: number; rev: string; data: Uint8Array; commit_block: Uint8Array }>(
        'SELECT id, rev, data, commit_block FROM repo WHERE did = ?1',
        did,
      )
      const records = world.rows<{ path: string; cid: Uint8Array; value: Uint8Array }>(
        `SELECT path, cid, ${recordValue.texts.join('')} AS value FROM record WHERE repo_id = ?1 ORDER BY path`,
        repo!.id,
      )
      const [stray] = world.rows<{ path: string }>(
        `SELECT path FROM large_record WHERE repo_id = ?1 AND NOT EXISTS (SELECT 1 FROM record
          WHERE record.repo_id = ?1 AND record.path = large_record.path AND length(record.value) = 0)`,
        repo!.id,
      )
      if (stray !== undefined) world.fail(`a large value of ${name} is left at ${stray.path}`)
      const root = buildTree(
        records.map(({ path, cid }) => [path, new Cid(cid)] as const),
        () => {},
      )
      if (root.toString() !== new Cid(repo!.data).toString())
        world.fail(`the tree of ${name} is not that of its records`)
      if (!verifyCommit(parseCommit(repo!.commit_block), this.#keyOf(did)!))
        world.fail(`the head of ${name} does not verify`)
      this.#requireActivity(name, did)
      if (world.directory !== null) this.#requireIdentity(holder)
      // What a failover has changed for an account that is not active is announced once it is.
      if (this.#chains.get(did)!.rev !== repo!.rev && !this.#inactive.has(did))
        world.fail(`the head of ${name} is ${repo!.rev}, and its last event ${this.#chains.get(did)!.rev}`)
      // After a failover, nodes announce what they notice.
      const known = world.befallen.includes('failover') ? undefined : world.relay.revOf(did)
      if (known !== undefined && known !== repo!.rev && !this.#inactive.has(did))
        world.fail(`the head of ${name} is ${repo!.rev}, and that of the relay ${known}`)
      const texts = new Map(records.map(({ path, value }) => [path, String((decode(value) as { text: string }).text)]))
      found.set(did, texts)
    }
    for (const texts of found.values()) this.#requireWritten(texts)
    for (const { did, path } of ledger.paths) {
      const fault = ledger.faultOf(did, path, found.get(did)?.get(path) ?? null, now, now)
      if (fault !== null) world.fail(`at the end, ${fault}`)
    }
    for (const [handle, { did, by }] of this.#handles) {
      const rows = world.rows<{ did: string }>('SELECT did FROM account WHERE handle = ?1', handle)
      if (rows.length !== 1 || rows[0]!.did !== did)
        world.fail(`${by} signed up as ${handle}, which is now ${JSON.stringify(rows)}`)
    }
  }
}

const unnumberedOf = (id: number, row: Record<string, unknown>): Unnumbered => ({
  id,
  did: String(row['did']),
  pieces: [row['head'], row['middle'], row['rest']] as Uint8Array[],
})

/** Whether the pieces are in the bytes, one after another, with little in between. The last one may be empty. */
function isMadeOf(frame: Uint8Array, pieces: readonly Uint8Array[]): boolean {
  const text = viewOf(frame)
  let at = 0
  for (const [i, piece] of pieces.entries()) {
    const found = i < pieces.length - 1 ? text.indexOf(piece, at) : text.length - piece.length
    if (found < at || found > at + 40 || !text.subarray(found, found + piece.length).equals(piece)) return false
    at = found + piece.length
  }
  return at === frame.length
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

/** The root of the tree after a commit: the commit is the first block of its CAR. */
function dataOf({ commit, blocks }: CommitBody): string {
  const at = viewOf(blocks).indexOf(commit.bytes, commit.bytes.length + 20)
  const block = decodeFirst(blocks.subarray(at + commit.bytes.length)).value as { data: Cid }
  return block.data.toString()
}
