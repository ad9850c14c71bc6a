/**
 * The door of accounts: which accounts exist, their status, their names and their addresses.
 *
 * An account exists if and only if its row does. Guards look accounts up here, so this feature depends on no other
 * feature but the firehose, to which a change of status or handle adds its event. The other columns of the row belong
 * to other features: the signing key to `account-keys`, the password hash to `passwords`.
 */
export { accountNotFound, refuseMissing, refuseTakendown, requireActive } from './account-refusals.ts'
export {
  accountAt,
  accountNamed,
  accountOf,
  accountOfCaller,
  accountsAfter,
  accountsByEmail,
  accountStatus,
  accountSummary,
  accountWithEmail,
  addAccount,
  allowInvites,
  dueForDeletion,
  statusOfCaller,
  type Account,
} from './account-store.ts'
export { activate, addStatusEvent, deactivate, scheduleDeletion, takeDown } from './status-changes.ts'
export { addArrivedAccount } from './arrived-account.ts'
export { confirmAddress, replaceAddress } from './account-address.ts'
export { giveFurtherHandle, giveHandle, takeHandle } from './account-handles.ts'
export { furtherHandlesOf } from './further-handle-store.ts'
