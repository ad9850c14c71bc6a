/** Which repositories a reader of the sync methods may see. */
import { Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountStatus, type AccountStatus } from '../accounts/accounts.ts'

/** Who looks: `did` sees its own account in any state, `admin` every account, anybody what is public. */
export interface Viewer {
  did: Did | null
  admin: boolean
}

/** Its owner and the operator see a repository in any state of its account. */
export async function requireVisibleRepo({ db }: Pick<Context, 'db'>, viewer: Viewer, did: Did): Promise<void> {
  requireVisible(await accountStatus(db, did), viewer, did)
}

/** The same where the state of the account is known. */
export function requireVisible(status: AccountStatus | null, viewer: Viewer, did: Did): void {
  if (status === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${did}`)
  if (viewer.admin || viewer.did === did) return
  if (status === 'takendown') throw new Refusal(400, 'RepoTakendown', `Repo has been takendown: ${did}`)
  if (status === 'deactivated') throw new Refusal(400, 'RepoDeactivated', `Repo has been deactivated: ${did}`)
}
