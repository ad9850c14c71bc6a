/** Reads a tree with missing or damaged nodes: the entries that are left, and the gaps in between. */
import { setImmediate } from 'node:timers/promises'
import type { Cid } from '../../../protocol/cid.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { decodeNode, decodeRoot, keyHeight, type MstNode } from '../../../protocol/mst-node.ts'

/** Sorts after every path. */
export const END = '~'

/** Paths between these two may be missing. The two themselves are not part of the gap. */
export interface Gap {
  after: string
  before: string
}

const NODES_PER_TURN = 200

export async function readPartly(
  root: Cid,
  read: (cid: Cid) => Uint8Array | null,
): Promise<{ entries: Map<string, Cid>; gaps: Gap[] }> {
  const entries = new Map<string, Cid>()
  const gaps: Gap[] = []
  let count = 0
  const walk = async (cid: Cid, layer: number | null, after: string, before: string): Promise<void> => {
    const node = nodeOf(read(cid), layer, after, before)
    if (++count % NODES_PER_TURN === 0) await setImmediate()
    if (node === null) {
      gaps.push({ after, before })
      return
    }
    for (let i = 0; i <= node.keys.length; i++) {
      const child = node.subtrees[i] as Cid | null
      if (child !== null) await walk(child, node.layer - 1, i === 0 ? after : node.keys[i - 1]!, node.keys[i] ?? before)
      if (i < node.keys.length) entries.set(node.keys[i]!, node.values[i] as Cid)
    }
  }
  await walk(root, null, '', END)
  return { entries, gaps }
}

const noKeys = (): never => {
  throw new Malformed('the root holds no key')
}

/** Returns null for a node that is missing, malformed, or does not belong at this place. */
function nodeOf(bytes: Uint8Array | null, layer: number | null, after: string, before: string): MstNode | null {
  if (bytes === null) return null
  try {
    const node = layer === null ? decodeRoot(bytes, noKeys) : decodeNode(bytes, layer)
    const isHere = node.keys.every(
      (key, i) => key > (node.keys[i - 1] ?? after) && key < before && keyHeight(key) === node.layer,
    )
    return isHere ? node : null
  } catch (error) {
    if (error instanceof Malformed) return null
    throw error
  }
}

/** Whether a path is in one of the gaps, which are in order. */
export function isIn(gaps: readonly Gap[], path: string): boolean {
  let [low, high] = [0, gaps.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (gaps[middle]!.before <= path) low = middle + 1
    else high = middle
  }
  const gap = gaps[low]
  return gap !== undefined && path > gap.after
}
