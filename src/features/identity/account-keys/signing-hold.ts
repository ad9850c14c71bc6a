/**
 * Holds on signing. While the directory may name another key than the account's own, the account signs no commits,
 * because others could not verify them. The account's row records the hold, and every commit reads it together with the
 * key.
 *
 * A step asks the directory which key the identity names and settles the hold (`repo-keys`). A commit of a held account
 * triggers the step at once, waits for that try, and then signs or asks the client to retry later.
 */
import { Refusal } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { updateSigningHold } from './account-key-store.ts'

/** Name of the steps that settle holds. Their key is the DID. */
export const SETTLE_KEY_STEP = 'settle-signing-key'

/** How long a request waits for the hold to be settled. */
const MAX_WAIT_MILLIS = 10_000
/** Most requests, of up to a megabyte each, that wait at the same time. Further requests are refused at once. */
const MAX_WAITING = 100
const RETRY_AFTER_SECS = 5

export class SigningHeld extends Refusal {
  constructor() {
    super(503, 'ServiceUnavailable', 'The signing key of the account is being replaced. Try again in a few seconds.', {
      headers: { 'Retry-After': String(RETRY_AFTER_SECS) },
    })
  }
}

/** Keep the account from signing commits until the hold is released or the key is replaced. */
export const holdSigning = ({ clock }: Pick<Context, 'clock'>, tx: Tx, did: Did): Promise<number> =>
  updateSigningHold(tx, did, clock.now())

/** Let the account sign again with its current key. */
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

/**
 * Run a transaction that signs for an account. If the account is held, wait and run it again. Throws `SigningHeld` if
 * the account is still held.
 */
export async function settledTransaction<T>(ctx: Context, did: Did, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await ctx.db.transaction(work)
  } catch (error) {
    await onceSettled(ctx, did, error)
    return ctx.db.transaction(work)
  }
}
