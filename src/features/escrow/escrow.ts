/**
 * The door of escrow: the service holds one of the three shares of an account's recovery seed. Two shares make the seed,
 * so the share alone reveals nothing.
 */
export { deleteEscrowOf, depositShare } from './escrow-shares.ts'
