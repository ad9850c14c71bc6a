import type { Feature } from '../../../http/feature.ts'
import { proofState } from './proofs.ts'
import { serverKey } from './server-key.ts'

export const tokens: Feature = {
  name: 'tokens',
  async prepare(ctx) {
    await serverKey(ctx)
    await proofState(ctx)
  },
}
