/** How the nodes of a cluster wake each other up for events. */

/** `written`: there are events without a number. `numbered`: the log has new events. */
export const channels = { written: 'events_written', numbered: 'events_numbered' } as const

/** A notification may be lost, and so everybody who waits for one also looks this often. */
export const POLL_MILLIS = 1000
