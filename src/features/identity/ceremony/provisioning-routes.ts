/**
 * Endpoints that begin the account of a wallet: an operator provisions it, a wallet claims names with a code, a device
 * redeems a code.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidClaim } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { isLastingAddress, parseEmailAddress } from '../addresses/addresses.ts'
import { admitServedHandle, isGivenName } from '../handles/handles.ts'
import { withNewClaimCodes } from '../invites/invites.ts'
import { actorOf, operator, recordAudit } from '../../operations/operators/operators.ts'
import { deviceMembers, requireDeviceKey } from '../../access/wallet-devices/wallet-devices.ts'
import { beginCeremony, BOUND_CODE_HOURS, provision, redeemForDevice, tiers, type Tier } from './ceremony-beginning.ts'

const created = (body: object): Response => Response.json(body, { status: 201 })

/** Throws `InvalidClaim`. */
function admitAddress(text: string): string {
  const email = parseEmailAddress(text.trim())
  if (email === null) throw invalidClaim('email is not an email address')
  return email
}

const isTier = (text: string): text is Tier => (tiers as readonly string[]).includes(text)

export const provisioningRoutes = [
  route('POST', '/v1/accounts', {
    auth: operator('master'),
    limit: 'createAccount',
    async handler(call) {
      const { ctx, caller, body } = call
      const given = await readJson(
        body,
        Type.Object({ email: Type.String(), handle: Type.String(), tier: Type.String() }),
      )
      const handle = admitServedHandle(ctx, given.handle)
      const { tier } = given
      if (!isTier(tier)) throw invalidClaim(`tier must be one of ${tiers.join(', ')}`)
      const email = admitAddress(given.email)
      const actor = actorOf(caller)
      return withNewClaimCodes(1, async ([code]) => {
        const accountId = await ctx.db.transaction(async (tx) => {
          const id = await provision(ctx, tx, { handle, email, tier }, { code: code!, createdBy: actor })
          const detail = JSON.stringify({ count: 1, expiresInHours: BOUND_CODE_HOURS })
          await recordAudit(call, tx, { actor, action: 'claim_codes_minted', subject: id, detail })
          return id
        })
        return created({ accountId, did: null, claimCode: code, status: 'pending' })
      })
    },
  }),

  route('POST', '/v1/accounts/mobile', {
    limit: 'createAccount',
    async handler(call) {
      const { ctx, body } = call
      const given = await readJson(
        body,
        Type.Object({ email: Type.String(), handle: Type.String(), ...deviceMembers, claimCode: Type.String() }),
      )
      requireDeviceKey(given.devicePublicKey)
      const email = admitAddress(given.email)
      if (!(await isLastingAddress(ctx, email))) throw invalidClaim('email is at a host for throw-away addresses')
      const handle = admitServedHandle(ctx, given.handle, { allowReserved: await isGivenName(ctx, given.handle) })
      const begun = await beginCeremony(call, { ...given, email, handle })
      ctx.log.info('ceremony begun', { requestId: call.requestId, handle })
      return created({ ...begun, nextStep: 'did_creation' })
    },
  }),

  route('POST', '/v1/devices', {
    limit: 'createAccount',
    async handler(call) {
      const given = await readJson(call.body, Type.Object({ claimCode: Type.String(), ...deviceMembers }))
      requireDeviceKey(given.devicePublicKey)
      return created(await redeemForDevice(call, given))
    },
  }),
]
