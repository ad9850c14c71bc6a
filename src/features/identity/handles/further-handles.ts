/**
 * Several handles for one account, for its wallet to add and to remove.
 *
 * Nothing is published in the directory. The holder of a rotation key decides which of the account's handles the
 * identity names.
 */
import { forbidden, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import {
  accountAt,
  accountNotFound,
  accountOf,
  furtherHandlesOf,
  giveFurtherHandle,
  takeHandle,
} from '../accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../account-events/account-events.ts'
import { renameCachedDocument } from '../identity/identity.ts'
import { admitServedHandle, handleNotAvailable, isGivenName } from './handle-admission.ts'
import { claimName, endClaim, endFailedAttempt, type HeldName } from './name-claims.ts'
import { deleteReservation } from './name-reservation-store.ts'

const MAX_HANDLES = 10

const handleUnknown = () => new Refusal(404, 'HandleNotFound', 'No account here has this handle')

/**
 * Give an account another handle under one of our domains. Throws `InvalidHandle` if policy forbids it,
 * `HandleNotAvailable` (409) if any account has it, this one included, `Conflict` if the account has too many, and
 * `PlcDirectoryError` if another sign-up with this handle was interrupted and the directory does not respond.
 */
export async function addHandle(by: By, did: Did, text: string): Promise<Handle> {
  const { ctx } = by
  const handle = admitServedHandle(ctx, text, { allowReserved: await isGivenName(ctx, text) })
  const held = await claimName(ctx, { handle, isFurther: true, did, prepared: null }, async (tx) => {
    await revalidate(by, tx)
    if (await accountAt(tx, handle)) throw handleNotAvailable(handle)
    await requireRoom(tx, did)
  })
  if (!held) throw handleNotAvailable(handle)
  try {
    await ctx.db.transaction(async (tx) => {
      await take(ctx, tx, held)
      await announceIn(tx, by, 'handleAdded', did, { handle })
    })
  } catch (error) {
    await tidyUp(ctx, () => endFailedAttempt(ctx, held, error, { isSent: false }))
    throw error
  }
  return handle
}

async function requireRoom(tx: Tx, did: Did): Promise<void> {
  if ((await furtherHandlesOf(tx, did)).length + 1 >= MAX_HANDLES)
    throw new Refusal(409, 'Conflict', `An account may have at most ${MAX_HANDLES} handles`)
}

async function take(ctx: Context, tx: Tx, held: HeldName): Promise<void> {
  const { did, handle } = held
  if ((await endClaim(tx, held)) === 0) throw handleNotAvailable(handle)
  const account = await accountOf(tx, did)
  if (!account) throw accountNotFound()
  // Concurrent requests may have added handles since the claim was made.
  await requireRoom(tx, did)
  await giveFurtherHandle(ctx, tx, account, handle)
  await deleteReservation(tx, handle)
  await renameCachedDocument(tx, did)
}

/**
 * Take a handle from its account. If it is the first handle, the oldest of the others becomes the first. Throws
 * `HandleNotFound` (404) if no account has it, and `Forbidden` if another one does.
 */
export async function removeHandle(by: By, did: Did, text: string): Promise<void> {
  const { ctx } = by
  const handle = parseHandle(text)
  if (handle === null) throw handleUnknown()
  await ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    const holder = await accountAt(tx, handle)
    if (!holder) throw handleUnknown()
    if (holder.did !== did) throw forbidden('The handle belongs to another account')
    await takeHandle(ctx, tx, holder, handle)
    await renameCachedDocument(tx, did)
    await announceIn(tx, by, 'handleRemoved', did, { handle })
  })
}
