/**
 * Holds on signing. While the directory may name another key than the account's own, the account signs no commit:
 * others could not verify it. A row of the account says so, which every commit reads with the key.
 *
 * A step settles the hold with the directory (`repo-keys`). A commit that needs the key triggers the step at once,
 * waits for that try, and then signs or asks the client to retry later.
 */
import { Refusal } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { updateSigningHold } from './account-key-store.ts'

/** Name of the steps that settle holds. Their key is the DID. */
export const SETTLE_KEY_STEP = 'settle-signing-key'

/** How long a request waits until it is known which key the identity names. */
const MAX_WAIT_MILLIS = 10_000
/** Requests, of up to a megabyte each, that may wait at the same time. The others are refused at once. */
const MAX_WAITING = 100
const RETRY_AFTER_SECS = 5

export class SigningHeld extends Refusal {
  constructor() {
    super(503, 'ServiceUnavailable', 'The signing key of the account is being replaced. Try again in a few seconds.', {
      headers: { 'Retry-After': String(RETRY_AFTER_SECS) },
    })
  }
}

/** Have the account sign no commit until the hold is released, or the key is replaced. */
export const holdSigning = ({ clock }: Pick<Context, 'clock'>, tx: Tx, did: Did): Promise<number> =>
  updateSigningHold(tx, did, clock.now())

/** Let the account sign with the key that it has. */
export const releaseSigning = (tx: Tx, did: Did): Promise<number> => updateSigningHold(tx, did, null)

const waiting = perContext(() => ({ count: 0 }))

/**
 * Wait for a hold to be settled, after a transaction failed because of it; the caller runs the transaction again.
 * Rejects with any other `error`.
 */
export async function onceSettled(ctx: Context, did: Did, error: unknown): Promise<void> {
  const requests = waiting(ctx)
  if (!(error instanceof SigningHeld) || requests.count >= MAX_WAITING) throw error
  requests.count++
  try {
    await ctx.steps.hasten(SETTLE_KEY_STEP, did, MAX_WAIT_MILLIS)
  } finally {
    requests.count--
  }
}

/** Run a transaction that signs for an account, again if it was held. Throws `SigningHeld` if it still is. */
export async function settledTransaction<T>(ctx: Context, did: Did, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await ctx.db.transaction(work)
  } catch (error) {
    await onceSettled(ctx, did, error)
    return ctx.db.transaction(work)
  }
}
