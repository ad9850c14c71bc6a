/** Operators list and end delegations. They do not see what delegates did. */
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { byPair, pageOf } from '../../../http/paged-list.ts'
import { parseDid, wireTime, wireTimeOrNull, type Did } from '../../../protocol/identifiers.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { accountSummary } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { actorOf, operator, recordAudit } from '../../operations/operators/operators.ts'
import { endDelegation, unknownDelegation } from './delegation-changes.ts'
import { listLiveDelegations, type Delegation, type DelegationPlace } from './delegation-store.ts'

const MAX_ROWS = 100
const byInvitation = byPair<DelegationPlace>('invitedAt', '::', 'id', 'dlg_')

async function view(
  reader: Reader,
  { id, did, delegateDid, scope, status, invitedAt, acceptedAt, expiresAt }: Delegation,
) {
  const [holder, delegate] = await Promise.all(
    [did, delegateDid].map((one) => (one === null ? null : accountSummary(reader, one))),
  )
  return {
    id,
    did,
    handle: holder?.handle ?? undefined,
    delegateDid: delegateDid ?? undefined,
    delegateHandle: delegate?.handle ?? undefined,
    scope,
    status,
    invitedAt: wireTime(invitedAt),
    acceptedAt: wireTimeOrNull(acceptedAt) ?? undefined,
    expiresAt: wireTimeOrNull(expiresAt) ?? undefined,
  }
}

/** Returns the shared account to list the delegations of; null for all. Throws `InvalidRequest`. */
function sharedAccountIn(params: URLSearchParams): Did | null {
  const text = params.get('did')
  const did = text === null ? null : parseDid(text)
  if (text !== null && did === null) throw invalidRequest('did must be a DID')
  return did
}

export const delegationAdminRoutes = [
  route('GET', '/v1/admin/delegations', {
    auth: operator('readAccounts'),
    async handler({ ctx, url: { searchParams } }) {
      const did = sharedAccountIn(searchParams)
      const { rows, cursor } = await pageOf(searchParams, { cursor: byInvitation, maxRows: MAX_ROWS }, (after, limit) =>
        listLiveDelegations(ctx.db, did, after, limit),
      )
      return { delegations: await Promise.all(rows.map((row) => view(ctx.db, row))), cursor }
    },
  }),

  route('POST', '/v1/admin/delegations/:id/end', {
    auth: operator('endAccess'),
    async handler(call) {
      const { id = '' } = call.path
      const actor = actorOf(call.caller)
      const whose = () => true
      const did = await endDelegation(
        call,
        id,
        'operator',
        whose,
        async (tx, { did: subject, status, delegateDid }) => {
          const detail = JSON.stringify({ delegation: id, delegate: delegateDid })
          await recordAudit(call, tx, { actor, action: 'delegation_ended', subject, detail })
          if (status === 'active') await announceIn(tx, call, 'delegationEndedByOperator', subject, { actor })
        },
      )
      if (did === null) throw unknownDelegation()
      return { id, did, status: 'ended' }
    },
  }),
]
