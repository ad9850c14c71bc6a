import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, methodNotImplemented, notFound, Refusal } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { isEndpointElsewhere, peersOf } from '../iroh/iroh.ts'
import { actorOf, logOperator, operator } from '../../operations/operators/operators.ts'
import { sendTestPushes } from './test-push.ts'
import { relayOf } from './relay.ts'

const elsewhere = () =>
  new Refusal(
    409,
    'Conflict',
    'Another server of the cluster has the endpoint for QUIC: ask that one ("holdfast cluster status" names it)',
  )

export const testPushRoutes = [
  route('POST', '/v1/admin/notifications/test', {
    auth: operator(),
    // A relay may take its time for each device.
    long: true,
    async handler(call) {
      const { ctx, caller, body } = call
      const relay = relayOf(ctx)
      if (relay === null) throw methodNotImplemented()
      if (isEndpointElsewhere(ctx)) throw elsewhere()
      const did = parseDid((await readJson(body, Type.Object({ did: Type.String() }))).did)
      if (did === null) throw invalidRequest('did must be a DID')
      if ((await accountStatus(ctx.db, did)) === null) throw notFound('There is no such account')
      logOperator(call, { actor: actorOf(caller), action: 'push_tested', subject: did })
      return {
        nodeId: peersOf(ctx)?.nodeId ?? null,
        relay: ctx.config.notifications.relay,
        devices: await sendTestPushes(ctx, relay, did),
      }
    },
  }),
]
