/** What an account has in spaces, as archives that its key has signed. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { spaceArchive, SpaceIndex } from '../../../protocol/space-archive.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { signedCommit } from './space-reading.ts'
import { findSpaceRepo, listSpaceEntries, listSpacesOf, spaceRecordsAt } from './space-store.ts'

/** Spaces, entries and records read at once. A single record may have a megabyte. */
const PAGE_SPACES = 100
const PAGE_ENTRIES = 1000
const PAGE_RECORDS = 25

export interface SpaceExport {
  space: SpaceUri
  rev: Tid
  records: number
  /** A CAR in chunks, which must be read before the next export is asked for. */
  car: AsyncIterable<Uint8Array>
}

/** Returns the repositories of an account one after another. `reader` must be of a snapshot. */
export async function* spaceExports(ctx: Context, reader: Reader, did: Did): AsyncGenerator<SpaceExport> {
  for (let after = ''; ;) {
    const spaces = await listSpacesOf(reader, did, { after, limit: PAGE_SPACES })
    for (const space of spaces) {
      const repo = (await findSpaceRepo(reader, did, space))!
      // Sign even while the key is being replaced: the archive is for the account's owner, for later use.
      const commit = signedCommit(await signingKeyOf(ctx, reader, did), { space, repo: did }, repo)
      const index = await indexOf(reader, repo.id)
      const car = spaceArchive(commit, index, (paths) => blocksAt(reader, repo.id, paths), nextTurn)
      yield { space, rev: repo.rev, records: repo.records, car }
    }
    if (spaces.length < PAGE_SPACES) return
    after = spaces.at(-1)!
  }
}

async function indexOf(reader: Reader, repoId: number): Promise<SpaceIndex> {
  const index = new SpaceIndex()
  for (let after: string | null = null; ;) {
    const page = await listSpaceEntries(reader, repoId, {
      collection: null,
      after,
      descending: false,
      limit: PAGE_ENTRIES,
    })
    for (const { path, cid } of page) index.add(path, cid)
    if (page.length < PAGE_ENTRIES) return index
    after = page.at(-1)!.path
  }
}

async function* blocksAt(reader: Reader, repoId: number, paths: readonly string[]): AsyncGenerator<Block[]> {
  for (let start = 0; start < paths.length; start += PAGE_RECORDS) {
    const some = paths.slice(start, start + PAGE_RECORDS)
    const records = await spaceRecordsAt(reader, repoId, some)
    yield some.map((path) => {
      const { cid, value } = records.get(path)!
      return { cid, bytes: value }
    })
  }
}
