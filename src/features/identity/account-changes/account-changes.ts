/**
 * The door of account changes: email address, password, activation, deactivation, takedown and deletion.
 *
 * Separate from `accounts`, which depends on no other feature but the firehose, because a change may end sessions and
 * delete rows of other features.
 */
export { deleteAccount, deleteOwnAccount, deleteProven, requestDeletionCode } from './account-deletion.ts'
export { activateAccount, deactivateAccount } from './account-activation.ts'
export { recommendedCredentials, serverRotationKeys } from './recommended-credentials.ts'
export { changeEmail, confirmEmail, replaceEmail, requestEmailUpdate } from './email-changes.ts'
export { addOwnKey } from './own-key.ts'
export { changePassword, requestPasswordReset, resetPassword, setPassword } from './password-changes.ts'
