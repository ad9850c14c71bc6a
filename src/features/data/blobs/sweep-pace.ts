/** The share of the disk that passes over all blobs may use, and the size of their portions. */
import { paceOf, type Pace } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'

/** Rows or file names processed at once; requests wait in the meantime. */
export const PAGE_ROWS = 100
/** Bytes that each row or name counts as. */
export const ROW_COST_BYTES = 5120
/** Bytes that opening a file counts as. */
export const FILE_COST_BYTES = 256 * 1024

export const sweepPace = ({ config }: Pick<Context, 'config'>, stopping: AbortSignal): Pace =>
  paceOf(config.blobScrub.bytesPerSec, stopping)
