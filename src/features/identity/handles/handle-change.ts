/**
 * Gives an account another handle. The handle is claimed in the database first, then published in the PLC directory,
 * and then given to the account.
 */
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import { claimedHandle } from '../../../protocol/did-document.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'
import { isPlcDid, nextOperation, signOperation, withHandle, type Operation } from '../../../protocol/plc.ts'
import { isSigningHeld, SigningHeld } from '../account-keys/account-keys.ts'
import { accountAt, accountOf } from '../accounts/accounts.ts'
import { revalidate, type By, type Operated } from '../account-events/account-events.ts'
import { identitySigner, identityTurns, presentIdentity, resolveDid, submitOperation } from '../identity/identity.ts'
import { documentOfAccount } from '../web-documents/web-documents.ts'
import { admitHandle, isGivenName } from './handle-admission.ts'
import { claimName, endFailedAttempt, giveClaimedHandle, type HeldName } from './name-claims.ts'

const accountNotFound = () => invalidRequest('Account not found')
const handleTaken = (handle: Handle) => new Refusal(400, 'HandleNotAvailable', `Handle already taken: ${handle}`)

/**
 * Change the handle of an account. The account's present handle is allowed and emits another `#identity` event.
 * `operated` names the operator who makes the change, if one does. The action is recorded with the claim, before
 * anything is sent to the directory, because an interrupted change may be completed without the operator.
 *
 * The service publishes the handle in the directory if it holds a suitable key (`identitySigner`). Otherwise the
 * account gets the handle all the same, the holder is notified, and the wallet publishes the handle with an operation
 * of its own, before or after.
 *
 * If the directory has the handle but the account row could not be written, a second call or the sweep completes the
 * change.
 *
 * Throws `InvalidRequest` if the account does not exist, the DID is tombstoned, or a did:web does not name the handle;
 * what `admitHandle` throws; `HandleNotAvailable` if the handle is taken; `PlcDirectoryError` if the directory fails or
 * refuses; and `LookupsFull` if too many names are being looked up.
 */
export async function changeHandle(
  by: By,
  did: Did,
  text: string,
  { operated = null, allowReserved = false }: { allowReserved?: boolean; operated?: Operated | null } = {},
): Promise<void> {
  const { ctx } = by
  if (!(await accountOf(ctx.db, did))) throw accountNotFound()
  const handle = await admitHandle(ctx, text, did, { allowReserved: allowReserved || (await isGivenName(ctx, text)) })
  await refuseHeld(ctx.db, did)
  // Within the turn of the identity, so that the row ends up with the handle that the directory received last.
  await identityTurns(ctx).run(did, async () => {
    const admit = async (tx: Tx) => {
      await revalidate(by, tx)
      await refuseHeld(tx, did)
      const holder = await accountAt(tx, handle)
      if (holder && holder.did !== did) throw handleTaken(handle)
    }
    const held = await claimName(ctx, { handle, did, prepared: null }, admit, operated?.record)
    if (!held) throw handleTaken(handle)
    await publishAndGive(by, held, operated?.actor)
  })
  await tidyUp(ctx, () => resolveDid(ctx, did, { live: true }))
}

/**
 * An operation that replaces the signing key may still arrive at the directory. An operation for the handle would
 * invalidate it.
 */
async function refuseHeld(reader: Reader, did: Did): Promise<void> {
  if (await isSigningHeld(reader, did)) throw new SigningHeld()
}

async function publishAndGive(by: By, held: HeldName, actor: string | undefined): Promise<void> {
  const { ctx } = by
  const { did, handle } = held
  let isSent = false
  try {
    const publication = isPlcDid(did) ? await publicationOf(ctx, did, handle) : await requirePublished(ctx, did, handle)
    // From here on, the directory may name the handle now or soon.
    isSent = isPlcDid(did)
    if (typeof publication === 'object') await submitOperation(ctx, did, publication)
    if (!(await giveClaimedHandle(by, held, { actor, unpublished: publication === 'by wallet' })))
      throw accountNotFound()
  } catch (error) {
    await tidyUp(ctx, () => endFailedAttempt(ctx, held, error, { isSent }))
    throw error
  }
}

/**
 * What publishing a handle requires: nothing, an operation that the service signs, or one that the wallet has to sign.
 */
type Publication = 'published' | Operation | 'by wallet'

/**
 * Returns what has to be done for the directory to name the handle. Throws `InvalidRequest` if the DID is tombstoned.
 */
async function publicationOf(ctx: Context, did: Did, handle: Handle): Promise<Publication> {
  const { last, state } = await presentIdentity(ctx, did)
  const alsoKnownAs = withHandle(state.alsoKnownAs, handle)
  if (alsoKnownAs.join() === state.alsoKnownAs.join()) return 'published'
  const key = await identitySigner(ctx, did, state.rotationKeys)
  return key ? signOperation(nextOperation(last, { alsoKnownAs })!, key) : 'by wallet'
}

/** Throws `InvalidRequest` unless the document that is published now names the handle. */
async function requirePublished(ctx: Context, did: Did, handle: Handle): Promise<Publication> {
  const resolution = await documentOfAccount(ctx, did)
  if (!resolution.ok || claimedHandle(resolution.document) !== handle)
    throw invalidRequest('DID is not properly configured for handle')
  return 'published'
}
