/** Gates for sign-ups of every kind, which operators can close while the server runs. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { networkOf } from '../../../protocol/ip-address.ts'
import { countSignupsFrom, deleteSignupPlaces, insertSignupPlace } from './signup-place-store.ts'

/**
 * Count a sign-up, in the transaction that claims its names, so that several at once are no more than one after
 * another. Throws `RateLimitExceeded` if too many accounts were made from the range of addresses in the last day.
 */
export async function passRangeGate({ ctx, ip, isNear }: Exchange, tx: Tx): Promise<void> {
  const most = ctx.config.signup.accountsPerRangeAndDay
  const network = networkOf(ip)
  if (most === 0 || isNear || network === null) return
  const now = ctx.clock.now()
  await deleteSignupPlaces(tx, now - DAY_MILLIS)
  if ((await countSignupsFrom(tx, network)) >= most)
    throw new Refusal(
      429,
      'RateLimitExceeded',
      'Too many accounts were made from your network today. Try again tomorrow',
    )
  await insertSignupPlace(tx, network, now)
}
