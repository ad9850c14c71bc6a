/** The body of a repository's CAR: all blocks, or those added since a revision, in pages. */
import type { Reader } from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { StoredNodes } from './node-store.ts'
import { framedRecords, recordBlocksSince } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/**
 * Yields the commit, then nodes, then records, as pages of blocks or as chunks of framed CAR sections. All of it must
 * be read from one state of the database: pass the reader of a snapshot. Blocks that existed at revision `since` are
 * left out.
 */
export async function* repoBlocks(
  reader: Reader,
  repo: RepoHead,
  since: Tid | null,
): AsyncGenerator<Block[] | Uint8Array> {
  yield [{ cid: repo.head, bytes: repo.commitBlock }]
  const nodes = new StoredNodes(reader, repo.id)
  if (since === null) {
    yield* nodes.sections()
    yield* framedRecords(reader, repo.id)
  } else if (repo.rev > since) {
    yield* nodes.since(since)
    yield* recordBlocksSince(reader, repo.id, since)
  }
}
