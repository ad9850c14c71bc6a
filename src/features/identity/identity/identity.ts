/** The door of identity: what DIDs and handles resolve to, and the keys of this server that may change identities. */
export { renameCachedDocument } from './cached-names.ts'
export { findDidDocument, forgetDidDocument, putDidDocument as keepDidDocument } from './did-document-store.ts'
export {
  fetchPublished,
  fetchWebDocument,
  HOST_DOCUMENT_PATH,
  resolveDid,
  type DidResolution,
} from './did-resolution.ts'
export { lookUpHandle, publishedDids, type PublishedDids } from './handle-resolution.ts'
export {
  heldRotationKey,
  identitySigner,
  isOfWallet,
  keepFormerRotationKey,
  serverRotationKey,
} from './identity-keys.ts'
export { presentIdentity, resolveHandle, unresolvable, verifiedHandle } from './identity-lookup.ts'
export { isServedHandle } from './own-names.ts'
export { ownOperations } from './own-operation-store.ts'
export {
  doubtUntil,
  identityTurns,
  isWatching,
  noteAsOwn,
  requireNoDoubt,
  submitOperation,
  verdictOf,
} from './submission.ts'
