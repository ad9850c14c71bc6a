/** The door of handles: which ones accounts may have, who is about to get one, and for whom one is kept. */
export { admitHandle, admitServedHandle, externalHandle, isGivenName } from './handle-admission.ts'
export { changeHandle } from './handle-change.ts'
export { addHandle, removeHandle } from './further-handles.ts'
export {
  claimName,
  deleteAllClaims,
  endClaim,
  endFailedAttempt,
  isEmailPromised,
  isHandleFree,
  isNameTaken,
  leaveOwnName,
  replaceName,
  reserveName,
  type HeldName,
} from './name-claims.ts'
export {
  deleteReservationsOf,
  keepHandle,
  passOnReservations,
  reservedFor,
  setReservedUntil,
} from './name-reservation-store.ts'
