/**
 * The door of identity: DIDs, handles, and the keys that stand for them.
 *
 * It asks accounts who lives here, so accounts never ask it; what needs both is on this side, or above.
 */
export { resolveDid, type DidResolution, type ResolutionFault } from './did-resolution.ts'
export { admitHandle } from './handle-admission.ts'
export { changeHandle, heldRotationKey } from './handle-change.ts'
export { deleteDocument as forgetDocument } from './did-document-store.ts'
export { makeSecret, serverRotationKey, takeReservedKey } from './identity-keys.ts'
export { identityOf, INVALID_HANDLE, resolveHandle, type IdentityInfo } from './identity-lookup.ts'
export { deleteReservedKey as forgetReservedKey, type ReservedKey } from './reserved-key-store.ts'
export { signingAuthority, type SigningAuthority } from './signing-authority.ts'
