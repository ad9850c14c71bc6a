/**
 * Permissioned data: repositories in spaces, which only apps with access read. There is no tree, no event and no relay;
 * nothing public reads what is stored here.
 *
 * The protocol is a draft, and this is the part of it that concerns an account's own data. Rows outlive the switch:
 * while it is off, they are unreachable, and still belong to backups, copies and the deletion of accounts.
 */
import type { Feature } from '../../../http/feature.ts'
import { areReferencesRight } from './space-check.ts'
import { spaceRoutes } from './space-routes.ts'
import { disownSpaceRepos } from './space-store.ts'
import { spaceSweep } from './space-sweep.ts'

export const spaces: Feature = {
  name: 'spaces',
  capabilities: ['spaces'],
  routes: spaceRoutes,
  sweeps: [spaceSweep],
  agreesOnBlobs: areReferencesRight,
  async forgetAccount(_, tx, did) {
    await disownSpaceRepos(tx, did)
  },
}
