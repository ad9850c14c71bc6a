/** The share of the disk that passes over all blobs may use, and the size of their portions. */
import { paceOf, type Pace } from '../../../base/pace.ts'

const MAX_BYTES_PER_SEC = 50 * 1024 ** 2
/** Rows or file names processed at once; requests wait in the meantime. */
export const PAGE_ROWS = 100
/** Bytes that each of them counts as. */
export const ROW_COST_BYTES = 5120
/** Bytes that opening a file counts as. */
export const FILE_COST_BYTES = 256 * 1024

export const sweepPace = (stopping: AbortSignal): Pace => paceOf(MAX_BYTES_PER_SEC, stopping)
