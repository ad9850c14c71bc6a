/**
 * Repository keys: replaces the key that signs an account's repository, by means of an operation on its did:plc that
 * the holder of a rotation key signs.
 *
 * 1. A new key is **staged** (`key-rotation.ts`). It signs nothing.
 * 2. The wallet returns an operation that names the staged key. One transaction stores the operation and **holds** the
 *    account, which then signs no commits.
 * 3. A durable step submits the operation and reads the directory's log until it is known whether the operation took
 *    effect (`key-settlement.ts`). If it did, one transaction **promotes** the staged key to replace the old one, signs
 *    the head again and ends the hold. If it did not, the hold ends and the key stays staged.
 *
 * If the process is killed at any point, the step resumes after the next start, and a write of the account triggers it
 * at once. So no commit is signed by a key that the identity does not name.
 */
import type { Feature } from '../../../http/feature.ts'
import { deleteStagedKey } from './staged-key-store.ts'
import { settleStep } from './key-settlement.ts'
import { repoKeyRoutes } from './repo-key-routes.ts'

export const repoKeys: Feature = {
  name: 'repo-keys',
  routes: repoKeyRoutes,
  steps: [settleStep],
  async forgetAccount(_, tx, did) {
    await deleteStagedKey(tx, did)
  },
}
