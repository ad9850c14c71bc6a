/**
 * Single blocks of repositories by CID. The blocks of a commit never change, and are cached under the CID of the
 * commit.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { StoredNodes } from './node-store.ts'
import { findBlocksLeftOut, findRecordBlock } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/** Size of the cache: bytes of blocks and characters of keys. Room for about 16,000 posts. */
const MAX_BYTES = 8 * 1024 ** 2

const keptBlocks = perContext(() => new BoundedCache<Uint8Array>(MAX_BYTES, (key, block) => key.length + block.length))

/** Returns the blocks of a repository in the order of `cids`; null for each that it does not have. */
export async function blocksOf(
  ctx: Context,
  reader: Reader,
  repo: RepoHead,
  cids: readonly Cid[],
): Promise<(Uint8Array | null)[]> {
  const kept = keptBlocks(ctx)
  const keyOf = (cid: Cid) => `${repo.head} ${cid}`
  const blocks = cids.map((cid) => kept.get(keyOf(cid)) ?? null)
  if (!blocks.includes(null)) return blocks
  const missing = cids.filter((_, i) => blocks[i] === null)
  const stored = await storedBlocks(reader, repo, missing)
  for (const [i, cid] of missing.entries()) if (stored[i]) kept.set(keyOf(cid), stored[i])
  let next = 0
  return blocks.map((block) => block ?? stored[next++] ?? null)
}

async function storedBlocks(reader: Reader, repo: RepoHead, cids: readonly Cid[]): Promise<(Uint8Array | null)[]> {
  const blocks: (Uint8Array | null)[] = []
  for (const cid of cids)
    blocks.push(cid.equals(repo.head) ? repo.commitBlock : await findRecordBlock(reader, repo.id, cid))
  const others = cids.filter((_, i) => blocks[i] === null)
  if (others.length === 0) return blocks
  const rest = new Map<string, Uint8Array>()
  const add = (found: readonly Block[]) => {
    for (const { cid, bytes } of found) rest.set(cid.toString(), bytes)
  }
  // Records of the same content have the same CID: their number says nothing about how many CIDs were found.
  add(await findBlocksLeftOut(reader, repo.id, others))
  const nodes = others.filter((cid) => !rest.has(cid.toString()))
  add(await new StoredNodes(reader, repo.id).find(nodes))
  return cids.map((cid, i) => blocks[i] ?? rest.get(cid.toString()) ?? null)
}
