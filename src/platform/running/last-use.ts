/** The last use of what gives access, which people see. It is noted once an hour at most: reads write little. */
import { HOUR_MILLIS } from '../../base/durations.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** Whether a use now has to be noted. */
export const isUseDue = (lastUsedAt: Millis | null, now: Millis): boolean =>
  lastUsedAt === null || now - lastUsedAt >= HOUR_MILLIS
