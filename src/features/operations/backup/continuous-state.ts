/** How far the continuous backup is. */
export interface ContinuousState {
  /** Age of the oldest commit that a restore would lack, in milliseconds. 0: it would lack none. */
  lagMillis: number
  /** Of segments in the data directory that the destination does not have. */
  spooledBytes: number
  /** Why the destination takes nothing; null if it does. */
  fault: string | null
}
