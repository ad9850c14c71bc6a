/** App preferences (app.bsky.actor.getPreferences and putPreferences). The PDS stores them, not the AppView. */
import { perAccount, procedure, query, type Exchange } from '../../../http/endpoint.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock } from '../../../platform/database/database.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import type { LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import { putPreferences, visiblePreferences } from '../../../protocol/preference-rules.ts'
import type { Permissions } from '../../../protocol/scopes.ts'
import { accountStatus, refuseMissing, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { access, accessOrModerator } from '../../access/auth/auth.ts'
import { chargeRecord, isRecorded, recordUse } from '../../access/callers/callers.ts'
import { appviewService, forward, otherAppview, serviceText } from '../proxy/proxy.ts'
import { deletePreferencesOf, findPreferences, storePreferences } from './preference-store.ts'

export { findPreferences, storePreferences } from './preference-store.ts'

/** Requires the RPC permission for the AppView that the request names, or for the configured one. */
const asksAppview = (permissions: Permissions, exchange: Exchange) =>
  permissions.assertRpc({
    lxm: exchange.nsid!,
    aud: serviceText(otherAppview(exchange) ?? appviewService(exchange.ctx.config)),
  })

/** What the caller may read. The lexicon lists the known types; other types are stored unchanged, hence the cast. */
async function shownOf({ db, clock }: Context, did: Did, personalDetails: boolean) {
  const visible = visiblePreferences(await findPreferences(db, did), { personalDetails, now: clock.now() })
  return { preferences: visible as unknown as LexDefs['app.bsky.actor.defs#preferences'] }
}

export const preferences: Feature = {
  name: 'preferences',
  routes: [
    query('app.bsky.actor.getPreferences', {
      auth: accessOrModerator({ sessions: 'every', grants: asksAppview, agents: true }),
      async handler(call) {
        const { ctx, caller, url } = call
        const other = otherAppview(call)
        if ('actor' in caller) {
          if (other) throw invalidRequest('Moderator requests cannot be proxied to other app views')
          const did = parseDid(url.searchParams.get('did') ?? '')
          if (did === null) throw invalidRequest('Invalid or missing did parameter')
          return shownOf(ctx, did, true)
        }
        if (other) return forward(call, { service: other, caller })
        const { did, personalDetails } = caller
        refuseMissing(await accountStatus(ctx.db, did))
        return shownOf(ctx, did, personalDetails)
      },
    }),
    procedure('app.bsky.actor.putPreferences', {
      auth: access({ grants: asksAppview, refusesTakendown: true, agents: true }),
      limit: perAccount('putPreferences'),
      async handler(call) {
        const { ctx, caller, input } = call
        const other = otherAppview(call)
        if (other) return forward(call, { service: other, caller, json: input })
        if (isRecorded(caller)) await chargeRecord(call, caller)
        await ctx.db.transactionOn(accountLock(caller.did), async (tx) => {
          refuseTakendown(await accountStatus(tx, caller.did))
          await call.revalidate(tx)
          const outcome = putPreferences(await findPreferences(tx, caller.did), input.preferences, caller)
          if (!outcome.ok) throw invalidRequest(outcome.message)
          await storePreferences(tx, caller.did, outcome.stored)
          if (isRecorded(caller)) await recordUse(ctx, tx, caller, { type: 'preferences', detail: {} })
        })
        return undefined
      },
    }),
  ],
  async forgetAccount(_, tx, did) {
    await deletePreferencesOf(tx, did)
  },
}
