/** What an error of PostgreSQL, or of the line to it, means for the transaction that met it. */
import { DatabaseUnavailable, WriteConflict } from './database.ts'

interface DriverError {
  /** Of the driver, or of the system. */
  code?: unknown
  /** SQLSTATE. */
  errno?: unknown
}

const lostCodes = /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/
/**
 * 08: connection exceptions; 57P01–05: the server shuts down, restarts, crashed or ended the session; 25P03, 25P04: it
 * ended a transaction that was idle or open for too long; 25006: it became a standby.
 */
const lostStates = /^(08...|57P0.|25P03|25P04|25006)$/
/** A lock, a statement or a connection that was not to be had in time, and a disk or memory that is full. */
const busyStates = /^(55P03|57014|53...)$/
/** Serialization failure; deadlock. */
const conflictStates = /^(40001|40P01)$/

const stateOf = (error: unknown): string => String((error as DriverError | null)?.errno)

/** The connection is lost, or cannot be made. Another one may work. */
export const isLost = (error: unknown): boolean =>
  lostStates.test(stateOf(error)) || lostCodes.test(String((error as DriverError | null)?.code))

/** Another transaction was in the way. The same work succeeds when it runs again. */
export const isConflict = (error: unknown): boolean => error instanceof WriteConflict || conflictStates.test(stateOf(error))

/** A statement was refused because one before it in the transaction had failed. */
export const isAborted = (error: unknown): boolean => stateOf(error) === '25P02'

/** The error that callers receive: one that says that the database is not available, if that is the reason. */
export function faultOf(error: unknown): unknown {
  if (isLost(error)) return new DatabaseUnavailable('the database cannot be reached', { cause: error })
  if (busyStates.test(stateOf(error))) return new DatabaseUnavailable('the database is too busy', { cause: error })
  return error
}

export const unknownOutcome = (cause: unknown) =>
  new DatabaseUnavailable('the connection to the database was lost during a change, which may have been made or not', { cause })
