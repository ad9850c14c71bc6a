/** How the nodes of a cluster wake each other up for events. */

/**
 * `written`: there are events without a number. `numbered`: the log has new events. `erased`: the events of a deleted
 * account were removed from it.
 */
export const channels = { written: 'events_written', numbered: 'events_numbered', erased: 'events_erased' } as const

/** Notifications may be lost, so waiters also poll this often. */
export const POLL_MILLIS = 1000
