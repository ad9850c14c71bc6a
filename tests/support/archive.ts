/** Repository archives as another server would send them, sound or broken in one point. */
import { carOf, type Block } from '../../src/protocol/car.ts'
import { encode, type Data } from '../../src/protocol/cbor.ts'
import { cidOfCbor, type Cid } from '../../src/protocol/cid.ts'
import { signCommit, unsignedCommit } from '../../src/protocol/commit.ts'
import type { Did, Tid } from '../../src/protocol/identifiers.ts'
import type { SigningKey } from '../../src/protocol/keys.ts'
import { buildTree } from '../../src/protocol/mst.ts'

export interface Archive {
  root: Cid
  /** Root of the tree. */
  data: Cid
  /** Commit first, then nodes, then records. */
  blocks: Block[]
  bytes: Uint8Array
}

export const blockOf = (data: Data): Block => {
  const bytes = encode(data)
  return { cid: cidOfCbor(bytes), bytes }
}

/** A record that is at many paths is encoded once. */
export function archiveOf(did: string, rev: string, records: Record<string, Data>, key: SigningKey): Archive {
  const blocks = new Map<Data, Block>()
  const leaves = Object.entries(records)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, data]) => [path, blocks.getOrInsertComputed(data, () => blockOf(data))] as const)
  const nodes: Block[] = []
  const data = buildTree(
    leaves.map(([path, { cid }]) => [path, cid] as const),
    (block) => nodes.push(block),
  )
  const commit = signCommit(unsignedCommit(did as Did, rev as Tid, data), key)
  return { root: commit.cid, data, ...packed(commit.cid, [commit, ...nodes, ...leaves.map(([, block]) => block)]) }
}

/** An archive of any blocks, whether they belong together or not. */
export function packed(root: Cid, blocks: readonly Block[]): Pick<Archive, 'blocks' | 'bytes'> {
  const unique = [...new Map(blocks.map((block) => [block.cid.toString(), block])).values()]
  return { blocks: unique, bytes: carOf(root, unique) }
}

export const post = (text: string, more: Record<string, Data> = {}): Data => ({
  $type: 'app.bsky.feed.post',
  text,
  createdAt: '2026-01-02T03:04:05.678Z',
  ...more,
})
