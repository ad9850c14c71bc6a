/**
 * The scrub that hashes every blob, on request only: in a bucket, the scheduled one hashes a share of them in each
 * pass.
 */
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { scrub } from './scrubbing.ts'

export const fullScrubSweep: Sweep = {
  name: 'blob-scrub-full',
  destructive: true,
  intervalSecs: () => 0,
  run: (ctx, stopping) => scrub(ctx, stopping, () => true),
}
