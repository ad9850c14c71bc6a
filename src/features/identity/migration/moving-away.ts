/**
 * Moving an account away, from this server's view. The new server performs the move: it signs in here like any client,
 * asks for a mailed code, and has the identity changed. This module handles what is left to do here after that.
 */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { pdsEndpoint } from '../../../protocol/did-document.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { accountNotFound, accountOf } from '../accounts/accounts.ts'
import { deactivateAccount } from '../account-changes/account-changes.ts'
import { heldRotationKey, resolveDid } from '../identity/identity.ts'
import { findMove } from './move-store.ts'
import { hostOf } from './old-host.ts'

/** Longest time after which an account that was left behind is deleted. */
export const MAX_DELETE_AFTER_DAYS = 365

export interface Leaving {
  did: Did
  handle: Handle | null
  method: 'plc' | 'web'
  /** Whether the identity names this server; null if it cannot be read at the moment. */
  isHere: boolean | null
  /** Host name of the server that the identity names; null if it names none, or cannot be read. */
  host: string | null
  isActive: boolean
  deleteAfter: Millis | null
  /**
   * Whether the identity names a rotation key that this server does not hold; null for a did:web, and if the directory
   * does not say.
   */
  hasOwnKey: boolean | null
}

/** Returns how far an account has left. Always reads the current identity. Throws `AccountNotFound`. */
export async function leavingOf(ctx: Context, did: Did): Promise<Leaving> {
  const account = await accountOf(ctx.db, did)
  if (account === null) throw accountNotFound()
  const resolution = await resolveDid(ctx, did, { live: true })
  const endpoint = resolution.ok ? pdsEndpoint(resolution.document) : null
  return {
    did,
    handle: account.handle,
    method: isPlcDid(did) ? 'plc' : 'web',
    isHere: resolution.ok ? isOwnUrl(ctx.config, endpoint) : null,
    host: endpoint && hostOf(endpoint),
    isActive: account.deactivatedAt === null,
    deleteAfter: account.deleteAfter,
    hasOwnKey: resolution.ok && isPlcDid(did) ? await hasOwnKey(ctx, did) : null,
  }
}

async function hasOwnKey(ctx: Context, did: Did): Promise<boolean | null> {
  const state = await ctx.plc.state(did)
  if (state === null) return null
  for (const key of state.rotationKeys) if ((await heldRotationKey(ctx, did, [key])) === null) return true
  return false
}

/**
 * Deactivate the account that has moved, and have it deleted after some days, or kept if `deleteAfterDays` is null.
 * Throws `Conflict` while the identity names this server, or while the account is moving here, because no server would
 * then serve the account.
 */
export async function leaveAccount(exchange: Exchange, did: Did, deleteAfterDays: number | null): Promise<void> {
  if (deleteAfterDays !== null && (deleteAfterDays < 1 || deleteAfterDays > MAX_DELETE_AFTER_DAYS))
    throw invalidRequest(`deleteAfterDays: from 1 to ${MAX_DELETE_AFTER_DAYS}`)
  const move = await findMove(exchange.ctx.db, did)
  if (move !== null && move.stage !== 'done') throw new Refusal(409, 'Conflict', 'The account is moving here')
  const { isHere } = await leavingOf(exchange.ctx, did)
  if (isHere !== false) throw new Refusal(409, 'Conflict', 'The identity does not name another server')
  const deleteAfter = deleteAfterDays === null ? null : exchange.ctx.clock.now() + deleteAfterDays * DAY_MILLIS
  await deactivateAccount(exchange, did, deleteAfter)
}
