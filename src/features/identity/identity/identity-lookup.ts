/** Resolves a handle to its DID, and either of them to the whole identity. */
import { invalidRequest, Refusal, upstreamFailure } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { claimedHandle, type DidDocument } from '../../../protocol/did-document.ts'
import { INVALID_HANDLE, parseDid, parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { stateOf, type LogOperation, type PlcState } from '../../../protocol/plc.ts'
import { accountSummary } from '../accounts/accounts.ts'
import { resolveDid, type ResolutionFault } from './did-resolution.ts'
import { isOwnName } from './own-names.ts'
import { lookUpHandle } from './handle-resolution.ts'

/**
 * Returns the DID of a handle, or null if the handle does not resolve. Active accounts of this server come first. A
 * name under our domains is looked up only here. Throws `LookupsFull` if too many names are being looked up.
 */
export async function resolveHandle(ctx: Context, handle: Handle): Promise<Did | null> {
  const account = await accountSummary(ctx.db, handle)
  if (account?.status === 'active') return account.did
  return isOwnName(ctx, handle) ? null : lookUpHandle(ctx, handle)
}

export interface IdentityInfo {
  did: Did
  handle: Handle
  didDoc: DidDocument
}

/**
 * Returns the identity of a DID or handle. Its handle is `handle.invalid` unless the handle and the DID document name
 * each other. `live` ignores the cached document.
 *
 * Throws `HandleNotFound`, `DidNotFound`, `DidDeactivated` or `UpstreamFailure` if the identifier does not resolve, and
 * `LookupsFull` if too many names are being looked up. Source: atproto "Handle", "Handle Resolution".
 */
export async function identityOf(ctx: Context, identifier: string, { live = false } = {}): Promise<IdentityInfo> {
  const handle = parseHandle(identifier)
  const did = handle ? await resolveHandle(ctx, handle) : parseDid(identifier)
  if (!did) throw new Refusal(400, 'HandleNotFound', `Unable to resolve handle: ${identifier}`)
  const resolution = await resolveDid(ctx, did, { live })
  if (!resolution.ok) throw unresolvable(did, resolution.fault)
  const claimed = claimedHandle(resolution.document)
  const isVerified = claimed !== null && (claimed === handle || (await resolveHandle(ctx, claimed)) === did)
  return { did, handle: isVerified ? claimed : INVALID_HANDLE, didDoc: resolution.document }
}

/**
 * Returns the handle of a DID if each of them names the other; null if not, or if that cannot be found out now. Throws
 * `LookupsFull` if too many names are being looked up.
 */
export async function verifiedHandle(ctx: Context, did: Did): Promise<Handle | null> {
  const resolution = await resolveDid(ctx, did)
  const claimed = resolution.ok ? claimedHandle(resolution.document) : null
  return claimed !== null && (await resolveHandle(ctx, claimed)) === did ? claimed : null
}

/**
 * Returns the refusal of com.atproto.identity methods for a failed resolution: `DidNotFound`, `DidDeactivated` or
 * `UpstreamFailure`.
 */
export function unresolvable(did: Did, fault: ResolutionFault): Refusal {
  switch (fault) {
    case 'not-found':
      return new Refusal(400, 'DidNotFound', `DID not found: ${did}`)
    case 'deactivated':
      return new Refusal(400, 'DidDeactivated', `DID is deactivated: ${did}`)
    case 'unsupported':
      return new Refusal(400, 'DidNotFound', `DID method is not supported: ${did}`)
    case 'unreachable':
    case 'unreadable':
      return upstreamFailure(`Could not resolve DID: ${did}`)
  }
}

/**
 * Returns the newest operation of a did:plc and the state that it describes, from the directory. Throws
 * `InvalidRequest` if the identity has ended or the directory does not know it, and `PlcDirectoryError`.
 */
export async function presentIdentity(
  { plc }: Pick<Context, 'plc'>,
  did: Did,
): Promise<{ last: LogOperation; state: PlcState }> {
  const last = await plc.lastOperation(did)
  const state = last && stateOf(last)
  if (last === null || state === null) throw invalidRequest('Did is tombstoned')
  return { last, state }
}
