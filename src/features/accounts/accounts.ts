/**
 * The door of accounts: who lives here, in which state, with which key, and what lets them in.
 *
 * A row exists exactly when the account does. The door asks no other feature; routes, and the end of an account, are
 * not behind it, because they need guards and guards look up accounts.
 */
export { signingKeyOf } from './account-keys.ts'
export {
  accountDeactivated,
  accountNotFound,
  accountTakedown,
  activityOf,
  refuseTakendown,
  requireActive,
  statusOf,
  type AccountStatus,
} from './account-status.ts'
export {
  findByDid as accountOf,
  findByEmail as accountWithEmail,
  findByIdentifier as accountAt,
  findStatus as accountStatus,
  insertAccount,
  listAfter as accountsAfter,
  searchByEmail as accountsByEmail,
  updateHandle as setHandle,
  updateInvitesDisabled as setInvitesDisabled,
  type Account,
  type AccountPlace,
} from './account-store.ts'
export { mailCode } from './code-requests.ts'
export { parseEmailAddress } from './email-address.ts'
export { attemptLogin, isPasswordOf, loginWithPassword, tooManyFailedLogins, type LoginOutcome } from './logins.ts'
export { codeRefused, redeemCode, type CodeFault } from './mailed-codes.ts'
export { addressOf, sendMail } from './mails.ts'
export { hashGeneratedPassword, hashPassword } from './passwords.ts'
