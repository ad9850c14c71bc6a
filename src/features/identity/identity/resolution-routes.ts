/** Endpoints that resolve handles, DIDs and documents. */
import { procedure, query, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { refuseSpent } from '../../../http/limiting.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { KeyedLock } from '../../../platform/running/keyed-lock.ts'
import { INVALID_HANDLE, parseHandle, type Did } from '../../../protocol/identifiers.ts'
import { accountAt, accountOf } from '../accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { findDidDocument } from './did-document-store.ts'
import { resolveDid } from './did-resolution.ts'
import { isOwnName } from './own-names.ts'
import { identityOf, resolveHandle, unresolvable, type IdentityInfo } from './identity-lookup.ts'

/**
 * Concurrent refreshes of an account share a fetch, and other nodes wait for it, so that each change is announced once.
 */
const refreshes = perContext((ctx) => ({
  flights: new SingleFlight<Did, IdentityInfo>(),
  turns: new KeyedLock(ctx, 'identity refresh'),
}))

async function refreshIdentity(call: Exchange, identifier: string): Promise<IdentityInfo> {
  const { ctx } = call
  const known = await accountAt(ctx.db, identifier)
  // The handle of an inactive account does not resolve.
  if (!known || (known.did !== identifier && !activityOf(known).active))
    return identityOf(ctx, identifier, { live: true })
  const { did } = known
  await refuseSpent(call, 'statusChange', did)
  const { flights, turns } = refreshes(ctx)
  return flights.runAnew(did, () => turns.run(did, () => refreshAccount(ctx, did)))
}

/**
 * Anyone may ask for a refresh, so an `#identity` event is emitted only if the document has changed. Each event is
 * charged to the account, because its owner could publish another document for every refresh.
 */
async function refreshAccount(ctx: Context, did: Did): Promise<IdentityInfo> {
  const before = await findDidDocument(ctx.db, did)
  const info = await identityOf(ctx, did, { live: true })
  if (before && JSON.stringify(before.document) !== JSON.stringify(info.didDoc)) {
    const handle = info.handle === INVALID_HANDLE ? undefined : info.handle
    await ctx.db.transaction(async (tx) => {
      if (await accountOf(tx, did)) await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
    })
    if (ctx.config.rateLimit.enabled) ctx.limits.spend({ name: 'statusChange', key: did })
  }
  return info
}

export const resolutionRoutes = [
  query('com.atproto.identity.resolveHandle', {
    async handler({ ctx, params: { handle } }) {
      const name = parseHandle(handle)!
      const did = await resolveHandle(ctx, name)
      if (did) return { did }
      throw isOwnName(ctx, name)
        ? new Refusal(400, 'HandleNotFound', 'Unable to resolve handle')
        : invalidRequest('Unable to resolve handle')
    },
  }),
  query('com.atproto.identity.resolveDid', {
    async handler({ ctx, params: { did } }) {
      const resolution = await resolveDid(ctx, did)
      if (!resolution.ok) throw unresolvable(did, resolution.fault)
      return { didDoc: resolution.document }
    },
  }),
  query('com.atproto.identity.resolveIdentity', {
    handler: ({ ctx, params: { identifier } }) => identityOf(ctx, identifier),
  }),
  procedure('com.atproto.identity.refreshIdentity', {
    handler: (call) => refreshIdentity(call, call.input.identifier),
  }),
]
