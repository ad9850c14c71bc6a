/**
 * How a delegation begins and ends: the holder of an account invites another account of this server, which accepts.
 * Either side can refuse or end it without the other.
 *
 * Every change locks the shared account, as exchanges of its authorization codes and refresh tokens do: no exchange
 * uses a delegation that is just being ended.
 */
import { randomUUID } from 'node:crypto'
import { DAY_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { endDelegation as endItsAccess } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountStatus, accountSummary, requireActive } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { scopeOfTerms, type AccessTerms } from '../sessions/sessions.ts'
import { insertDelegationEvent } from './delegation-event-store.ts'
import {
  deleteDelegationsOf,
  deleteInvitation,
  delegationsTo,
  findDelegation,
  forgetDelegate,
  insertDelegation,
  liveDelegationsOf,
  updateAccepted,
  updateEnded,
  type Delegation,
  type DelegationEnd,
} from './delegation-store.ts'

/** Most delegates of an account, including open invitations. */
const MAX_DELEGATES = 20
/** Lifetime of an invitation. */
const INVITATION_MILLIS = 7 * DAY_SECS * 1000
/** Delegations of one delegate that a deletion reads at once. */
const PAGE = 100

/** Also thrown for delegations of other accounts, so as not to reveal them. */
export const unknownDelegation = () => notFound('No such delegation')

/** Whether the delegation has ended, or the delegation or its invitation has expired. */
export function isOver({ status, invitedAt, expiresAt }: Delegation, now: Millis): boolean {
  if (status === 'ended' || (expiresAt !== null && now >= expiresAt)) return true
  return status === 'invited' && now >= invitedAt + INVITATION_MILLIS
}

/**
 * Invite an account of this server to act for the holder's account, on these terms. `name` is its handle or DID.
 * Returns the invitation.
 *
 * Throws `InvalidRequest` as `scopeOfTerms` does, and if no active account here has the name, if the name is the
 * holder's own account or one that is already a delegate or invited, or if the account has the most delegates that it
 * may have; also throws what `requireActive` throws. Refusing a handle reveals only what is public: its account, and
 * the status of that repository.
 */
export async function inviteDelegate(
  exchange: Exchange,
  did: Did,
  name: string,
  terms: AccessTerms,
): Promise<Delegation> {
  const { ctx } = exchange
  const now = ctx.clock.now()
  const scope = scopeOfTerms(ctx, terms)
  const invited = await accountSummary(ctx.db, name.trim().replace(/^@/, ''))
  if (invited?.status !== 'active') throw notInvitable()
  if (invited.did === did) throw invalidRequest('delegate must be another account')
  const delegation: Delegation & { delegateDid: Did } = {
    id: `dlg_${randomUUID().replaceAll('-', '')}`,
    did,
    delegateDid: invited.did,
    scope,
    status: 'invited',
    invitedAt: now,
    acceptedAt: null,
    expiresAt: terms.expiresAt,
    endedAt: null,
    endedBy: null,
  }
  return ctx.db.transactionOn(accountLock(did), async (tx) => {
    await exchange.revalidate(tx)
    requireActive(await accountStatus(tx, did))
    if ((await accountStatus(tx, invited.did)) !== 'active') throw notInvitable()
    const live = await withoutOver(ctx, tx, await liveDelegationsOf(tx, did), now)
    if (live.some(({ delegateDid }) => delegateDid === invited.did))
      throw invalidRequest('delegate already acts for this account, or is invited to')
    if (live.length >= MAX_DELEGATES) throw invalidRequest(`An account can have ${MAX_DELEGATES} delegates`)
    await insertDelegation(tx, delegation)
    await insertDelegationEvent(tx, delegation, { type: 'invited', now })
    await announceIn(tx, exchange, 'delegateInvited', did, await naming(tx, invited.did))
    // Omit the origin of the request: the delegate must not learn where the holder is.
    await announceIn(tx, { ctx }, 'delegationOffered', invited.did, await naming(tx, did))
    return delegation
  })
}

const notInvitable = () => invalidRequest('delegate must be the handle of an active account of this server')

/** How an event names the other account. */
const naming = async (reader: Reader, did: Did): Promise<{ name: string; namedDid: Did }> => ({
  name: (await accountSummary(reader, did))?.handle ?? did,
  namedDid: did,
})

/** End the delegations that have expired. Returns the others. */
async function withoutOver(
  ctx: Context,
  tx: Tx,
  delegations: readonly Delegation[],
  now: Millis,
): Promise<Delegation[]> {
  for (const delegation of delegations) if (isOver(delegation, now)) await close(ctx, tx, delegation, 'time')
  return delegations.filter((delegation) => !isOver(delegation, now))
}

/**
 * Accept an invitation, as the account that was invited. Repeating it changes nothing. Throws `NotFound` if the account
 * has no open invitation with that id, or if the shared account is not active, and what `requireActive` throws if the
 * invited account is not active.
 */
export async function acceptDelegation(exchange: Exchange, delegateDid: Did, id: string): Promise<Delegation> {
  const { ctx } = exchange
  const { db, clock } = ctx
  const known = await findDelegation(db, id)
  if (known?.delegateDid !== delegateDid) throw unknownDelegation()
  return db.transactionOn(accountLock(known.did), async (tx) => {
    await exchange.revalidate(tx)
    const now = clock.now()
    const delegation = await findDelegation(tx, id)
    if (delegation?.delegateDid !== delegateDid || isOver(delegation, now)) throw unknownDelegation()
    requireActive(await accountStatus(tx, delegateDid))
    if ((await accountStatus(tx, delegation.did)) !== 'active') throw unknownDelegation()
    if (delegation.status === 'active') return delegation
    await updateAccepted(tx, id, now)
    await insertDelegationEvent(tx, delegation, { type: 'accepted', now })
    await announceIn(tx, exchange, 'delegationTaken', delegateDid, await naming(tx, delegation.did))
    await announceIn(tx, { ctx }, 'delegateAccepted', delegation.did, await naming(tx, delegateDid))
    return { ...delegation, status: 'active', acceptedAt: now }
  })
}

/**
 * End a delegation, or withdraw or decline an invitation. The delegate's app sessions and tokens end with it. Returns
 * the shared account; null if `whose` matches no such delegation. Repeating it changes nothing.
 */
export async function endDelegation(
  exchange: Exchange,
  id: string,
  endedBy: Extract<DelegationEnd, 'holder' | 'delegate' | 'operator'>,
  whose: (delegation: Delegation) => boolean,
  also: (tx: Tx, delegation: Delegation) => Promise<void> = async () => undefined,
): Promise<Did | null> {
  const { ctx } = exchange
  const known = await findDelegation(ctx.db, id)
  if (known === null || !whose(known)) return null
  return ctx.db.transactionOn(accountLock(known.did), async (tx) => {
    await exchange.revalidate(tx)
    const delegation = await findDelegation(tx, id)
    if (delegation === null || delegation.status === 'ended') return known.did
    await close(ctx, tx, delegation, endedBy)
    await also(tx, delegation)
    if (endedBy !== 'operator') {
      const whom = delegation.delegateDid === null ? {} : await naming(tx, delegation.delegateDid)
      await announceIn(tx, endedBy === 'holder' ? exchange : { ctx }, 'delegationEnded', known.did, whom)
    }
    return known.did
  })
}

/** End a delegation in the caller's transaction. An invitation is deleted without a trace. */
async function close(ctx: Context, tx: Tx, delegation: Delegation, endedBy: DelegationEnd): Promise<void> {
  if (delegation.status === 'invited') return deleteInvitation(tx, delegation.id)
  const now = ctx.clock.now()
  if ((await updateEnded(tx, delegation.id, endedBy, now)) === 0) return
  await insertDelegationEvent(tx, delegation, { type: 'ended', detail: { by: endedBy }, now })
  await endItsAccess(ctx, tx, delegation)
}

/** End all delegations of a shared account. Returns how many had been accepted. */
export async function endDelegationsOf(
  ctx: Context,
  tx: Tx,
  did: Did,
  endedBy: Extract<DelegationEnd, 'operator' | 'password_reset'>,
): Promise<number> {
  const live = await liveDelegationsOf(tx, did)
  for (const delegation of live) await close(ctx, tx, delegation, endedBy)
  return live.filter(({ status }) => status === 'active').length
}

/**
 * Delete the delegations of an account that is deleted, and end those by which it acts for others. Those accounts keep
 * the record of what it did, without its name.
 */
export async function forgetDelegationsOf(ctx: Context, tx: Tx, did: Did): Promise<void> {
  await deleteDelegationsOf(tx, did)
  for (;;) {
    const rest = await delegationsTo(tx, did, PAGE)
    for (const delegation of rest) await close(ctx, tx, delegation, 'deletion')
    if (rest.length < PAGE) break
  }
  await forgetDelegate(tx, did)
}
