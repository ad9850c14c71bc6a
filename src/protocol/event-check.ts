/**
 * Checks a stored event: its frame is in canonical form and agrees with its database row, and the operations of a
 * commit lead from the previous tree to the stated one, as relays verify.
 *
 * Source: atproto "Sync": "Commit Validation", inversion of operations.
 */
import { readCar, type Block } from './car.ts'
import { decode, decodeFirst, encodeSequence, type DataObject } from './cbor.ts'
import { Cid, equalBytes } from './cid.ts'
import { parseCommit } from './commit.ts'
import type { EventType } from './frames.ts'
import { wireTime, type Did, type Millis } from './identifiers.ts'
import { Malformed } from './malformed.ts'
import { MissingBlock, Mst } from './mst.ts'

export interface EventInLog {
  seq: number
  did: Did
  type: EventType
  sequencedAt: Millis
  frame: Uint8Array
}

/** The state of a repository after an event. */
export interface StateInEvent {
  rev: string
  /** Root of the tree. */
  data: Cid
  /** The commit block, which the event contains. */
  commit: Block
  /**
   * What a commit event says about the previous state. Null in a sync event; `prevData` is undefined if a commit event
   * omits it.
   */
  since: string | null
  prevData: Cid | null | undefined
  ops: readonly OpInEvent[]
  /** All blocks in the event, by CID text. */
  blocks: ReadonlyMap<string, Uint8Array>
}

export interface OpInEvent {
  action: string
  path: string
  cid: Cid | null
  prev: Cid | null | undefined
}

/**
 * Returns the repository state that an event states, null if events of its type state none, or its fault in words. Does
 * not verify the signature of the commit: its key may have been replaced since.
 */
export async function checkEvent(
  event: EventInLog,
): Promise<{ ok: true; state: StateInEvent | null } | { ok: false; fault: string }> {
  try {
    return { ok: true, state: await stateIn(event) }
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, fault: error.message }
    throw error
  }
}

function demand(condition: boolean, fault: string): asserts condition {
  if (!condition) throw new Malformed(fault)
}

async function stateIn({ seq, did, type, sequencedAt, frame }: EventInLog): Promise<StateInEvent | null> {
  const { value: header, rest } = decodeFirst(frame)
  const body = decode(rest) as DataObject | null
  demand(typeof body === 'object' && body !== null, 'its body is not a map')
  demand(equalBytes(encodeSequence([header, body]), frame), 'it is not in canonical form')
  demand(
    (header as { op?: unknown }).op === 1 && (header as { t?: unknown }).t === `#${type}`,
    'its type is not that of its row',
  )
  demand(body['seq'] === seq, 'its number is not that of its row')
  demand(body['time'] === wireTime(sequencedAt), 'its time is not that of its row')
  demand((type === 'commit' ? body['repo'] : body['did']) === did, 'its DID is not that of its row')
  return type === 'commit' || type === 'sync' ? repoStateIn(did, type, body) : null
}

async function repoStateIn(did: Did, type: 'commit' | 'sync', body: DataObject): Promise<StateInEvent> {
  demand(body['blocks'] instanceof Uint8Array, 'it has no blocks')
  const { roots, pages } = await readCar([body['blocks']])
  const blocks = new Map<string, Uint8Array>()
  for await (const page of pages) for (const { cid, bytes } of page) blocks.set(cid.toString(), bytes)
  const [root] = roots
  demand(root !== undefined && blocks.has(root.toString()), 'its blocks lack the commit')
  const commit = { cid: root, bytes: blocks.get(root.toString())! }
  const { did: owner, rev, data } = parseCommit(commit.bytes)
  demand(owner === did, 'its commit belongs to another account')
  demand(rev === body['rev'], 'its revision is not that of its commit')
  if (type === 'sync') return { rev, data, commit, since: null, prevData: null, ops: [], blocks }
  demand(
    body['commit'] instanceof Cid && body['commit'].equals(root),
    'it names another commit than the one that it has',
  )
  const since = body['since'] ?? null
  const prevData = body['prevData']
  demand(since === null || typeof since === 'string', 'the revision before it is not one')
  demand(prevData === undefined || prevData === null || prevData instanceof Cid, 'the tree before it is not one')
  const ops = opsOf(body['ops'])
  if (prevData instanceof Cid) invert(data, ops, blocks, prevData)
  return { rev, data, commit, since, prevData: prevData as Cid | null | undefined, ops, blocks }
}

function opsOf(value: unknown): OpInEvent[] {
  demand(Array.isArray(value), 'it has no operations')
  return value.map((op: Record<string, unknown>) => {
    const { action, path, cid, prev } = op
    demand(typeof action === 'string' && typeof path === 'string', 'an operation names no path')
    demand(cid === null || cid instanceof Cid, `the operation on ${path} has no CID`)
    demand(prev === undefined || prev === null || prev instanceof Cid, `the operation on ${path} has a wrong CID`)
    return { action, path, cid, prev }
  })
}

/** Inverting the operations must give the previous tree. An older event may lack the nodes that the inversion needs. */
function invert(data: Cid, ops: readonly OpInEvent[], blocks: ReadonlyMap<string, Uint8Array>, before: Cid): void {
  try {
    const tree = new Mst(data, (cid) => blocks.get(cid.toString()) ?? null)
    for (const { path, cid, prev } of ops) {
      const present = tree.get(path)
      demand(cid === null ? present === null : cid.equals(present), `the operation on ${path} is not in its tree`)
      if (cid !== null) demand(blocks.has(cid.toString()), `its blocks lack the record ${path}`)
      if (prev) tree.put(path, prev)
      else tree.delete(path)
    }
    demand(tree.flush().root.equals(before), 'its operations do not lead from the tree before it')
  } catch (error) {
    if (!(error instanceof MissingBlock)) throw error
  }
}
