/**
 * Moves the identity of an account whose old server no longer exists, or that was deleted here. A rotation key signs
 * the operation that names this server, before the account is created here. Anyone who can sign it controls the
 * identity, so the signature takes the place of the old server's service token.
 */
import { forbidden, invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { formatDidKey, parseDidKey } from '../../../protocol/keys.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import { isPlcDid, pdsService, PDS_SERVICE_NAME, SIGNING_KEY_NAME, type Operation } from '../../../protocol/plc.ts'
import { accountOf } from '../accounts/accounts.ts'
import { signingKeyOf } from '../account-keys/account-keys.ts'
import { serverRotationKeys } from '../account-changes/account-changes.ts'
import { presentIdentity } from '../identity/identity.ts'
import { curveFor, reserveKey } from '../reserved-keys/reserved-keys.ts'
import { requireAgreed, withOperation, type IdentityChange } from './agreed-identity.ts'
import { keyChanges, noNotes, requireKeepable, type KeyNotes } from './key-changes.ts'
import { alreadyHere, requireImports, serverOf } from './move-plan.ts'
import { findMove } from './move-store.ts'

export interface OfferRequest {
  /** Handle or DID. */
  identifier: string
  /** The handle here. */
  handle: string
  /** A did:key of the holder, which will rank above the key of this server. */
  recoveryKey: string
  /** Further rotation keys of the identity that are to stay. */
  keepKeys?: readonly string[]
}

export interface Offer extends IdentityChange {
  did: Did
  /** The old server; null if that is this one, where the account was deleted. */
  origin: string | null
  /** The key notes to store with the move. */
  notes: KeyNotes
}

/**
 * Returns the operation that the holder is to sign, which keys stay and go, and the agreement that identifies the
 * operation. The operation names a signing key that is reserved for the identity. Throws `InvalidRequest` for an
 * identity that is no did:plc, has an account here, or has ended, and for keys that cannot stay, and what `resolveDid`
 * throws.
 */
export async function offerIdentity(
  ctx: Context,
  request: OfferRequest,
): Promise<{ did: Did } & Pick<IdentityChange, 'keys' | 'operation' | 'agreement'>> {
  const { did, keys, operation, agreement } = await offered(ctx, request)
  return { did, keys, operation, agreement }
}

/**
 * Returns the offer with the signed operation, if it is the offered one. Throws as `offerIdentity` and `requireAgreed`
 * do.
 */
export async function acceptOffer(
  ctx: Context,
  request: OfferRequest,
  operation: unknown,
): Promise<Pick<Offer, 'did' | 'origin' | 'notes'> & { operation: Operation }> {
  const offer = await offered(ctx, request)
  const { did, origin, notes } = offer
  return { did, origin, notes, operation: requireAgreed(offer, operation) }
}

async function offered(
  ctx: Context,
  { identifier, handle: name, recoveryKey, keepKeys = [] }: OfferRequest,
): Promise<Offer> {
  requireImports(ctx)
  const handle: Handle | null = parseHandle(name)
  if (handle === null) throw invalidRequest('handle: not a handle')
  if (!parseDidKey(recoveryKey)) throw invalidRequest('recoveryKey: not a did:key of a supported curve')
  const { did, origin } = await goneServerOf(ctx, identifier)
  if (!isPlcDid(did)) throw invalidRequest('Only a did:plc can be changed by an operation')
  const present = await presentIdentity(ctx, did)
  const { state } = present
  if (!state.rotationKeys.includes(recoveryKey))
    throw forbidden('recoveryKey: the identity does not name it among its rotation keys')
  const notes = { ...noNotes, kept: keepKeys }
  const question = { state, ours: await serverRotationKeys(ctx), recoveryKey, notes }
  requireKeepable(question)
  // The account already exists if the answer to an earlier request to create it was lost.
  const own = await signingKeyOf(ctx, ctx.db, did)
  const signingKey =
    own === null
      ? (await reserveKey(ctx, did, await curveFor(ctx, did, { live: true }))).signingKey
      : formatDidKey(own.publicKey)
  const change = withOperation(present, keyChanges(question), {
    alsoKnownAs: [`at://${handle}`, ...state.alsoKnownAs.filter((alias) => !alias.startsWith('at://'))],
    verificationMethods: { ...state.verificationMethods, [SIGNING_KEY_NAME]: signingKey },
    services: { ...state.services, [PDS_SERVICE_NAME]: pdsService(ctx.config.publicUrl) },
  })
  return { did, origin, notes, ...change }
}

async function goneServerOf(ctx: Context, identifier: string): Promise<Pick<Offer, 'did' | 'origin'>> {
  const { did, origin } = await serverOf(ctx, identifier)
  if (!isOwnUrl(ctx.config, origin)) return { did, origin }
  const isBack = (await accountOf(ctx.db, did)) !== null
  // The account also exists if the answer to an earlier request to bring it back was lost.
  if (isBack && (await findMove(ctx.db, did))?.stage !== 'archive') throw alreadyHere()
  return { did, origin: null }
}
