/** A second opinion on repositories, from the reference implementation: roots of trees, and the undoing of commits. */
import { MemoryBlockstore, MST, readCarWithRoot } from '@atproto/repo'
import { CID } from 'multiformats/cid'
import type { Cid } from '../../src/protocol/cid.ts'
import { parseCommit, type RepoOp } from '../../src/protocol/commit.ts'

const theirs = (cid: Cid): CID => CID.decode(cid.bytes)

/** The root the reference gives to a set of entries. */
export async function oracleRoot(entries: Iterable<readonly [string, Cid]>): Promise<string> {
  let tree = await MST.create(new MemoryBlockstore())
  for (const [key, value] of entries) tree = await tree.add(key, theirs(value))
  return (await tree.getPointer()).toString()
}

/**
 * Undo the operations of a commit event, the last first, knowing nothing but the blocks it carries. Answers the root of
 * the tree before, which must be the event's `prevData`. Throws when a block is missing or an operation does not fit
 * the tree.
 */
export async function invertCommit(car: Uint8Array, ops: readonly RepoOp[]): Promise<string> {
  const { root, blocks } = await readCarWithRoot(car)
  const commit = blocks.get(root)
  if (commit === undefined) throw new Error('The event does not carry its commit')
  let tree = MST.load(new MemoryBlockstore(blocks), theirs(parseCommit(commit).data))
  for (const op of ops.toReversed()) {
    const current = await tree.get(op.path)
    if (String(current) !== String(op.cid))
      throw new Error(`${op.path} is ${current} in the event, its operation says ${op.cid}`)
    if (op.prev === null) tree = await emptyIsNew(await tree.delete(op.path))
    else if (op.cid === null) tree = await tree.add(op.path, theirs(op.prev))
    else tree = await tree.update(op.path, theirs(op.prev))
  }
  return (await tree.getPointer()).toString()
}

/** The reference keeps the layer of a tree that it has emptied, and builds on it: begin anew, as its own rules ask. */
async function emptyIsNew(tree: MST): Promise<MST> {
  const entries = await tree.getEntries()
  return entries.length === 0 ? MST.create(tree.storage as MemoryBlockstore) : tree
}
