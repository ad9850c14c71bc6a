/**
 * The door of what becomes of accounts: another address or password, coming and going, the end.
 *
 * It stands beside `accounts`, which asks nobody, because what changes an account ends sessions, writes events and
 * removes what other features hold of it.
 */
export { deleteAccount } from './account-deletion.ts'
export { activateAccount, deactivateAccount, sequenceStatus, setTakedown } from './account-lifecycle.ts'
export { changeEmail, confirmEmail, replaceEmail, requestEmailUpdate } from './email-changes.ts'
export { suitReturningKey } from './returning-key.ts'
export { changePassword, requestPasswordReset, resetPassword, setPassword } from './password-changes.ts'
