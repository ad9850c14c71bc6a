/**
 * The door of identity: DIDs, handles, and the keys that stand for them.
 *
 * It depends on `accounts`, so `accounts` never depends on it; code that needs both is here, or in a feature above.
 */
export { resolveDid } from './did-resolution.ts'
export { admitHandle, externalHandle } from './handle-admission.ts'
export { changeHandle } from './handle-change.ts'
export { publishedDids, type PublishedDids } from './handle-resolution.ts'
export { forgetDidDocument } from './did-document-store.ts'
export { curveFor, heldRotationKey, serverRotationKey, takeReservedKey } from './identity-keys.ts'
export { INVALID_HANDLE } from './identity-lookup.ts'
export {
  claimName,
  deleteAllClaims,
  endClaim,
  forgetName,
  isDirectoryRefusal,
  isEmailUnderWay,
  isNameTaken,
  leaveName,
  leaveOwnName,
  replaceName,
  submitOnce,
  type HeldName,
  type PreparedIdentity,
} from './name-claims.ts'
export { forgetReservedKey } from './reserved-key-store.ts'
export { signingAuthority } from './signing-authority.ts'
