/**
 * Sign-ins on pages with the right password that wait for a factor on a second page. That page contains the id of the
 * sign-in instead of the password. The id works only in the browser in which the password was entered, for minutes, and
 * until the password changes.
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Refusal } from '../../../http/errors.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import {
  deletePendingSignIn,
  deletePendingSignInsBefore,
  findPendingSignIn,
  insertPendingSignIn,
  type PendingSignIn,
} from './pending-sign-in-store.ts'

const TTL_MILLIS = 10 * MINUTE_MILLIS

/**
 * Store a sign-in with the right password. `revalidate` throws in the transaction if the password has changed. Returns
 * the id.
 */
export async function beginPendingSignIn(
  { db, clock }: Context,
  pending: PendingSignIn,
  revalidate: Revalidate,
): Promise<string> {
  const { token, hash } = newToken()
  const now = clock.now()
  await db.transaction(async (tx) => {
    await revalidate(tx)
    await deletePendingSignInsBefore(tx, now)
    await insertPendingSignIn(tx, hash, pending, now + TTL_MILLIS)
  })
  return token
}

export interface ResumedSignIn {
  account: Account
  /** Throws if the sign-in has ended meanwhile. */
  revalidate: Revalidate
  end(): Promise<unknown>
}

/**
 * Returns the sign-in with this id; null if it is over, or was begun in another browser. `revalidate` throws `gone`.
 */
export async function resumePendingSignIn(
  { db, clock }: Context,
  id: string,
  browserHash: string,
  gone: () => Refusal,
): Promise<ResumedSignIn | null> {
  const hash = opaqueTokenHash(id)
  const did = hash && (await findPendingSignIn(db, hash, browserHash, clock.now()))
  const account = did && (await accountOf(db, did))
  if (!hash || !account) return null
  return {
    account,
    async revalidate(reader) {
      if ((await findPendingSignIn(reader, hash, browserHash, clock.now())) === null) throw gone()
    },
    end: () => deletePendingSignIn(db, hash),
  }
}
