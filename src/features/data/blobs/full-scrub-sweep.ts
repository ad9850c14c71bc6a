/**
 * The scrub that hashes every blob, on request only. In a bucket, the scheduled scrub hashes only a share of the blobs
 * in each pass.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { scrub } from './scrubbing.ts'

export const fullScrubSweep: Sweep = {
  name: 'blob-scrub-full',
  maxPassSecs: 3 * DAY_SECS,
  destructive: true,
  intervalSecs: () => 0,
  run: (ctx, stopping) => scrub(ctx, stopping, () => true),
}
