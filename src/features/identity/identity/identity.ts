/**
 * The door of identity: DIDs, handles, and the keys of identities.
 *
 * This feature depends on `accounts`, so `accounts` must not depend on it. Code that needs both stands here or in a
 * feature that imports both.
 */
export { fetchPublished, resolveDid } from './did-resolution.ts'
export { admitHandle, admitServedHandle, externalHandle, isGivenName } from './handle-admission.ts'
export { changeHandle, didEnded } from './handle-change.ts'
export { publishedDids, type PublishedDids } from './handle-resolution.ts'
export { forgetDidDocument, putDidDocument as keepDidDocument } from './did-document-store.ts'
export {
  curveFor,
  heldRotationKey,
  isOfWallet,
  keepFormerRotationKey,
  serverRotationKey,
  takeReservedKey,
} from './identity-keys.ts'
export { controlOf, type ControllingKey, type IdentityControl } from './identity-control.ts'
export { resolveHandle } from './identity-lookup.ts'
export {
  claimName,
  deleteAllClaims,
  endClaim,
  forgetName,
  isEmailPromised,
  isHandleFree,
  isNameTaken,
  leaveName,
  leaveOwnName,
  replaceName,
  reserveName,
  type HeldName,
} from './name-claims.ts'
export { deleteReservationsOf, passOnReservations, reservedFor, setReservedUntil } from './name-reservation-store.ts'
export { bindReservedKey, keepReservedKey, reservedKeyNamed } from './reserved-key-store.ts'
export { signingAuthority, type SigningAuthority } from './signing-authority.ts'
export { requireNoDoubt, submitOperation, verdictOf } from './submission.ts'
export { documentOfAccount, endHosting, keepArrivingDocument, startHosting, whatToPublish } from './web-documents.ts'
export { findWebDocument, hostingStateOf, putWebDocument, setHostedSince } from './web-document-store.ts'
