/**
 * The door of accounts: who lives here, in which state, with which key, and what lets them in.
 *
 * A row exists exactly when the account does. The feature asks no other one, so that guards may look up accounts; what
 * changes an account, and ends sessions or writes events with it, is `account-changes`.
 */
export { activeSigningKey, signingKeyOf } from './account-keys.ts'
export {
  accountDeactivated,
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
  deleteAccountRow,
  findByDid as accountOf,
  findByEmail as accountWithEmail,
  findByIdentifier as accountAt,
  findStanding as standingOf,
  findStatus as accountStatus,
  insertAccount,
  isDueForDeletion,
  listAfter as accountsAfter,
  listDueForDeletion,
  searchByEmail as accountsByEmail,
  updateActivation,
  updateEmail,
  updateEmailConfirmed,
  updateHandle as setHandle,
  updateInvitesDisabled as setInvitesDisabled,
  updatePassword,
  updateTakedown,
  type Account,
  type AccountPlace,
} from './account-store.ts'
export { chargeMail, mailCode } from './code-requests.ts'
export { parseEmailAddress } from './email-address.ts'
export { attemptLogin, loginWithPassword, provePassword, tooManyFailedLogins, type LoginOutcome, type StillHolds } from './logins.ts'
export { deleteCode as deleteMailedCode, deleteCodesOf as deleteMailedCodesOf } from './mailed-code-store.ts'
export { CODE_TTL_SECS, codeRefused, issueCode, mailedCodeSweep, redeemAnonymousCode, redeemCode, type CodeFault } from './mailed-codes.ts'
export { addressOf, sendMail } from './mails.ts'
export { hashGeneratedPassword, hashPassword } from './passwords.ts'
