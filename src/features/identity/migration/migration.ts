/**
 * The door of migration: moving single accounts between servers.
 *
 * A row of `move_in` and a durable step move an account in; `moving-in.ts` has the actions of its holder.
 */
export { signWithSecret } from './agreed-identity.ts'
export type { KeyChanges, NamedKey } from './key-changes.ts'
export { planMove, planOf, type MovePlan } from './move-plan.ts'
export { leaveAccount, leavingOf, type Leaving } from './moving-away.ts'
export { needWords, ownerWords, planWords, progressOf, shownStages } from './move-words.ts'
export {
  beginMove,
  beginMoveWithKey,
  cancelMove,
  chooseKeys,
  giveArchive,
  giveCode,
  giveOperation,
  goWithoutOldServer,
  isMoving,
  mailAnotherCode,
  moveOf,
  signInAgain,
  tryAgain,
  type MoveView,
} from './moving-in.ts'
export { offerIdentity, type OfferRequest } from './offered-identity.ts'
