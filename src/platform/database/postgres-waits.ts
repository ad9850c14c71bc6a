/**
 * How long the server waits for PostgreSQL before it acts on an outage. These times depend on each other (a node gives
 * up its session before PostgreSQL ends it), so tests of outages shorten all of them by one factor.
 */

/** In milliseconds. */
const standard = {
  /** For a new connection. */
  connectMillis: 5000,
  /** For the first look at the database, which may wait for the lock of a server that has just ended. */
  startMillis: 30_000,
  /** Between heartbeats of a node. A connection that has answered this recently is not silent. */
  heartbeatMillis: 3000,
  /** Between checks whether the heartbeat is still unanswered. */
  pulseMillis: 1000,
  /** Between notifications of a node to itself. */
  hearingMillis: 30_000,
  /** A node gives up a connection of the cluster that has not answered for this long. */
  silenceMillis: 8000,
  /** PostgreSQL ends the session of a node that has been silent for this long, which is more than `silenceMillis`. */
  idleSessionMillis: 10_000,
  /** PostgreSQL ends a transaction that sends nothing for this long, and releases its locks. */
  idleTransactionMillis: 5000,
  /** Longest wait of a transaction for a lock: more than `idleTransactionMillis`. */
  lockMillis: 10_000,
  /** How long a transaction is tried again while connections are lost. */
  writeMillis: 8000,
  /** Least time to find out whether a COMMIT was made, however long its transaction has waited before. */
  settleMillis: 1000,
  /** How long a read, or a statement on its own, is tried again or held back while connections are lost. */
  readMillis: 1000,
  /** Longest time for one comparison of the history. */
  compareMillis: 5000,
  /** Longest wait for that comparison while the database is silent. */
  doubtMillis: 1000,
  /** Longest time for each part of closing: the connection to the database may be dead. */
  closeMillis: 2000,
  /** How long the statements of a pool that is closed have to finish. */
  lastAnswersMillis: 1000,
}

export type Waits = Readonly<typeof standard>

/** `pace`: 1 for servers; 1/2, 1/4 or 1/8 for tests of outages, so that all are whole numbers. */
export const waitsAt = (pace: number): Waits =>
  Object.fromEntries(Object.entries(standard).map(([name, millis]) => [name, millis * pace])) as Waits
