/** Decides which repositories a caller of the sync methods may see. */
import { Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import type { AccountStatus } from '../../../protocol/account-status.ts'

/** The reader: `did` sees its own repository in any state, `admin` sees all, everyone else sees public ones. */
export interface Viewer {
  did: Did | null
  admin: boolean
}

/** Throws `RepoNotFound`, `RepoTakendown` or `RepoDeactivated` unless the viewer may see the repository. */
export async function requireVisibleRepo({ db }: Pick<Context, 'db'>, viewer: Viewer, did: Did): Promise<void> {
  requireVisible(await accountStatus(db, did), viewer, did)
}

/** Like `requireVisibleRepo`, for a known account status; null if there is no such account. */
export function requireVisible(status: AccountStatus | null, viewer: Viewer, did: Did): void {
  if (status === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${did}`)
  if (viewer.admin || viewer.did === did) return
  if (status === 'takendown') throw new Refusal(400, 'RepoTakendown', `Repo has been takendown: ${did}`)
  if (status === 'deactivated') throw new Refusal(400, 'RepoDeactivated', `Repo has been deactivated: ${did}`)
}
