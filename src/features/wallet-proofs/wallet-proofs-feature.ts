import type { Feature } from '../../http/feature.ts'
import { proofNonceSweep } from './proof-nonce-sweep.ts'

export const walletProofs: Feature = { name: 'wallet-proofs', sweeps: [proofNonceSweep] }
