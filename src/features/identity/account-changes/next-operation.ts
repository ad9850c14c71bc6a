/** The next operation of a did:plc, which this server signs for the account holder once a mailed code is redeemed. */
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden, invalidRequest } from '../../../http/errors.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  fitsDirectory,
  MAX_OPERATION_BYTES,
  nextOperation,
  parseState,
  signOperation,
  type Operation,
  type PlcState,
} from '../../../protocol/plc.ts'
import { heldRotationKey, presentIdentity } from '../identity/identity.ts'
import { codeRefused, redeemCode } from '../mails/mails.ts'

/**
 * Returns the next operation of a DID, signed with a rotation key of this service and not submitted. `change` returns
 * the members of the state to replace.
 *
 * The code is redeemed last, so that a failure of the directory does not consume it.
 *
 * Throws `InvalidRequest` if the DID is tombstoned or the wanted state is invalid, `Forbidden` if this service holds no
 * rotation key of the DID, `InvalidToken` or `ExpiredToken` for the code, `PlcDirectoryError` if the directory fails,
 * and what `change` throws.
 */
export async function signNext(
  { ctx, revalidate }: Exchange,
  did: Did,
  code: string,
  change: (state: PlcState) => Partial<PlcState>,
): Promise<Operation> {
  const { last, state } = await presentIdentity(ctx, did)
  const changed = parseState({ ...state, ...change(state) })
  if (!changed) throw invalidRequest('Invalid operation')
  const next = nextOperation(last, changed)!
  if (!fitsDirectory(next)) throw invalidRequest(`An operation may have at most ${MAX_OPERATION_BYTES} bytes`)
  const key = await heldRotationKey(ctx, did, state.rotationKeys)
  if (!key) throw forbidden('The service holds no rotation key of this DID')
  const fault = await ctx.db.transaction(async (tx) => {
    const fault = await redeemCode(ctx, tx, { did, purpose: 'plc_operation', code })
    if (!fault) await revalidate(tx)
    return fault
  })
  if (fault) throw codeRefused(fault)
  return signOperation(next, key)
}
