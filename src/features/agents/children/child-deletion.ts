/**
 * Deletion of children, which are accounts that other accounts have made for agents. A parent can delete a child, and
 * children are deleted with their parent, in both cases after a delay in which that can be undone.
 */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountOf, scheduleDeletion } from '../../identity/accounts/accounts.ts'
import { endRegistration, findRegistration } from '../agents/agents.ts'
import { findChild, livingChildrenOf, setChildDeletion } from './child-store.ts'

/**
 * End the agent of a child, and deactivate its account until it is deleted. Returns the time of the deletion, even if
 * the account has been deleted already, and leaves an account alone that has come back since; null if there is no such
 * child.
 */
export async function scheduleChildDeletion(ctx: Context, tx: Tx, did: Did): Promise<Millis | null> {
  const child = await findChild(tx, did)
  const account = await accountOf(tx, did)
  if (child === null || account?.createdAt !== child.createdAt) return child?.deleteAfter ?? null
  const now = ctx.clock.now()
  const deleteAfter = now + ctx.config.accounts.childDeletionGraceSecs * 1000
  const registration = await findRegistration(tx, child.registrationId)
  if (registration) await endRegistration(tx, registration, now)
  await setChildDeletion(tx, did, deleteAfter)
  await scheduleDeletion(ctx, tx, account, deleteAfter)
  return deleteAfter
}

/** Schedule the deletion of all children of an account, so that they do not stand in the way of its own deletion. */
export async function scheduleChildrenOf(ctx: Context, tx: Tx, parent: Did): Promise<void> {
  for (const child of await livingChildrenOf(tx, parent)) await scheduleChildDeletion(ctx, tx, child)
}
