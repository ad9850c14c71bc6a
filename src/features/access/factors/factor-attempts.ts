/** Attempts with codes that can be guessed. Wrong codes are counted per account, wherever they come from. */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidToken, type Refusal } from '../../../http/errors.ts'
import { limitRefusal } from '../../../http/limit-headers.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { countFactorFailure, failuresOf, forgetFactorFailures } from './factor-failure-store.ts'

/** After this many wrong codes of an account in an hour, no further code is checked. */
const failureLimit = { limit: 8, windowSecs: HOUR_SECS }

export type AttemptFault = 'wrong' | 'blocked'

/**
 * Try a code, which `isRight` checks and spends. Returns null if it was right. After a fault the transaction must do
 * nothing else, but must still commit, because it counts the failure.
 */
export async function attemptCode(
  exchange: Exchange,
  tx: Tx,
  did: Did,
  isRight: () => Promise<boolean>,
): Promise<AttemptFault | null> {
  const now = exchange.ctx.clock.now()
  const until = now + failureLimit.windowSecs * 1000
  const failures = await failuresOf(tx, did, { now, until })
  if (failures >= failureLimit.limit) return 'blocked'
  if (await isRight()) {
    await forgetFactorFailures(tx, did)
    return null
  }
  // Store nothing about an account that has been deleted meanwhile.
  if ((await accountStatus(tx, did)) === null) return 'wrong'
  await countFactorFailure(tx, did, { now, until })
  if (failures + 1 === failureLimit.limit) await announceIn(tx, exchange, 'factorBlocked', did)
  return 'wrong'
}

/** Returns the refusal of an attempt: `InvalidToken` or `RateLimitExceeded`. */
export const attemptRefused = (exchange: Exchange, fault: AttemptFault): Refusal =>
  fault === 'wrong' ? invalidToken('Token is invalid') : limitRefusal(exchange, failureLimit, 'Too many wrong codes')
