/** The door of factors: what a sign-in needs beside the password. */
export { setEmailFactor } from './email-factor.ts'
export {
  beginTotp,
  confirmTotp,
  deleteFactors,
  factorsOf,
  resetFactors,
  removeTotp,
  renewRecoveryCodes,
  type ListedFactors,
} from './factor-changes.ts'
export {
  addPasskey,
  beginPasskey,
  MAX_PASSKEY_NAME_CHARS,
  offerPasskey,
  removePasskey,
  renamePasskey,
  usePasskey,
} from './passkeys.ts'
export type { PasskeyUse } from './passkey-challenges.ts'
export { deleteTrustedBrowser, isTrustedBrowser } from './trusted-browser-store.ts'
export { TRUST_SECS, trustBrowser, type NewTrust } from './trusted-browsers.ts'
export { beginPendingSignIn, resumePendingSignIn } from './pending-sign-ins.ts'
export { askedFactors, mailSignInCode, passFactor, spendFactorCode, type AskedFactors } from './second-factors.ts'
