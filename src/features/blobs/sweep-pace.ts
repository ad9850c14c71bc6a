/** How much of the disk the passes over all blobs may take, and in which portions. */
import { paceOf, type Pace } from '../../base/pace.ts'

const MAX_BYTES_PER_SEC = 50 * 1024 ** 2
/** Rows, or names of files, that are looked at in one go: requests wait as long as that takes. */
export const PAGE_ROWS = 100
/** What each of them counts as. */
export const ROW_COST_BYTES = 5120
/** What opening a file counts as. */
export const FILE_COST_BYTES = 256 * 1024

export const sweepPace = (stopping: AbortSignal): Pace => paceOf(MAX_BYTES_PER_SEC, stopping)
