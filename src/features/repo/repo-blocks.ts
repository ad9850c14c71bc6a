/** All blocks of a repository, or those that are new since a revision, in pages: the body of its CAR. */
import type { Reader } from '../../platform/database/database.ts'
import type { Block } from '../../protocol/car.ts'
import type { Tid } from '../../protocol/identifiers.ts'
import { StoredNodes } from './node-store.ts'
import { framedRecords, recordBlocksSince } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/**
 * Commit, nodes, records: as pages of blocks, and as chunks of an archive. Everything must be read from one state of
 * the database: pass a snapshot's reader. `since` leaves out what was there at that revision.
 */
export async function* repoBlocks(reader: Reader, repo: RepoHead, since: Tid | null): AsyncGenerator<Block[] | Uint8Array> {
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
