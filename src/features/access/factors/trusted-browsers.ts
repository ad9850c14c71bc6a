/**
 * Browsers that their holders trust: a sign-in there needs the password alone, until the trust expires, the password
 * changes or the factors do. Changes of the account still require the factor.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  deleteTrustBefore,
  deleteTrustedBrowser,
  putTrustedBrowser,
  trustedBrowsersOf,
} from './trusted-browser-store.ts'

export const TRUST_SECS = 30 * DAY_SECS
/** With more browsers, the oldest lose their trust. */
const MAX_PER_ACCOUNT = 20

/** A secret by which an account trusts a browser. */
export interface NewTrust {
  /** Hash of the secret that it replaces; null if the browser has none. */
  before: string | null
  hash: string
}

/** Trust the browser that gets this secret. `revalidate` throws in the transaction if the sign-in has ended. */
export async function trustBrowser(
  exchange: Exchange,
  did: Did,
  { before, hash }: NewTrust,
  revalidate: Revalidate,
): Promise<void> {
  const { db, clock } = exchange.ctx
  const now = clock.now()
  await db.transaction(async (tx) => {
    await revalidate(tx)
    await deleteTrustBefore(tx, did, now)
    if (before !== null) await deleteTrustedBrowser(tx, did, before)
    for (const oldest of (await trustedBrowsersOf(tx, did, now)).slice(MAX_PER_ACCOUNT - 1))
      await deleteTrustedBrowser(tx, did, oldest.tokenHash)
    await putTrustedBrowser(tx, did, hash, requestOrigin(exchange), now + TRUST_SECS * 1000)
  })
}
