/** The door of reserved keys: signing keys for future accounts. */
export { curveFor, reserveKey, takeReservedKey } from './key-reservation.ts'
export { bindReservedKey, keepReservedKey, reservedKeyNamed } from './reserved-key-store.ts'
