/**
 * The door of the identity watch. Anyone who holds a rotation key of a did:plc can change the identity without this
 * server. So this server regularly compares the identity of each account with the directory, and notifies the holder of
 * foreign operations while a higher key can still undo them.
 */
export { changesSince, misfits, watchedIdentity, type Misfit, type WatchedIdentity } from './watched-identity-store.ts'
export { misfitWords } from './identity-words.ts'
