/**
 * Methods that this server implements by calling another service: reports, feeds and push tokens. Nothing is stored.
 */
import { besideSessions, taking } from '../../../http/credential-guards.ts'
import { procedure, query, type Guard, type XrpcCall } from '../../../http/endpoint.ts'
import { charge } from '../../../http/limiting.ts'
import { invalidToken, Refusal } from '../../../http/errors.ts'
import { parseDid, recordUriParts, type Did } from '../../../protocol/identifiers.ts'
import { access, mayHaveCalled } from '../../access/auth/auth.ts'
import { serviceKind, type AccessCaller, type ServiceCaller } from '../../access/callers/callers.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import { copyReport, takeReport } from '../../operations/cases/cases.ts'
import { appviewService, askJson, forward } from './proxy.ts'
import { namedService } from './upstream-services.ts'
import { refuseSpaces, requireRpc, rpc, type RpcCaller } from './rpc-guard.ts'

const NOTIFICATION_FRAGMENT = 'bsky_notif'
const SKELETON_METHOD = 'app.bsky.feed.getFeedSkeleton'

interface PushInput {
  serviceDid: Did
}

/** Register a device with the notification service, or unregister it. */
async function relayPush(call: XrpcCall<AccessCaller, unknown, PushInput>): Promise<void> {
  const { ctx, caller, input } = call
  if (!mayHaveCalled(caller, call.nsid!)) throw invalidToken('Bad token method')
  const did = input.serviceDid
  const notifications = { did, fragment: NOTIFICATION_FRAGMENT }
  requireRpc(caller, call.nsid!, notifications)
  const appview = appviewService(ctx.config)
  const faults = {
    unresolved: `could not resolve did document: ${did}`,
    unlisted: `invalid notification service details in did document: ${did}`,
  }
  const { body } = await forward(call, {
    service: did === appview.did ? appview : notifications,
    caller,
    json: input,
    faults,
  })
  if (body instanceof ReadableStream) await body.cancel()
}

const elsewhere = taking<ServiceCaller | null>([besideSessions(serviceKind)], () => null)
// An account that was taken down may appeal. The moderation service decides about its other reports.
const holders = rpc({ sessions: 'every' })

/** Account holders, and accounts of other servers that address their report to this one. */
const reporters: Guard<RpcCaller | ServiceCaller> = {
  personal: true,
  takes: [...elsewhere.takes, ...holders.takes],
  check: async (exchange) => (await elsewhere.check(exchange)) ?? holders.check(exchange),
}

export const relayRoutes = [
  procedure('com.atproto.moderation.createReport', {
    auth: reporters,
    async handler(call) {
      const { caller, input } = call
      if ('iss' in caller) {
        await charge(call, 'foreignReport')
        return takeReport(call, { did: caller.iss, credential: 'service' }, input)
      }
      // Data in a space must not be reported to a service whose labels are public.
      if ('uri' in input.subject) refuseSpaces([String(input.subject.uri)])
      const { config } = call.ctx
      if (isOwnDid(config, caller.service.did)) return takeReport(call, caller, input)
      if (config.cases.fromReports && namedService(call.request) === null) await copyReport(call, caller, input)
      return forward(call, { service: caller.service, caller, json: input, appeals: true })
    },
  }),

  query('app.bsky.feed.getFeed', {
    // The guard revalidates the caller, because the handler asks the AppView for the generator before it forwards the
    // request.
    auth: rpc({ also: SKELETON_METHOD, handlerRevalidates: false }),
    async handler(call) {
      const { caller } = call
      const { service } = caller
      const { authority, collection, rkey } = recordUriParts(call.params.feed)
      const generator = new URLSearchParams({ repo: authority, collection, rkey })
      const record = (await askJson(call, {
        service,
        caller: null,
        path: `/xrpc/com.atproto.repo.getRecord?${generator}`,
      })) as {
        value?: { did?: unknown }
      } | null
      const did = record?.value?.did
      const feedDid = typeof did === 'string' ? parseDid(did) : null
      if (feedDid === null) throw new Refusal(400, 'UnknownFeed', 'could not resolve feed did')
      // The AppView passes this token on to the feed generator, so the feed generator is its audience.
      return forward(call, { service, caller, aud: feedDid, lxm: SKELETON_METHOD })
    },
  }),

  procedure('app.bsky.notification.registerPush', { auth: access({ grants: 'any' }), handler: relayPush }),
  procedure('app.bsky.notification.unregisterPush', { auth: access({ grants: 'any' }), handler: relayPush }),
]
