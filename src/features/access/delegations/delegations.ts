/**
 * The door of delegations: accounts that act for a shared account, within scopes that its holder chose, until either of
 * them ends it.
 *
 * A delegate signs in as themself, and lets an app act for the shared account. The app's session is one of the shared
 * account, which remembers the delegate. Delegates have no other access: what manages an account takes a session of the
 * account itself, which they never get, so a delegation cannot be passed on. Strangers see nothing of it: tokens and
 * records are those of the account, and only the two accounts can list what is between them.
 */
export { acceptDelegation, endDelegation, inviteDelegate } from './delegation-changes.ts'
export type { DelegationEvent } from './delegation-event-store.ts'
export {
  delegateActs,
  listDelegates,
  listSharedAccounts,
  recordDelegateAct,
  standingDelegation,
  type ListedDelegation,
} from './delegation-lists.ts'
