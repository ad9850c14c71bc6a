/** Access tokens that are bound to no session row: how they are signed, read, and proven. Apps and agents have them. */
export {
  claimsToBeAccessToken,
  fitsAccessToken,
  issueOAuthAccessToken,
  MAX_ACCESS_TOKEN_CHARS,
  readOAuthAccessToken,
  type ReadOutcome,
} from './oauth-access-tokens.ts'
export { offerNonce, useProof } from './proofs.ts'
export { boundTokenAsBearer, invalidAccessToken, refusedToken } from './refused-tokens.ts'
export { serverKey } from './server-key.ts'
export { forgetOldProofs } from './shared-proofs.ts'
export { deleteUsedBefore, useOnce } from './used-value-store.ts'
