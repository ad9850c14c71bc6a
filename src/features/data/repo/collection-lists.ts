/**
 * Caches the list of collections of a repository, because finding them takes an index step for each. A list stays
 * correct while the edition of the repository is the same.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { listCollections } from './record-store.ts'

/** Characters of all cached lists: enough for some 5,000 ordinary repositories. */
const MAX_CHARS = 2 * 1024 ** 2

interface KeptList {
  edition: string
  collections: readonly string[]
}

const keptLists = perContext(
  () =>
    new BoundedCache<KeptList>(MAX_CHARS, (did, { collections }) =>
      collections.reduce((chars, { length }) => chars + length, did.length),
    ),
)

/**
 * Returns the collections that have records, as `listCollections` does. `edition` is the edition of the repository,
 * read before the call; null if the account has no repository.
 */
export async function collectionsOf(ctx: Context, did: Did, edition: string | null): Promise<readonly string[]> {
  const kept = keptLists(ctx)
  const known = kept.get(did)
  if (known?.edition === edition) return known.collections
  const collections = await listCollections(ctx.db, did)
  if (edition !== null) kept.set(did, { edition, collections })
  return collections
}
