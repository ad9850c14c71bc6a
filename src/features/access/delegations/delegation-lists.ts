/** What holders and delegates see of their delegations, and whether a delegation is active. */
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { accountStatus, accountSummary } from '../../identity/accounts/accounts.ts'
import { isOver } from './delegation-changes.ts'
import {
  insertDelegateAct,
  listDelegationEvents,
  type DelegateActType,
  type DelegationEvent,
} from './delegation-event-store.ts'
import { delegationsOf, delegationsTo, findDelegation, type Delegation } from './delegation-store.ts'

/** Most delegations of a shared account that are listed, including ended ones. */
const MAX_LISTED = 100
/** Most accounts listed for a delegate: strangers may send it many invitations. */
const MAX_SHARED = 50

/** A delegation with the handle of the other account; null once that account is deleted, or if it has none. */
export interface ListedDelegation extends Delegation {
  handle: Handle | null
}

const withDelegate = async (reader: Reader, delegation: Delegation): Promise<ListedDelegation> => ({
  ...delegation,
  handle: delegation.delegateDid && ((await accountSummary(reader, delegation.delegateDid))?.handle ?? null),
})

/**
 * The delegations of a shared account: those that have not ended come first. A delegation that has expired counts as
 * ended.
 */
export async function listDelegates(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  did: Did,
): Promise<ListedDelegation[]> {
  const now = clock.now()
  const found = (await delegationsOf(db, did, MAX_LISTED)).filter(
    (delegation) => delegation.status !== 'invited' || !isOver(delegation, now),
  )
  return Promise.all(
    found.map((delegation) =>
      withDelegate(
        db,
        delegation.status === 'active' && isOver(delegation, now)
          ? { ...delegation, status: 'ended', endedAt: delegation.expiresAt, endedBy: 'time' }
          : delegation,
      ),
    ),
  )
}

/** The accounts that an account acts for, then its invitations. Both accounts must be active. */
export async function listSharedAccounts(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  delegateDid: Did,
): Promise<ListedDelegation[]> {
  const now = clock.now()
  const found = (await delegationsTo(db, delegateDid, MAX_SHARED)).filter((delegation) => !isOver(delegation, now))
  const summaries = await Promise.all(found.map(({ did }) => accountSummary(db, did)))
  return found.flatMap((delegation, i) =>
    summaries[i]?.status === 'active' ? [{ ...delegation, handle: summaries[i].handle }] : [],
  )
}

export interface StandingDelegation extends Delegation {
  delegateDid: Did
}

/**
 * Returns the delegation if it is in force: it was accepted, has not ended, and both accounts are active. Otherwise
 * returns null.
 */
export async function standingDelegation(reader: Reader, id: string, now: Millis): Promise<StandingDelegation | null> {
  const delegation = await findDelegation(reader, id)
  if (delegation === null || delegation.status !== 'active' || isOver(delegation, now)) return null
  const { did, delegateDid } = delegation
  if (delegateDid === null) return null
  if ((await accountStatus(reader, did)) !== 'active' || (await accountStatus(reader, delegateDid)) !== 'active')
    return null
  return { ...delegation, delegateDid }
}

/**
 * Record an act of a delegate, in the transaction that performs it. Returns false if the delegation has ended: roll the
 * transaction back then.
 */
export const recordDelegateAct = async (
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  id: string,
  act: { type: DelegateActType; detail: Record<string, unknown> },
): Promise<boolean> => (await insertDelegateAct(tx, id, { ...act, now: clock.now() })) > 0

/**
 * A page of what delegates did, with their names, newest first. `delegationId`: of this delegation only; null for all.
 */
export async function delegateActs(
  { db }: Pick<Context, 'db'>,
  did: Did,
  delegationId: string | null,
  before: { seq: number } | null,
  limit: number,
): Promise<(DelegationEvent & { handle: Handle | null })[]> {
  const events = await listDelegationEvents(db, did, delegationId, before, limit)
  const dids = [...new Set(events.flatMap(({ delegateDid }) => delegateDid ?? []))]
  const handles = new Map(
    await Promise.all(dids.map(async (one) => [one, (await accountSummary(db, one))?.handle ?? null] as const)),
  )
  return events.map((event) => ({
    ...event,
    handle: event.delegateDid && (handles.get(event.delegateDid) ?? null),
  }))
}
