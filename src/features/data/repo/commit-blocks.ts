/**
 * Looks up single blocks of a repository by CID. The blocks of a commit never change, so each is cached with the CID of
 * its commit.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { sectionOf, type Block } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { StoredNodes } from './node-store.ts'
import { findBlocksLeftOut, findRecordBlock } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/** Size of the cache: bytes of sections, and characters of CIDs and commits. Room for about 16,000 posts. */
const MAX_BYTES = 8 * 1024 ** 2

interface KeptSection {
  /**
   * CID of the head commit of the repository from which the block was read. A block that several repositories have is
   * kept for the one read last.
   */
  commit: string
  section: Uint8Array
}

const keptSections = perContext(
  () =>
    new BoundedCache<KeptSection>(MAX_BYTES, (cid, { commit, section }) => cid.length + commit.length + section.length),
)

/** Returns blocks of a repository as CAR sections, in the order of `cids`; null for each that it does not have. */
export async function sectionsOf(
  ctx: Context,
  reader: Reader,
  repo: RepoHead,
  cids: readonly Cid[],
): Promise<(Uint8Array | null)[]> {
  const kept = keptSections(ctx)
  const commit = repo.head.toString()
  const sections = cids.map((cid) => {
    const found = kept.get(cid.toString())
    return found?.commit === commit ? found.section : null
  })
  if (!sections.includes(null)) return sections
  const missing = cids.filter((_, i) => sections[i] === null)
  const stored = await storedBlocks(reader, repo, missing)
  let next = 0
  return sections.map((section) => section ?? keep(missing[next]!, stored[next++] ?? null))

  function keep(cid: Cid, bytes: Uint8Array | null): Uint8Array | null {
    if (bytes === null) return null
    const section = sectionOf({ cid, bytes })
    kept.set(cid.toString(), { commit, section })
    return section
  }
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
  // Records with the same content share a CID, so the number of blocks does not tell how many CIDs were found.
  add(await findBlocksLeftOut(reader, repo.id, others))
  const nodes = others.filter((cid) => !rest.has(cid.toString()))
  add(await new StoredNodes(reader, repo.id).find(nodes))
  return cids.map((cid, i) => blocks[i] ?? rest.get(cid.toString()) ?? null)
}
