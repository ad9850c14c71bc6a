/**
 * Deletes accounts: one transaction removes every row about the account and adds the event for the network, and files
 * follow. The identity is left untouched, because it belongs to its owner.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { deleteStepsOf } from '../../platform/running/steps.ts'
import type { Did } from '../../protocol/identifiers.ts'
import {
  accountOf,
  announce,
  type By,
  codeRefused,
  deleteAccountRow,
  deleteFurtherHandlesOf,
  deleteMailedCodesOf,
  isDueForDeletion,
  loginRefused,
  loginWithPassword,
  MAX_TRIED_PASSWORD_CHARS,
  redeemCode,
} from '../accounts/accounts.ts'
import { deleteAppPasswordsOf, signOutEverywhere } from '../auth/auth.ts'
import { deleteAccountBlobs, removeBlobFiles } from '../blobs/blobs.ts'
import { deleteEscrowOf } from '../escrow/escrow.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { deleteDevicesOf } from '../wallet-devices/wallet-devices.ts'
import { deleteReservationsOf, deleteWebDocument, forgetDidDocument, forgetReservedKey } from '../identity/identity.ts'
import { forgetInvites } from '../invites/invites.ts'
import { deleteFlagsAbout } from '../labels/labels.ts'
import { deleteNoncesOf } from '../wallet-proofs/wallet-proofs.ts'
import { deletePreferencesOf } from '../preferences/preferences.ts'
import { deleteRepo } from '../repo/repo.ts'

/**
 * Delete an account at its holder's request, with the password and the mailed code. Throws `InvalidRequest` if either
 * is missing, `AuthenticationRequired` for a wrong password, `InvalidToken` or `ExpiredToken` for the code, and
 * `RateLimitExceeded` after too many failures.
 */
export async function deleteOwnAccount(
  exchange: Exchange,
  { did, password, token }: { did: Did; password: string; token: string },
): Promise<void> {
  if (token.trim() === '' || password === '') throw invalidRequest('A password and a token are required')
  if (password.length > MAX_TRIED_PASSWORD_CHARS) throw authenticationRequired('Password too long. Consider resetting your password.')
  const { ctx } = exchange
  const login = await loginWithPassword(exchange, did, password)
  if (!login.ok) throw loginRefused(login.fault, authenticationRequired('Invalid did or password'))
  const outcome = await ctx.db.transaction(async (tx) => {
    const fault = await redeemCode(ctx, tx, { did, purpose: 'delete_account', code: token })
    return fault ? { fault } : { cids: await purge(ctx, tx, did) }
  })
  if (outcome.fault) throw codeRefused(outcome.fault)
  announce(exchange, 'deleted', did)
  await removeBlobFiles(ctx, outcome.cids)
}

/** Delete an account unconditionally. `actor` is the operator, if one does it. Returns false if there is no such account. */
export async function deleteAccount(by: By, did: Did, actor?: string): Promise<boolean> {
  const { ctx } = by
  const cids = await ctx.db.transaction(async (tx) => ((await accountOf(tx, did)) ? purge(ctx, tx, did) : null))
  if (cids === null) return false
  announce(by, 'deleted', did, { actor })
  await removeBlobFiles(ctx, cids)
  return true
}

/** Delete an account whose deletion is due. Returns false if it is no longer due, because its owner has activated it. */
export async function deleteDueAccount(ctx: Context, did: Did): Promise<boolean> {
  const cids = await ctx.db.transaction(async (tx) => ((await isDueForDeletion(tx, did, ctx.clock.now())) ? purge(ctx, tx, did) : null))
  if (cids === null) return false
  announce({ ctx }, 'deleted', did)
  await removeBlobFiles(ctx, cids)
  return true
}

/** Returns the CIDs of blob files to delete after the commit. If that fails, they are orphans, which the blob scrub finds. */
async function purge(ctx: Context, tx: Tx, did: Did): Promise<string[]> {
  await signOutEverywhere(tx, did)
  await deleteAppPasswordsOf(tx, did)
  await deleteMailedCodesOf(tx, did)
  await deleteStepsOf(tx, did)
  await forgetInvites(tx, did)
  await forgetReservedKey(tx, did)
  await deleteFurtherHandlesOf(tx, did)
  await deleteReservationsOf(tx, did)
  await forgetDidDocument(tx, did)
  await deleteWebDocument(tx, did)
  await deleteDevicesOf(tx, did)
  await deleteNoncesOf(tx, did)
  await deleteEscrowOf(tx, did)
  await deletePreferencesOf(tx, did)
  await deleteFlagsAbout(tx, did)
  await deleteRepo(tx, did)
  const cids = await deleteAccountBlobs(tx, did)
  await deleteAccountRow(tx, did)
  await sequenceEvents(ctx, tx, [{ type: 'account', did, status: 'deleted' }])
  return cids
}
