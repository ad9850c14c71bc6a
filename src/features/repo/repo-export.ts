/** All blocks of a repository, or those that are new since a revision, in pages: the body of its CAR. */
import type { Reader } from '../../platform/database.ts'
import type { Block } from '../../protocol/car.ts'
import type { Cid } from '../../protocol/cid.ts'
import type { Tid } from '../../protocol/identifiers.ts'
import { decodeNode, decodeRoot, type MstNode } from '../../protocol/mst-node.ts'
import { StoredNodes } from './node-store.ts'
import { framedRecords, LAST_PATH, listRecordsSince } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'
import { keylessRoot } from './tree-nodes.ts'

const NODE_PAGE = 500
const RECORD_PAGE = 200

/**
 * Commit, nodes, records. Everything must be read from one state of the database: pass a snapshot's reader.
 * `since` leaves out what was there at that revision.
 */
export async function* repoBlocks(reader: Reader, repo: RepoHead, since: Tid | null): AsyncGenerator<Block[] | Uint8Array> {
  yield [{ cid: repo.head, bytes: repo.commitBlock }]
  const nodes = await StoredNodes.of(reader, repo.id)
  if (since === null) {
    yield* nodes.sections()
    yield* framedRecords(reader, repo.id)
  } else if (repo.rev > since) {
    yield* newNodes(nodes, repo.data, since)
    yield* newRecords(reader, repo.id, since)
  }
}

/** A node is never older than those below it, so what is new hangs together at the top of the tree. */
async function* newNodes(nodes: StoredNodes, root: Cid, since: Tid): AsyncGenerator<Block[]> {
  let layer: number | null = null
  for (let level = [root]; level.length > 0; ) {
    const below: Cid[] = []
    for (let at = 0; at < level.length; at += NODE_PAGE) {
      const page = await nodes.findSince(level.slice(at, at + NODE_PAGE), since)
      if (page.length > 0) yield page
      for (const { bytes } of page) {
        const node: MstNode = layer === null ? decodeRoot(bytes, keylessRoot) : decodeNode(bytes, layer)
        layer = node.layer
        for (const child of node.subtrees) if (child !== null) below.push(child as Cid)
      }
    }
    level = below
    if (layer !== null) layer--
  }
}

async function* newRecords(reader: Reader, repoId: number, since: Tid): AsyncGenerator<Block[]> {
  for (let after = { rev: since, path: LAST_PATH }; ; ) {
    const page = await listRecordsSince(reader, repoId, after, RECORD_PAGE)
    if (page.length > 0) yield page.map(({ cid, value }) => ({ cid, bytes: value }))
    if (page.length < RECORD_PAGE) return
    after = page.at(-1)!
  }
}
