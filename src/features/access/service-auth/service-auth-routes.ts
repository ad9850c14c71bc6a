/** com.atproto.server.getServiceAuth: issues tokens with which a client calls other services for its account. */
import { randomBytes } from 'node:crypto'
import { HOUR_SECS } from '../../../base/durations.ts'
import { query } from '../../../http/endpoint.ts'
import { invalidRequest, invalidToken, Refusal } from '../../../http/errors.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { isDraftAudience, isDraftMethod, isProtectedMethod, isReadByName } from '../../../protocol/guarded-methods.ts'
import { formatServiceToken } from '../../../protocol/service-token.ts'
import { accountSigner } from '../../identity/account-keys/account-keys.ts'
import { refuseMissing } from '../../identity/accounts/accounts.ts'
import { access, mayHaveCalled, refusePrivate, requirePermission } from '../auth/auth.ts'
import { chargeRecord, isAgent, isRecorded, recordUse } from '../callers/callers.ts'

const DEFAULT_TTL_SECS = 60
const MAX_TTL_SECS = HOUR_SECS
/** A token that names no method is valid for all methods. */
const MAX_TTL_ANY_METHOD_SECS = 60
const MAX_AUDIENCE_CHARS = 2048
/** The only method for which a taken-down account gets a token: it needs the token to move to another server. */
const MOVING_METHOD = 'com.atproto.server.createAccount'

/** A did:plc or did:web, optionally with a service fragment. */
const audiencePattern =
  /^did:(plc:[a-z2-7]{24}|web:[a-z0-9]([a-z0-9.-]*[a-z0-9])?(%3A[0-9]{1,5})?)(#[A-Za-z][A-Za-z0-9_-]*)?$/

const isAudience = (text: string) => text.length <= MAX_AUDIENCE_CHARS && audiencePattern.test(text)

function expiry(now: Millis, wanted: number | undefined, lxm: string | undefined): number {
  const nowSecs = Math.floor(now / 1000)
  if (wanted === undefined) return nowSecs + DEFAULT_TTL_SECS
  if (wanted <= nowSecs) throw badExpiration('expiration is in past')
  if (wanted > nowSecs + MAX_TTL_SECS)
    throw badExpiration('cannot request a token with an expiration more than an hour in the future')
  if (lxm === undefined && wanted > nowSecs + MAX_TTL_ANY_METHOD_SECS)
    throw badExpiration('cannot request a method-less token with an expiration more than a minute in the future')
  return wanted
}

/**
 * Checks a request of an agent or a delegate. Service tokens cannot be revoked, so theirs must be short-lived and for
 * one method. A token does not say who requested it, so none is issued for this server: with it, they could act here
 * without a record, even after their access has ended.
 */
function boundToken(
  { config, clock }: Context,
  who: string,
  { aud, exp, lxm }: { aud: string; exp?: number; lxm?: string },
): void {
  if (lxm === undefined) throw invalidRequest(`${who} must name the method that the token is for`)
  if (isOwnDid(config, aud.split('#')[0])) throw invalidRequest(`${who} must call this server itself`)
  if (exp !== undefined && exp > Math.floor(clock.now() / 1000) + DEFAULT_TTL_SECS)
    throw badExpiration(`${who} cannot request a token with an expiration more than a minute in the future`)
}

const badExpiration = (message: string) => new Refusal(400, 'BadExpiration', message)

export const serviceAuthRoutes = [
  query('com.atproto.server.getServiceAuth', {
    auth: access({ sessions: 'every', grants: 'any', agents: true }),
    async handler(call) {
      const { ctx, caller } = call
      const { aud, exp, lxm } = call.params
      const { did, credential } = caller
      requirePermission(caller, (permissions) => permissions.assertRpc({ lxm: lxm ?? '*', aud }))
      if (isRecorded(caller)) boundToken(ctx, isAgent(caller) ? 'an agent' : 'a delegate', { aud, exp, lxm })
      // A token for all methods would also be good for methods that no app password with scopes may call.
      if (credential === 'scoped' && lxm === undefined)
        throw invalidRequest('an app password with scopes must name the method that the token is for')
      if (lxm !== undefined) refusePrivate(caller, lxm)
      if (!isAudience(aud)) throw invalidRequest('aud must be a valid atproto DID or did#serviceId reference')
      const signer = await accountSigner(ctx, ctx.db, did)
      const isTakendown = credential === 'takendown' || signer?.status === 'takendown'
      if (isTakendown && lxm !== MOVING_METHOD) throw invalidToken('Bad token scope')
      if (lxm !== undefined && !mayHaveCalled(caller, lxm))
        throw invalidRequest(`insufficient access to request a service auth token for the following method: ${lxm}`)
      const now = ctx.clock.now()
      const expiresAt = expiry(now, exp, lxm)
      if (lxm !== undefined && isProtectedMethod(lxm))
        throw invalidRequest(`cannot request a service auth token for the following protected method: ${lxm}`)
      if (isDraftAudience(aud) || (lxm !== undefined && isDraftMethod(lxm)))
        throw invalidRequest('no service tokens are issued for permissioned data')
      refuseMissing(signer?.status ?? null)
      if (isRecorded(caller) && !isReadByName(lxm!)) {
        await chargeRecord(call, caller)
        await ctx.db.transaction((tx) =>
          recordUse(ctx, tx, caller, { type: 'service_call', detail: { method: lxm, service: aud } }),
        )
      }
      const claims = {
        iss: did,
        aud,
        ...(lxm === undefined ? {} : { lxm }),
        iat: Math.floor(now / 1000),
        exp: expiresAt,
        jti: randomBytes(16).toString('hex'),
      }
      return { token: formatServiceToken(signer!.key, claims) }
    },
  }),
]
