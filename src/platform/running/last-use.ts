/** Last use of sessions and other credentials. Stored at most once an hour, so that reads rarely write. */
import { HOUR_MILLIS } from '../../base/durations.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** Whether a use now has to be stored. */
export const isUseDue = (lastUsedAt: Millis | null, now: Millis): boolean =>
  lastUsedAt === null || now - lastUsedAt >= HOUR_MILLIS
