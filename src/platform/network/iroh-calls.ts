/**
 * How the QUIC library is called. It takes and returns bytes as arrays of numbers, and nothing in it can be cancelled:
 * each call is raced against a timeout, and what loses is closed. The messages of its errors end with a backtrace, so
 * only their first line is kept.
 */
import type { Connection } from '@number0/iroh'
import { inTime, LATE } from '../../base/in-time.ts'

/** Rejects if the work takes longer. The work itself continues: `abandon` says what becomes of it. */
export async function within<T>(millis: number, work: Promise<T>, abandon = () => {}): Promise<T> {
  const result = await inTime(work, millis)
  if (result !== LATE) return result
  abandon()
  throw new Error(`timed out after ${millis} ms`)
}

/** Returns the connection once it is made. Closes it if that is too late. */
export const connectedWithin = (millis: number, connecting: Promise<Connection>): Promise<Connection> =>
  within(millis, connecting, () => void connecting.then(disconnect, isOver))

export const disconnect = (connection: Connection): void => connection.close(0n, [])

/** For calls that fail only because the stream or the connection has ended already. */
export const isOver = (): void => undefined

export const briefly = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]!
