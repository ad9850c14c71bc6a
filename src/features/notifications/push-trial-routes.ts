import { Type } from '@sinclair/typebox'
import { route } from '../../http/endpoint.ts'
import { invalidRequest, methodNotImplemented, notFound } from '../../http/errors.ts'
import { readJson } from '../../http/json-input.ts'
import { parseDid } from '../../protocol/identifiers.ts'
import { accountStatus } from '../accounts/accounts.ts'
import { peersOf } from '../iroh/iroh.ts'
import { actorOf, logOperator, operator } from '../operators/operators.ts'
import { tryPushes } from './push-trial.ts'
import { relayOf } from './relay.ts'

export const pushTrialRoutes = [
  route('POST', '/v1/admin/notifications/test', {
    auth: operator(),
    // A relay may take its time for each device.
    long: true,
    async handler(call) {
      const { ctx, caller, body } = call
      const relay = relayOf(ctx)
      if (relay === null) throw methodNotImplemented()
      const did = parseDid((await readJson(body, Type.Object({ did: Type.String() }))).did)
      if (did === null) throw invalidRequest('did must be a DID')
      if ((await accountStatus(ctx.db, did)) === null) throw notFound('There is no such account')
      logOperator(call, { actor: actorOf(caller), action: 'push_tested', subject: did })
      return {
        nodeId: peersOf(ctx)?.nodeId ?? null,
        relay: ctx.config.notifications.relay,
        devices: await tryPushes(ctx, relay, did),
      }
    },
  }),
]
