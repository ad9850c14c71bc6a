/**
 * The door of identity: DIDs, handles, and the keys that stand for them.
 *
 * It knows no accounts, so that accounts may ask it; what needs both is in the route files.
 */
import { invalidRequest, Refusal, upstreamFailure } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import { checkHandle, servedDomain, type HandlePolicy } from '../../protocol/handle-policy.ts'
import type { Did, Handle } from '../../protocol/identifiers.ts'
import { resolveDid, type ResolutionFault } from './did-resolution.ts'
import { lookUpHandle } from './handle-resolution.ts'

export { resolveDid, type DidResolution, type ResolutionFault } from './did-resolution.ts'
export { lookUpHandle } from './handle-resolution.ts'
export { serverRotationKey, takeReservedKey } from './identity-keys.ts'
export type { ReservedKey } from './reserved-key-store.ts'
export { signingAuthority, type SigningAuthority } from './signing-authority.ts'

/** What a handle that cannot be vouched for is reported as. */
export const INVALID_HANDLE = 'handle.invalid' as Handle

export const handlePolicy = ({ config }: Pick<Context, 'config'>): HandlePolicy => ({
  serviceDomains: config.availableUserDomains,
  reservedLabels: new Set(config.reservedHandles),
})

export const isServedHandle = ({ config }: Pick<Context, 'config'>, handle: Handle): boolean => servedDomain(handle, config.availableUserDomains) !== null

/** A name under our domains, or one of the domains itself: nobody else can answer for it. */
export const isOwnName = (ctx: Pick<Context, 'config'>, handle: Handle): boolean =>
  isServedHandle(ctx, handle) || ctx.config.availableUserDomains.some((domain) => domain.replace(/^\./, '') === handle)

/**
 * The handle that an account may take, or the refusal. Whether it is free is the caller's next question.
 *
 * `did` is the account's, or `null` at sign-up without one: then only names under our domains are given away.
 */
export async function admitHandle(ctx: Context, text: string, did: Did | null, { allowReserved = false } = {}): Promise<Handle> {
  const outcome = checkHandle(text, handlePolicy(ctx), { allowReserved })
  if (!outcome.ok) throw new Refusal(400, outcome.error, outcome.message)
  if (outcome.kind === 'served') return outcome.handle
  if (did === null) throw new Refusal(400, 'UnsupportedDomain', 'Not a supported handle domain')
  if ((await lookUpHandle(ctx, outcome.handle)) !== did) throw invalidRequest('External handle did not resolve to DID')
  return outcome.handle
}

/** A resolution as the methods of com.atproto.identity refuse it. */
export function unresolvable(did: Did, fault: ResolutionFault): Refusal {
  switch (fault) {
    case 'not-found':
      return new Refusal(400, 'DidNotFound', `DID not found: ${did}`)
    case 'deactivated':
      return new Refusal(400, 'DidDeactivated', `DID is deactivated: ${did}`)
    case 'unsupported':
      return new Refusal(400, 'DidNotFound', `DID method is not supported: ${did}`)
    case 'unreachable':
      return upstreamFailure(`Could not resolve DID: ${did}`)
  }
}

/** The handle that a DID claims and that points back at it; `null` when one of the two is missing. */
export async function verifiedHandle(ctx: Context, did: Did): Promise<Handle | null> {
  const resolution = await resolveDid(ctx, did)
  const handle = resolution.ok ? claimedHandle(resolution.document) : null
  return handle && (await lookUpHandle(ctx, handle)) === did ? handle : null
}
