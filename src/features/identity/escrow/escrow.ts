/**
 * The door of escrow: the service holds one of the three shares of an account's recovery seed. Two shares make the
 * seed, so the share alone reveals nothing.
 */
export { deleteShare, depositShare, escrowState, type EscrowState } from './escrow-shares.ts'
export { requestRecovery, startRecovery } from './recovery-codes.ts'
export { cancelRelease, releaseShare, type ReleaseAnswer } from './share-releases.ts'
