/**
 * Shares in escrow: share 2 of an account's recovery seed, wrapped under the master key. Each change is written together
 * with its row in the audit log.
 */
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { SHARE_VERSION, type EscrowShare } from '../../protocol/escrow-share.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { deleteEscrowEventsOf, deleteShareRow, hasShare, insertEscrowEvent, putShare } from './escrow-store.ts'
import { deleteRecoveryCodesOf } from './recovery-code-store.ts'

/**
 * Takes a share into escrow, in the caller's transaction; a release in flight ends. The caller has checked that it is
 * share 2, and that a master key is configured.
 */
export async function depositShare(
  ctx: Pick<Context, 'vault' | 'clock'>,
  tx: Tx,
  did: Did,
  { setId, bytes }: EscrowShare,
): Promise<'deposited' | 'rotated'> {
  const now = ctx.clock.now()
  const event = (await hasShare(tx, did)) ? 'rotated' : 'deposited'
  await putShare(tx, did, ctx.vault.wrap(bytes), now)
  await insertEscrowEvent(tx, did, event, now, { set_id: setId, version: SHARE_VERSION })
  return event
}

/** Forgets everything about an account that is deleted, the audit log included. */
export async function deleteEscrowOf(tx: Tx, did: Did): Promise<void> {
  await deleteShareRow(tx, did)
  await deleteRecoveryCodesOf(tx, did)
  await deleteEscrowEventsOf(tx, did)
}
