/**
 * Endpoints with which an account changes its did:plc by means of a rotation key that this service holds.
 *
 * Source: did:plc method specification, "Operation Serialization, Signing, and Validation".
 */
import { perAccount, procedure, query } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  droppedSpaceEntries,
  fitsDirectory,
  isPlcDid,
  MAX_OPERATION_BYTES,
  parseOperation,
  pdsService,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  type Operation,
} from '../../../protocol/plc.ts'
import { announceIn } from '../account-events/account-events.ts'
import { mailsOf, requestCode } from '../mails/mails.ts'
import { signNext } from './next-operation.ts'
import { submitAndTell } from './told-operation.ts'
import { expectedOf, recommendedCredentials, type Expected } from './recommended-credentials.ts'
import { access } from '../../access/auth/auth.ts'
import type { Permissions } from '../../../protocol/scopes.ts'
import { heldRotationKey, noteAsOwn } from '../identity/identity.ts'

const stateMembers = new Set(['rotationKeys', 'alsoKnownAs', 'verificationMethods', 'services'])

const wholeIdentity = (permissions: Permissions) => permissions.assertIdentity({ attr: '*' })

/**
 * Returns why an operation does not fit an account that is hosted here, or null if it fits. Rotation keys, service,
 * signing key and handle must all fit, so that an account does not leave this service by mistake. The identity's
 * entries for permissioned data must stay, because an operation that another server built may omit them by mistake.
 */
async function unfitness(
  ctx: Context,
  { account, signingKey }: Expected,
  operation: Operation,
): Promise<string | null> {
  const { type, endpoint } = pdsService(ctx.config.publicUrl)
  const service = operation.services[PDS_SERVICE_NAME]
  if (!(await heldRotationKey(ctx, account.did, operation.rotationKeys)))
    return "Rotation keys do not include server's rotation key"
  if (service?.type !== type) return 'Incorrect type on atproto_pds service'
  if (service.endpoint !== endpoint) return 'Incorrect endpoint on atproto_pds service'
  if (operation.verificationMethods[SIGNING_KEY_NAME] !== signingKey) return 'Incorrect signing key'
  if (account.handle !== null && operation.alsoKnownAs[0] !== `at://${account.handle}`)
    return 'Incorrect handle in alsoKnownAs'
  const state = await ctx.plc.state(account.did)
  const [dropped] = state === null ? [] : droppedSpaceEntries(state, operation)
  return dropped === undefined ? null : `The operation lacks ${dropped}, which the identity names`
}

function requirePlc(did: Did): void {
  if (!isPlcDid(did)) throw invalidRequest('Not a did:plc')
}

export const plcOperationRoutes = [
  query('com.atproto.identity.getRecommendedDidCredentials', {
    auth: access({ grants: 'any' }),
    handler: ({ ctx, caller }) => recommendedCredentials(ctx, caller.did),
  }),
  procedure('com.atproto.identity.requestPlcOperationSignature', {
    auth: access({ sessions: 'leaving', grants: wholeIdentity }),
    limit: mailsOf('plc_operation'),
    async handler(call) {
      requirePlc(call.caller.did)
      await requestCode(call, call.caller.did, 'plc_operation')
    },
  }),
  procedure('com.atproto.identity.signPlcOperation', {
    auth: access({ sessions: 'leaving', grants: wholeIdentity }),
    async handler(call) {
      const { caller, input } = call
      const { token, ...given } = input
      requirePlc(caller.did)
      if (!token) throw invalidRequest('email confirmation token required to sign PLC operations')
      const wanted = Object.fromEntries(Object.entries(given).filter(([name]) => stateMembers.has(name)))
      const operation = await signNext(call, caller.did, token, () => wanted)
      await noteAsOwn(call.ctx, caller.did, operation)
      await call.ctx.db.transaction((tx) => announceIn(tx, call, 'identityOperationSigned', caller.did))
      return { operation: { ...operation } }
    },
  }),
  procedure('com.atproto.identity.submitPlcOperation', {
    auth: access({ grants: wholeIdentity }),
    limit: perAccount('statusChange'),
    async handler(call) {
      const { ctx, caller, input } = call
      const { did } = caller
      const operation = parseOperation(input.operation)
      if (operation?.type !== 'plc_operation') throw invalidRequest('Invalid operation')
      if (!fitsDirectory(operation)) throw invalidRequest(`An operation may have at most ${MAX_OPERATION_BYTES} bytes`)
      requirePlc(did)
      const fault = await unfitness(ctx, await expectedOf(ctx, did), operation)
      if (fault !== null) throw invalidRequest(fault)
      await submitAndTell(call, did, operation, 'identityChanged')
    },
  }),
]
