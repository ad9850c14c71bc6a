/**
 * The identity of an account whose old server is gone. A key that may change the identity signs the operation that
 * names this server, before there is an account: who can do that controls the identity, so it stands for the vouching
 * of the old server.
 */
import { forbidden, invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { formatDidKey, parseDidKey } from '../../../protocol/keys.ts'
import {
  isPlcDid,
  pdsService,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  stateOf,
  type Operation,
  type PlcState,
  type UnsignedOperation,
} from '../../../protocol/plc.ts'
import { signingKeyOf } from '../account-keys/account-keys.ts'
import { serverRotationKeys } from '../account-changes/account-changes.ts'
import { didEnded } from '../identity/identity.ts'
import { curveFor, reserveKey } from '../reserved-keys/reserved-keys.ts'
import { operationToSign, requireAgreed } from './agreed-identity.ts'
import { originOf, requireImports } from './move-plan.ts'

export interface OfferRequest {
  /** Handle or DID. */
  identifier: string
  /** The handle here. */
  handle: string
  /** A did:key of the holder, which ranks above the key of this server. */
  recoveryKey: string
}

export interface Offer {
  did: Did
  origin: string
  wanted: PlcState
}

/**
 * Returns the operation that the holder is to sign. It names a signing key that is reserved for the identity. Throws
 * `InvalidRequest` for an identity that is no did:plc, is here, or has ended, and what `resolveDid` throws.
 */
export async function offerIdentity(
  ctx: Context,
  request: OfferRequest,
): Promise<{ did: Did; operation: UnsignedOperation }> {
  const { did, wanted } = await offered(ctx, request)
  return { did, operation: await operationToSign(ctx, did, wanted) }
}

/** Returns what was offered, and the operation if it says that. Throws as `offerIdentity` and `requireAgreed` do. */
export async function acceptOffer(
  ctx: Context,
  request: OfferRequest,
  operation: unknown,
): Promise<Offer & { operation: Operation }> {
  const offer = await offered(ctx, request)
  return { ...offer, operation: await requireAgreed(ctx, offer.did, offer.wanted, operation) }
}

async function offered(ctx: Context, { identifier, handle: name, recoveryKey }: OfferRequest): Promise<Offer> {
  requireImports(ctx)
  const handle: Handle | null = parseHandle(name)
  if (handle === null) throw invalidRequest('handle: not a handle')
  if (!parseDidKey(recoveryKey)) throw invalidRequest('recoveryKey: not a did:key of a supported curve')
  const { did, origin } = await originOf(ctx, identifier)
  if (!isPlcDid(did)) throw invalidRequest('Only a did:plc is changed by an operation')
  const last = await ctx.plc.lastOperation(did)
  const state = last && stateOf(last)
  if (!state) throw didEnded()
  if (!state.rotationKeys.includes(recoveryKey))
    throw forbidden('recoveryKey: the identity does not name it among its rotation keys')
  // The account is here if the answer to its creation was lost.
  const own = await signingKeyOf(ctx, ctx.db, did)
  const signingKey =
    own === null
      ? (await reserveKey(ctx, did, await curveFor(ctx, did, { live: true }))).signingKey
      : formatDidKey(own.publicKey)
  return {
    did,
    origin,
    wanted: {
      rotationKeys: [...new Set([recoveryKey, ...(await serverRotationKeys(ctx))])],
      alsoKnownAs: [`at://${handle}`, ...state.alsoKnownAs.filter((alias) => !alias.startsWith('at://'))],
      verificationMethods: { ...state.verificationMethods, [SIGNING_KEY_NAME]: signingKey },
      services: { ...state.services, [PDS_SERVICE_NAME]: pdsService(ctx.config.publicUrl) },
    },
  }
}
