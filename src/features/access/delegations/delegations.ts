/**
 * The door of delegations: accounts that act for a shared account, within scopes that its holder chose, until either of
 * them ends it.
 *
 * A delegate signs in as themself, and lets an app act for the shared account. The app's session belongs to the shared
 * account and names the delegate. Delegates have no other access. They cannot pass a delegation on, because managing an
 * account requires a session of the account itself, which they never get. Nothing public shows a delegation: tokens and
 * records are those of the account, and only the two accounts can list it.
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
