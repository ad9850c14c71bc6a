/** Checks that an identity allows its account to be active on this server. */
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { pdsEndpoint, publishedSigningKey } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { isPlcDid, PDS_SERVICE_NAME, SIGNING_KEY_NAME } from '../../../protocol/plc.ts'
import { signingKeyOf } from '../account-keys/account-keys.ts'
import { parentOf } from '../../agents/children/children.ts'
import { documentOfAccount } from '../web-documents/web-documents.ts'
import { heldRotationKey } from '../identity/identity.ts'

/** What an identity says about its server and keys. */
export interface Claims {
  /** Whether the identity names this server as the account's PDS. */
  isHere: boolean
  /** As a did:key; null if the identity names none. */
  signingKey: string | null
  /** Null if the DID method has no rotation keys. */
  rotationKeys: readonly string[] | null
}

/**
 * Returns what is wrong with the identity, in the words of the reference, or null if nothing is. Always fetches the
 * current state. Throws `PlcDirectoryError` if the directory fails.
 */
export async function didFault(ctx: Context, did: Did): Promise<string | null> {
  const claims = await claimsOf(ctx, did)
  if (!claims) return 'Could not resolve DID'
  const key = await signingKeyOf(ctx, ctx.db, did)
  // The rotation keys of a child belong to the wallet of its parent, so this service needs none.
  const isChild = (await parentOf(ctx.db, did)) !== null
  if (claims.rotationKeys && !isChild && !(await heldRotationKey(ctx, did, claims.rotationKeys)))
    return 'Server rotation key not included in PLC DID data'
  if (!claims.isHere) return 'DID document atproto_pds service endpoint does not match PDS public url'
  if (!key || claims.signingKey !== formatDidKey(key.publicKey))
    return 'DID document verification method does not match expected signing key'
  return null
}

/** Whether nothing is wrong with the identity. Returns false if the directory fails. */
export async function isDidFit(ctx: Context, did: Did): Promise<boolean> {
  try {
    return (await didFault(ctx, did)) === null
  } catch (error) {
    if (error instanceof PlcDirectoryError) return false
    throw error
  }
}

/** Returns what the identity says, or null if it cannot be resolved. Always fetches the current state. */
export async function claimsOf(ctx: Context, did: Did): Promise<Claims | null> {
  const isHere = (endpoint: string | null = null) => isOwnUrl(ctx.config, endpoint)
  if (isPlcDid(did)) {
    const state = await ctx.plc.state(did)
    return (
      state && {
        isHere: isHere(state.services[PDS_SERVICE_NAME]?.endpoint),
        signingKey: state.verificationMethods[SIGNING_KEY_NAME] ?? null,
        rotationKeys: state.rotationKeys,
      }
    )
  }
  const resolution = await documentOfAccount(ctx, did)
  return resolution.ok
    ? {
        isHere: isHere(pdsEndpoint(resolution.document)),
        signingKey: publishedSigningKey(resolution.document),
        rotationKeys: null,
      }
    : null
}
