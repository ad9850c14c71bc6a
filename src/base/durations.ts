/** Lengths of time, in the units that names end in. */
export const MINUTE_SECS = 60
export const HOUR_SECS = 60 * MINUTE_SECS
export const DAY_SECS = 24 * HOUR_SECS
export const MINUTE_MILLIS = MINUTE_SECS * 1000
export const HOUR_MILLIS = HOUR_SECS * 1000
export const DAY_MILLIS = DAY_SECS * 1000
