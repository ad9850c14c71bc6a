/**
 * Shares in escrow: share 2 of an account's recovery seed, wrapped under the master key. Each change is written
 * together with its row in the log of the account.
 */
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { SHARE_VERSION, type EscrowShare } from '../../../protocol/escrow-share.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountStatus, refuseMissing } from '../accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../account-events/account-events.ts'
import { noteWallet } from '../../access/wallet-proofs/wallet-proofs.ts'
import { deleteEscrowEventsOf, deleteShareRow, findShare, insertEscrowEvent, putShare } from './escrow-store.ts'
import { deleteRecoveryCodesOf } from './recovery-code-store.ts'

export type Deposit = 'deposited' | 'rotated'

/** Take a share from its holder. Throws `AccountNotFound` if the account was deleted after the caller authenticated. */
export async function takeShare(by: By, did: Did, share: EscrowShare): Promise<Deposit> {
  const { ctx } = by
  return ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    refuseMissing(await accountStatus(tx, did))
    const deposit = await depositShare(ctx, tx, did, share)
    await announceIn(tx, by, deposit === 'rotated' ? 'shareRotated' : 'shareDeposited', did)
    return deposit
  })
}

/**
 * Take a share into escrow, in the caller's transaction, and end a release of the previous share. The caller has
 * checked that it is share 2, and that a master key is configured.
 */
export async function depositShare(
  ctx: Pick<Context, 'vault' | 'clock'>,
  tx: Tx,
  did: Did,
  { setId, bytes }: EscrowShare,
): Promise<Deposit> {
  const now = ctx.clock.now()
  const deposit = (await findShare(tx, did, now)) === null ? 'deposited' : 'rotated'
  await putShare(tx, did, ctx.vault.wrap(bytes), now)
  await noteWallet(ctx, tx, did)
  await insertEscrowEvent(tx, did, deposit, now, { set_id: setId, version: SHARE_VERSION })
  return deposit
}

/** Delete the share of an account, and with it a release in flight. Returns false if there is none. */
export function deleteShare(by: By, did: Did): Promise<boolean> {
  const { ctx } = by
  return ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    if ((await deleteShareRow(tx, did)) === 0) return false
    await insertEscrowEvent(tx, did, 'deleted', ctx.clock.now())
    await announceIn(tx, by, 'shareDeleted', did)
    return true
  })
}

/** Forget everything about an account that is deleted, its log included. */
export async function deleteEscrowOf(tx: Tx, did: Did): Promise<void> {
  await deleteShareRow(tx, did)
  await deleteRecoveryCodesOf(tx, did)
  await deleteEscrowEventsOf(tx, did)
}

/**
 * The state of an account's escrow. `since` is the time of the deposit. A release is `pending` until the share can be
 * collected, `collectable` from then on, and `collected` once the share was handed out, for as long as it can be
 * collected again.
 */
export type EscrowState =
  | { state: 'none' }
  | { state: 'held'; since: Millis }
  | { state: 'pending'; since: Millis; until: Millis }
  | { state: 'collectable'; since: Millis; from: Millis }
  | { state: 'collected'; since: Millis; at: Millis }

export async function escrowState({ clock }: Pick<Context, 'clock'>, reader: Reader, did: Did): Promise<EscrowState> {
  const now = clock.now()
  const share = await findShare(reader, did, now)
  if (share === null) return { state: 'none' }
  const { heldSince: since, release } = share
  if (release === null) return { state: 'held', since }
  const { collectableAt, collectedAt } = release
  if (collectedAt !== null) return { state: 'collected', since, at: collectedAt }
  return now < collectableAt
    ? { state: 'pending', since, until: collectableAt }
    : { state: 'collectable', since, from: collectableAt }
}
