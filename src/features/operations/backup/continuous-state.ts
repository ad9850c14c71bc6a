/** Progress of the continuous backup. */
export interface ContinuousState {
  /** The promise in force now: with `sync`, a commit is at the destination before it is acknowledged. */
  promise: 'async' | 'sync'
  /** Age of the oldest commit that a restore would lack, in milliseconds. 0: it would lack none. */
  lagMillis: number
  /** Size of the segments, on the disk or in memory, that the destination does not have. */
  spooledBytes: number
  /** What keeps the backup from progressing; null if nothing does. */
  fault: string | null
}
