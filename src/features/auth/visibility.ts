/** Which repositories a reader of the sync methods may see. */
import { Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountStatus } from '../accounts/accounts.ts'
import type { Viewer } from './auth.ts'

/** Its owner and the operator see a repository in any state of its account. */
export async function requireVisibleRepo({ db }: Pick<Context, 'db'>, viewer: Viewer, did: Did): Promise<void> {
  const status = await accountStatus(db, did)
  if (status === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${did}`)
  if (viewer.admin || viewer.did === did) return
  if (status === 'takendown') throw new Refusal(400, 'RepoTakendown', `Repo has been takendown: ${did}`)
  if (status === 'deactivated') throw new Refusal(400, 'RepoDeactivated', `Repo has been deactivated: ${did}`)
}
