/** How long a ceremony is kept. */
import { DAY_MILLIS, DAY_SECS } from '../../../base/durations.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Ceremony } from './ceremony-store.ts'

export const SESSION_SECS = DAY_SECS
/** How long names are kept for a ceremony without a live session. */
export const QUIET_MILLIS = 7 * DAY_MILLIS
/**
 * How long they are kept once the directory has the identity, which names this server: the wallet is likely to come
 * back.
 */
export const REGISTERED_QUIET_MILLIS = 30 * DAY_MILLIS

/** Until when the names of a ceremony are kept, unless its wallet comes back. */
export const keptUntil = ({
  createdAt,
  sessionExpiresAt,
  registeredAt,
}: Pick<Ceremony, 'createdAt' | 'sessionExpiresAt' | 'registeredAt'>): Millis =>
  (sessionExpiresAt ?? createdAt) + (registeredAt === null ? QUIET_MILLIS : REGISTERED_QUIET_MILLIS)
