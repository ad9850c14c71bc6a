/** Endpoints that resolve handles, DIDs and documents, and that say which handles are available. */
import { anyone, procedure, query } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { charge } from '../../../http/limiting.ts'
import { underMasterKey } from '../../../http/master-key.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { checkHandle } from '../../../protocol/handle-policy.ts'
import { INVALID_HANDLE, parseHandle, type Did } from '../../../protocol/identifiers.ts'
import { accountAt, accountOf } from '../accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { findDidDocument } from './did-document-store.ts'
import { resolveDid } from './did-resolution.ts'
import { handlePolicy, isOwnName } from './handle-admission.ts'
import { curveFor, reserveKey } from './identity-keys.ts'
import { identityOf, resolveHandle, unresolvable, type IdentityInfo } from './identity-lookup.ts'
import { isNameTaken } from './name-claims.ts'
import { findReservedKey } from './reserved-key-store.ts'

/** Refreshes of one account share a fetch, so that one change is announced once. */
const refreshes = perContext(() => new SingleFlight<Did, IdentityInfo>())

async function refreshIdentity(ctx: Context, identifier: string): Promise<IdentityInfo> {
  const known = await accountAt(ctx.db, identifier)
  // The handle of an inactive account does not resolve.
  if (!known || (known.did !== identifier && !activityOf(known).active))
    return identityOf(ctx, identifier, { live: true })
  return refreshes(ctx).runAnew(known.did, () => refreshAccount(ctx, known.did))
}

/** Anyone may ask for a refresh, so an `#identity` event is emitted only if the document has changed. */
async function refreshAccount(ctx: Context, did: Did): Promise<IdentityInfo> {
  const before = await findDidDocument(ctx.db, did)
  const info = await identityOf(ctx, did, { live: true })
  if (before && JSON.stringify(before.document) !== JSON.stringify(info.didDoc)) {
    const handle = info.handle === INVALID_HANDLE ? undefined : info.handle
    await ctx.db.transaction(async (tx) => {
      if (await accountOf(tx, did)) await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
    })
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
    handler: ({ ctx, input: { identifier } }) => refreshIdentity(ctx, identifier),
  }),
  query('com.atproto.temp.checkHandleAvailability', {
    async handler({ ctx, params: { handle } }) {
      const outcome = checkHandle(handle, handlePolicy(ctx))
      const isFree =
        outcome.ok && outcome.kind === 'served' && !(await isNameTaken.handle(ctx.db, outcome.handle, ctx.clock.now()))
      return {
        handle,
        result: isFree
          ? { $type: 'com.atproto.temp.checkHandleAvailability#resultAvailable' as const }
          : { $type: 'com.atproto.temp.checkHandleAvailability#resultUnavailable' as const, suggestions: [] },
      }
    },
  }),
  procedure('com.atproto.server.reserveSigningKey', {
    auth: underMasterKey(anyone),
    async handler(call) {
      const { ctx, input } = call
      const did = input.did ?? null
      const kept = did && (await findReservedKey(ctx.db, did))
      if (kept) return { signingKey: kept.signingKey }
      // A DID that has a reserved key is not charged. A new key is stored, so making one is limited.
      charge(call, 'reserveSigningKey')
      const curve = did === null ? 'p256' : await curveFor(ctx, did, { live: true })
      const { signingKey } = await reserveKey(ctx, did, curve)
      return { signingKey }
    },
  }),
]
