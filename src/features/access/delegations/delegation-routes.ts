/**
 * Endpoints for holders, who list, invite and remove delegates, and for delegates, who list, accept and leave
 * delegations.
 */
import { Type } from '@sinclair/typebox'
import { perAccount, route } from '../../../http/endpoint.ts'
import { readJson } from '../../../http/json-input.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { owner } from '../auth/auth.ts'
import { termMembers, termsIn } from '../sessions/sessions.ts'
import { acceptDelegation, endDelegation, inviteDelegate, unknownDelegation } from './delegation-changes.ts'
import type { DelegationEvent } from './delegation-event-store.ts'
import { delegateActs, listDelegates, listSharedAccounts, type ListedDelegation } from './delegation-lists.ts'
import type { Delegation } from './delegation-store.ts'

const MAX_ACTS = 100

const termsView = ({ id, scope, status, invitedAt, acceptedAt, expiresAt }: Delegation) => ({
  id,
  scope,
  status,
  invitedAt: wireTime(invitedAt),
  acceptedAt: wireTimeOrNull(acceptedAt) ?? undefined,
  expiresAt: wireTimeOrNull(expiresAt) ?? undefined,
})

/** A delegation as the holder of the shared account sees it. */
const delegateView = (delegation: ListedDelegation) => ({
  ...termsView(delegation),
  did: delegation.delegateDid ?? undefined,
  handle: delegation.handle ?? undefined,
  endedAt: wireTimeOrNull(delegation.endedAt) ?? undefined,
  endedBy: delegation.endedBy ?? undefined,
})

/** A delegation as the delegate sees it. */
const sharedView = (delegation: ListedDelegation) => ({
  ...termsView(delegation),
  did: delegation.did,
  handle: delegation.handle ?? undefined,
})

const actView = ({
  seq,
  delegationId,
  delegateDid,
  handle,
  type,
  detail,
  createdAt,
}: DelegationEvent & { handle: string | null }) => ({
  seq,
  delegationId,
  did: delegateDid ?? undefined,
  handle: handle ?? undefined,
  type,
  detail: detail ?? undefined,
  createdAt: wireTime(createdAt),
})

const invitation = Type.Object({ delegate: Type.String({ maxLength: 2048 }), ...termMembers })

export const delegationRoutes = [
  route('GET', '/v1/delegates', {
    auth: owner,
    handler: async ({ ctx, caller }) => ({ delegates: (await listDelegates(ctx, caller.did)).map(delegateView) }),
  }),

  route('POST', '/v1/delegates', {
    auth: owner,
    limit: perAccount('inviteDelegate'),
    async handler(call) {
      const { delegate, ...given } = await readJson(call.body, invitation)
      const made = await inviteDelegate(call, call.caller.did, delegate, termsIn(given))
      return { ...termsView(made), did: made.delegateDid }
    },
  }),

  route('POST', '/v1/delegates/:id/end', {
    auth: owner,
    async handler(call) {
      const { id = '' } = call.path
      const { did } = call.caller
      if ((await endDelegation(call, id, 'holder', (one) => one.did === did)) === null) throw unknownDelegation()
      return { id, status: 'ended' }
    },
  }),

  route('GET', '/v1/delegates/acts', {
    auth: owner,
    async handler({ ctx, caller, url: { searchParams } }) {
      const delegation = searchParams.get('delegation')
      const { rows, cursor } = await pageOf(searchParams, { cursor: bySeq, maxRows: MAX_ACTS }, (before, limit) =>
        delegateActs(ctx, caller.did, delegation, before, limit),
      )
      return { acts: rows.map(actView), cursor }
    },
  }),

  route('GET', '/v1/shared-accounts', {
    auth: owner,
    handler: async ({ ctx, caller }) => ({ accounts: (await listSharedAccounts(ctx, caller.did)).map(sharedView) }),
  }),

  route('POST', '/v1/shared-accounts/:id/accept', {
    auth: owner,
    async handler(call) {
      const { id = '' } = call.path
      const accepted = await acceptDelegation(call, call.caller.did, id)
      return { ...termsView(accepted), did: accepted.did }
    },
  }),

  route('POST', '/v1/shared-accounts/:id/leave', {
    auth: owner,
    async handler(call) {
      const { id = '' } = call.path
      const { did } = call.caller
      if ((await endDelegation(call, id, 'delegate', (one) => one.delegateDid === did)) === null)
        throw unknownDelegation()
      return { id, status: 'ended' }
    },
  }),
]
