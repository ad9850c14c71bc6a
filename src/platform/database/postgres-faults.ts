/** What an error of PostgreSQL, or of the line to it, means for the transaction that met it. */
import { DatabaseUnavailable, OutcomeUnknown, WriteConflict } from './database.ts'

interface DriverError {
  /** Error code of the driver, or of the system. */
  code?: unknown
  /** SQLSTATE. */
  errno?: unknown
}

const lostCodes =
  /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/
/**
 * 08: connection exceptions; 57P01–05: the server shuts down, restarts, crashed or ended the session; 25P03, 25P04: it
 * ended a transaction that was idle or open for too long; 25006: it became a standby.
 */
const lostStates = /^(08...|57P0.|25P03|25P04|25006)$/
/** Serialization failure; deadlock. */
const conflictStates = /^(40001|40P01)$/

const FULL_DISK = '53100'
/** A standby was asked to write. */
const READ_ONLY = '25006'
/** What callers are told, by SQLSTATE. The first that matches decides. */
const outages: readonly [RegExp, string][] = [
  [/^53100$/, 'the disk of the database is full'],
  [/^58...$/, 'the disk of the database reports errors'],
  [/^53200$/, 'the database has no memory left'],
  [/^53300$/, 'the database has no connections left'],
  [/^(53...|55P03|57014)$/, 'the database is too busy'],
  [/^25006$/, 'the database cannot be written: it is a standby, or read-only'],
  [/^(28...|3D000)$/, 'the database refuses the credentials or access of this server'],
]

const stateOf = (error: unknown): string => String((error as DriverError | null)?.errno)

/** The connection is lost, or cannot be made. Another one may work. */
export const isLost = (error: unknown): boolean =>
  lostStates.test(stateOf(error)) || lostCodes.test(String((error as DriverError | null)?.code))

/**
 * The error comes from a connection pooler. It refuses a setting with which a connection begins, or lets connections
 * share sessions, in which a prepared statement exists already, or is missing.
 */
export const isPooled = (error: unknown): boolean =>
  /^(42P05|26000)$/.test(stateOf(error)) ||
  (error instanceof Error && error.message.startsWith('unsupported startup parameter'))

/** The connection leads to a standby. It may stay open although newer ones lead to the server that writes by now. */
export const isStandby = (error: unknown): boolean => stateOf(error) === READ_ONLY

/** What a standby says to `READ WRITE`: the feature is not supported. */
export const isRefusedByStandby = (error: unknown): boolean => stateOf(error) === '0A000'

export const standbyFound = (cause?: unknown): Error =>
  Object.assign(new Error('the database is a standby', { cause }), { errno: READ_ONLY })

/** The driver's error for a lost connection. For an answer that came on a connection that was reopened meanwhile. */
export const connectionLost = (): Error =>
  Object.assign(new Error('the connection was lost'), { code: 'ERR_POSTGRES_CONNECTION_CLOSED' })

/** Another transaction was in the way. The same work succeeds when it runs again. */
export const isConflict = (error: unknown): boolean =>
  error instanceof WriteConflict || conflictStates.test(stateOf(error))

/** A statement was refused because one before it in the transaction had failed. */
export const isAborted = (error: unknown): boolean => stateOf(error) === '25P02'

/** The disk of the database is full, or reports errors: every writer meets the same error. */
export const isDiskOutage = (error: unknown): boolean => /^(53100|58...)$/.test(stateOf(error))

export const isDiskFull = (error: unknown): boolean => stateOf(error) === FULL_DISK

/** Returns the error for callers: `DatabaseUnavailable` if the database is unavailable, otherwise the error itself. */
export function faultOf(error: unknown): unknown {
  const [, words] = outages.find(([states]) => states.test(stateOf(error))) ?? []
  if (words !== undefined) return new DatabaseUnavailable(words, { cause: error })
  return isLost(error) ? new DatabaseUnavailable('the database cannot be reached', { cause: error }) : error
}

export const unknownOutcome = (cause: unknown) =>
  new OutcomeUnknown('the connection to the database was lost during a change, which may or may not have been made', {
    cause,
  })
