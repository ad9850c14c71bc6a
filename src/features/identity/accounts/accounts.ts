/**
 * The door of accounts: which accounts exist, their status, their keys, and the passwords and codes that open them.
 *
 * An account exists if and only if its row does. This feature depends on no other, so that guards can look up accounts;
 * changes that also end sessions or write events are in `account-changes`.
 */
export { keepFormerAddress } from './former-address-store.ts'
export { announce, announceIn, announceSignIn, requireStill, type By } from './account-events.ts'
export { accountCursor, parseAccountCursor } from './account-cursor.ts'
export {
  accountSigner,
  activeSigningKey,
  isSigningHeld,
  makeAccountKey,
  settledKeyOf,
  signingKeyOf,
} from './account-keys.ts'
export {
  accountNotFound,
  accountTakedown,
  activityOf,
  refuseMissing,
  refuseTakendown,
  requireActive,
  statusOf,
  type AccountStatus,
} from './account-status.ts'
export {
  accountAt,
  accountNamed,
  accountOf,
  accountOfCaller,
  accountsAfter,
  accountsByEmail,
  accountStatus,
  accountWithEmail,
  deleteAccountRow,
  insertAccount,
  isDueForDeletion,
  listDueForDeletion,
  setHandle,
  setInvitesDisabled,
  statusOfCaller,
  accountSummary,
  updateActivation,
  updateEmail,
  updateEmailConfirmed,
  updatePassword,
  updateSigningHold,
  updateSigningKey,
  updateTakedown,
  type Account,
  type WrappedKey,
} from './account-store.ts'
export { askedBy, chargeMail, mailCode, mailsOf, orderCode, presentAccount, requestCode } from './code-requests.ts'
export {
  deleteFurtherHandle,
  deleteFurtherHandlesOf,
  furtherHandlesOf,
  insertFurtherHandle,
} from './further-handle-store.ts'
export { parseEmailAddress } from './email-address.ts'
export { deletePlacesOf, insertPlace } from './known-place-store.ts'
export { emailNotSupported, isLastingAddress, requireLastingAddress } from './lasting-address.ts'
export { onceSettled, SETTLE_KEY_STEP, settledTransaction, SigningHeld } from './signing-hold.ts'
export { refuseFallen } from './standing.ts'
export { AddressTaken, withinRefusedAddresses } from './taken-address.ts'
export {
  attemptLogin,
  loginRefused,
  loginWithPassword,
  noteFailedSignIn,
  provePassword,
  type StillHolds,
} from './logins.ts'
export { deleteMailedCode, deleteMailedCodesOf } from './mailed-code-store.ts'
export {
  CODE_TTL_SECS,
  codeRefused,
  issueCode,
  redeemAnonymousCode,
  redeemCode,
  type CodeFault,
} from './mailed-codes.ts'
export { addMail, sendMail } from './mail-steps.ts'
export { addressOf, inWords, recoveryCodeMail, type Told } from './mails.ts'
export {
  hashGeneratedPassword,
  hashPassword,
  MAX_TRIED_PASSWORD_CHARS,
  MIN_PASSWORD_CHARS,
  passwordFault,
} from './passwords.ts'
