/** How far the continuous backup is. */
export interface ContinuousState {
  /** What is promised now: with `sync`, a commit is at the destination before it is acknowledged. */
  promise: 'async' | 'sync'
  /** Age of the oldest commit that a restore would lack, in milliseconds. 0: it would lack none. */
  lagMillis: number
  /** Of segments in the data directory that the destination does not have. */
  spooledBytes: number
  /** Why the destination takes nothing; null if it does. */
  fault: string | null
}
