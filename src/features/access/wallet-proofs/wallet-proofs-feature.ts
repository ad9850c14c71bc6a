import type { Feature } from '../../../http/feature.ts'
import { deleteKnownWallet } from './known-wallet-store.ts'
import { deleteNoncesOf } from './proof-nonce-store.ts'
import { proofNonceSweep } from './proof-nonce-sweep.ts'

export const walletProofs: Feature = {
  name: 'wallet-proofs',
  sweeps: [proofNonceSweep],
  async forgetAccount(_, tx, did) {
    await deleteNoncesOf(tx, did)
    await deleteKnownWallet(tx, did)
  },
}
