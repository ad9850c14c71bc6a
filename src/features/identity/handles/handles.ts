/** The door of handles: which handles accounts may have, which are being claimed, and for whom a handle is reserved. */
export { admitHandle, admitServedHandle, externalHandle, handleNotAvailable, isGivenName } from './handle-admission.ts'
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
