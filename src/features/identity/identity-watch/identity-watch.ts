/**
 * The door of the identity watch. Anyone who holds a rotation key of a did:plc can change it without this server. So
 * the identity of each account is compared with the directory in rounds, and its holder learns of operations that did
 * not come from here while a higher key can still undo them.
 */
export { changesSince, misfits, watchedIdentity, type Misfit, type WatchedIdentity } from './watched-identity-store.ts'
export { misfitWords } from './identity-words.ts'
