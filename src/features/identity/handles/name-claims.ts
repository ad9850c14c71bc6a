/**
 * Claims on handles that are being given to an account. A sign-up or a handle change claims the handle in the database
 * before it tells the PLC directory. So if several attempts want the same handle, only one of them reaches the
 * directory.
 *
 * An attempt that fails or is killed does not block its handle for long:
 * - A sign-up may have left its identity in the directory. No password, address or session is tied to that identity, so
 *   the next sign-up with the handle continues with it instead of making a second one. If the next sign-up wants other
 *   rotation keys, the old identity is tombstoned first.
 * - A handle change may have reached the directory. If the directory names the handle, the account gets it; if not, the
 *   handle is free again. If the handle was to be a further one, or if only a wallet can have published it, the account
 *   keeps its other handles.
 * - While an operation of unknown outcome may still arrive at the directory (`submission.ts`), only an attempt that
 *   continues with the same claim is admitted.
 * - If a client made and signed the identity itself, the server cannot end it, because only the holders of its keys
 *   can. Such an identity blocks no other claim.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { holderOf } from '../../../platform/database/row-holders.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import { claimedHandle } from '../../../protocol/did-document.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { formatDidKey, type SigningKey } from '../../../protocol/keys.ts'
import {
  isPlcDid,
  isSameOperation,
  signerOf,
  signOperation,
  stateOf,
  tombstone,
  type LogOperation,
} from '../../../protocol/plc.ts'
import { accountAt, accountOf, accountWithEmail, giveFurtherHandle, giveHandle } from '../accounts/accounts.ts'
import { announceIn, type By } from '../account-events/account-events.ts'
import { doubtUntil, identitySigner, serverRotationKey, submitOperation, verdictOf } from '../identity/identity.ts'
import {
  deleteClaim,
  endAttempt,
  endAttemptOf,
  endAttempts,
  findClaim,
  insertClaim,
  isEmailUnderWay,
  isHandleUnderWay,
  releaseOverdueEmail,
  replaceClaimant,
  takeUpClaim,
  type Claim,
  type Claimant,
  type Hold,
  type PreparedIdentity,
} from './name-claim-store.ts'
import {
  deleteReservation,
  insertReservation,
  isEmailReserved,
  reservedFor,
  type Reservation,
} from './name-reservation-store.ts'

export { deleteAllClaims, deleteClaim as endClaim } from './name-claim-store.ts'

/** Longest time that an attempt can take. Everything that it waits for has a timeout. */
const MAX_ATTEMPT_SECS = 300

export interface WantedName extends Claimant {
  handle: Handle
  /** As in `Claim`; false if omitted. */
  isFurther?: boolean
  /**
   * Whether a client made the identity: then continue with the identity of an earlier attempt only if it is the same
   * one.
   */
  isBrought?: boolean
  /** Held as long as the handle is; so is the invite code. */
  email?: string
  inviteCode?: string | null
}

/** A claimed handle and its claimant, who is either the one requested or the one that an earlier attempt left. */
export interface HeldName extends Claimant, Pick<Hold, 'handle' | 'attempt' | 'isFurther'> {
  /** Whether an operation of an earlier attempt may still arrive at the directory. */
  mayArrive: boolean
}

/**
 * Claim a handle. Returns null if an account or another attempt has it, or if it is reserved for another person.
 * `admit` runs in the same transaction and throws if the claim is not allowed. `record` runs in it too, once the
 * claim is made.
 *
 * The caller must end the claim: by `endClaim` in the transaction that gives the handle to an account, or by
 * `endFailedAttempt`.
 *
 * Throws what `admit` throws. Throws `PlcDirectoryError` if the directory fails while an abandoned claim is being
 * reconciled.
 */
export async function claimName(
  ctx: Context,
  wanted: WantedName,
  admit: (tx: Tx) => Promise<void>,
  record?: (tx: Tx) => Promise<void>,
): Promise<HeldName | null> {
  const { handle, isFurther = false, did, prepared, email = null, inviteCode = null } = wanted
  const attempt = randomUUID()
  const serverKey = await serverRotationKey(ctx)
  const found = await ctx.db.transaction(async (tx) => {
    await admit(tx)
    const now = ctx.clock.now()
    const keptFor = await reservedFor(tx, handle, now)
    if (keptFor !== null && keptFor !== did) return 'taken'
    const found = await findClaim(tx, handle)
    if (
      found &&
      isHeld(found, now) &&
      (found.attempt !== null || (isDoubtful(found, serverKey) && !goesOn(found, wanted, serverKey)))
    )
      return 'taken'
    if (email !== null) await releaseOverdueEmail(tx, email, now)
    const hold = {
      handle,
      isFurther: found && !goesOn(found, wanted, serverKey) ? found.isFurther : isFurther,
      attempt,
      heldUntil: now + MAX_ATTEMPT_SECS * 1000,
      email,
      inviteCode,
      holder: holderOf(ctx.db),
    }
    if (found) await takeUpClaim(tx, hold)
    else await insertClaim(tx, hold, wanted)
    await record?.(tx)
    return found && { ...found, mayArrive: isHeld(found, now) }
  })
  if (found === 'taken') return null
  if (found && goesOn(found, wanted, serverKey)) return { ...found, isFurther, attempt }
  const held: HeldName = { handle, isFurther, attempt, did, prepared, mayArrive: false }
  if (found === null) return held
  return (await reconcile(ctx, { ...found, attempt })) && (await replaceName(ctx, held)) ? held : null
}

/**
 * A `heldUntil` that is further ahead than any attempt may last was written before the clock was set back, and is
 * ignored.
 */
const isHeld = ({ heldUntil }: Pick<Claim, 'heldUntil'>, now: Millis): boolean =>
  heldUntil > now && heldUntil <= now + MAX_ATTEMPT_SECS * 1000

/**
 * Whether the server may have to end or finish what the attempt left: either the server signed the identity, or the
 * identity has an account.
 */
const isDoubtful = ({ prepared }: Claimant, serverKey: SigningKey): boolean =>
  prepared === null || isSignedBy(prepared.genesis, serverKey)

/** Whether the key signed the identity. The server must not end an identity that a client signed. */
const isSignedBy = (genesis: LogOperation, key: SigningKey): boolean =>
  signerOf(genesis, [formatDidKey(key.publicKey)]) !== null

/**
 * Whether the attempt continues the claim that it found: the claim has the same account, or a prepared identity that
 * differs only in its signing key. A claim for an identity that a client signed is continued only if a client presents
 * the same identity again.
 */
function goesOn(
  found: Claimant,
  wanted: Pick<WantedName, 'did' | 'prepared' | 'isBrought'>,
  serverKey: SigningKey,
): boolean {
  if (found.prepared === null || wanted.prepared === null)
    return found.prepared === wanted.prepared && found.did === wanted.did
  if (wanted.isBrought) return found.prepared.key !== null && found.did === wanted.did
  const { key, genesis } = found.prepared
  return (
    key !== null &&
    isSignedBy(genesis, serverKey) &&
    isDeepStrictEqual(withoutKeys(genesis), withoutKeys(wanted.prepared.genesis))
  )
}

const withoutKeys = (genesis: LogOperation) => ({ ...stateOf(genesis), verificationMethods: null })

/**
 * Replace the claimant of a reconciled claim, or an identity that the directory refused. Returns false if another
 * attempt has taken over the claim.
 */
export const replaceName = async (ctx: Context, held: HeldName): Promise<boolean> =>
  (await ctx.db.transaction((tx) => replaceClaimant(tx, held, held))) > 0

/**
 * Whether an attempt that failed with `error` has had no effect on the directory. It sent an operation, unless `isSent`
 * is false. A refusal does not count while an earlier operation may still arrive.
 */
const isWithoutEffect = ({ mayArrive }: HeldName, error: unknown, isSent: boolean): boolean =>
  !mayArrive && (!isSent || verdictOf(error) !== 'unknown')

/**
 * End an attempt that failed with `error`. Frees the handle, unless the directory may already name it, or may still
 * receive an operation that names it. `isSent` says whether the attempt has sent an operation. Returns 0 if another
 * attempt has the claim.
 */
export const endFailedAttempt = (
  ctx: Context,
  held: HeldName,
  error: unknown,
  { isSent }: { isSent: boolean },
): Promise<number> => (isWithoutEffect(held, error, isSent) ? forgetName(ctx, held) : leaveName(ctx, held))

/** Free a handle. Returns 0 if another attempt has the claim. */
const forgetName = (ctx: Context, held: Pick<HeldName, 'handle' | 'attempt'>): Promise<number> =>
  ctx.db.transaction((tx) => deleteClaim(tx, held))

/**
 * End an attempt that may have reached the directory. The claim stays. Returns 0 if another attempt has taken it over.
 */
const leaveName = (
  { db, clock }: Context,
  { handle, attempt }: Pick<HeldName, 'handle' | 'attempt'>,
): Promise<number> => endAttempt(db, { handle, attempt, heldUntil: doubtUntil(clock.now()) })

/**
 * End the earlier attempt of a sign-up that is being retried, for example because the directory does not respond. The
 * earlier attempt can no longer succeed, and the new one continues with its claim.
 */
export const leaveOwnName = async (
  { db, clock }: Context,
  sameSignup: Omit<Parameters<typeof endAttemptOf>[1], 'heldUntil'>,
): Promise<void> => void (await endAttemptOf(db, { ...sameSignup, heldUntil: doubtUntil(clock.now()) }))

/** End attempts whose processes stopped before the attempts ended. */
export const leaveNamesOfGone = ({ db, clock }: Context): Promise<void> => endAttempts(db, doubtUntil(clock.now()))

/**
 * Give the handle to the account that claimed it, in place of all its handles, end the claim, and emit an `#identity`
 * event. `actor` names the operator who makes the change; `unpublished` says that the wallet has to publish the handle.
 * Returns false, and changes no account, if another attempt has taken over the claim or the account was deleted in the
 * meantime. A deleted account gets no event, because its deletion must be the last one.
 */
export function giveClaimedHandle(
  by: By,
  held: Pick<HeldName, 'handle' | 'did' | 'attempt'>,
  { actor, unpublished }: { actor?: string; unpublished?: boolean } = {},
): Promise<boolean> {
  const { ctx } = by
  const { handle, did } = held
  return ctx.db.transaction(async (tx) => {
    const before = await accountOf(tx, did)
    if ((await deleteClaim(tx, held)) === 0 || !(await giveHandle(ctx, tx, did, handle))) return false
    await deleteReservation(tx, handle)
    if (before?.handle !== handle) await announceIn(tx, by, 'handleChanged', did, { handle, actor, unpublished })
    return true
  })
}

/** Give the handle to the account that claimed it, in addition to its present handles, and end the claim. */
const addClaimedHandle = (by: By, held: Pick<HeldName, 'handle' | 'did' | 'attempt'>): Promise<boolean> =>
  by.ctx.db.transaction(async (tx) => {
    const { handle, did } = held
    const account = await accountOf(tx, did)
    if ((await deleteClaim(tx, held)) === 0 || account === null) return false
    if ((await accountAt(tx, handle)) !== null) return true
    await giveFurtherHandle(by.ctx, tx, account, handle)
    await deleteReservation(tx, handle)
    await announceIn(tx, by, 'handleAdded', did, { handle })
    return true
  })

/**
 * Reconcile an abandoned claim with the directory: end the identity that a sign-up prepared, or give the handle to the
 * account if the directory already names it there. Returns false if the account got the handle. Throws
 * `PlcDirectoryError` if the directory fails; the claim then stays, and the next attempt may take it over at once.
 */
async function reconcile(ctx: Context, claim: HeldName): Promise<boolean> {
  const { handle, did, prepared, attempt } = claim
  try {
    if (prepared) {
      await endIdentity(ctx, did, prepared)
      return true
    }
    const state = isPlcDid(did) && (await accountOf(ctx.db, did)) ? await ctx.plc.state(did) : null
    if (state === null || claimedHandle(state) !== handle) return true
    // If this server holds no suitable key, only a wallet can have published the handle, and the account's other
    // handles stay.
    const isAdded = claim.isFurther || (await identitySigner(ctx, did, state.rotationKeys)) === null
    return !(await (isAdded ? addClaimedHandle : giveClaimedHandle)({ ctx }, claim))
  } catch (error) {
    await tidyUp(ctx, () => endAttempt(ctx.db, { handle, attempt, heldUntil: ctx.clock.now() }))
    throw error
  }
}

/**
 * Send a tombstone, unless the directory does not know the identity or its log has gone beyond the genesis operation.
 * Does nothing if a client made and signed the identity: only the holders of its keys may end it.
 */
async function endIdentity(ctx: Context, did: Did, { genesis }: PreparedIdentity): Promise<void> {
  const key = await serverRotationKey(ctx)
  if (!isSignedBy(genesis, key)) return
  const last = await ctx.plc.lastOperation(did)
  if (last !== null && isSameOperation(last, genesis))
    await submitOperation(ctx, did, signOperation(tombstone(genesis), key))
}

/** Whether an account has the handle or the email address, an attempt under way holds it, or it is reserved. */
export const isNameTaken = {
  handle: async (reader: Reader, handle: Handle, now: Millis): Promise<boolean> =>
    (await accountAt(reader, handle)) !== null ||
    (await isHandleUnderWay(reader, handle, now)) ||
    (await reservedFor(reader, handle, now)) !== null,
  email: async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
    (await accountWithEmail(reader, email)) !== null || isEmailPromised(reader, email, now),
}

/** Whether the email address, which no account has, may soon belong to one: an attempt holds it, or it is reserved. */
export const isEmailPromised = async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
  (await isEmailUnderWay(reader, email, now)) || isEmailReserved(reader, email, now)

/**
 * Whether an account may take the handle without claiming it first. The directory may name an unclaimed handle for an
 * account whose change of handle was interrupted.
 */
export const isHandleFree = async (reader: Reader, handle: Handle, now: Millis): Promise<boolean> =>
  !(await isNameTaken.handle(reader, handle, now)) && (await findClaim(reader, handle))?.prepared !== null

/**
 * Reserve a handle, and an email address if one is given, for an owner: then only the owner may claim the handle, by
 * its DID. Returns null, or which of the two is taken.
 */
export async function reserveName(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  wanted: Reservation,
): Promise<'email' | 'handle' | null> {
  const { handle, email } = wanted
  const now = clock.now()
  if (email !== null && (await isNameTaken.email(tx, email, now))) return 'email'
  if (!(await isHandleFree(tx, handle, now))) return 'handle'
  await insertReservation(tx, wanted, now)
  return null
}

/**
 * Reconcile an abandoned claim, and free its handle unless the account gets it. `heldUntil` is the value that the
 * caller read: if it has changed, another attempt has taken over the claim and nothing is done. Throws
 * `PlcDirectoryError` if the directory fails.
 */
export async function reconcileUnheld(ctx: Context, handle: Handle, heldUntil: Millis): Promise<void> {
  const claim = await takeUnheld(ctx, handle, heldUntil)
  if (claim && (await reconcile(ctx, claim))) await forgetName(ctx, claim)
}

/** Returns null if another attempt has taken over the claim. */
const takeUnheld = (ctx: Context, handle: Handle, heldUntil: Millis): Promise<HeldName | null> =>
  ctx.db.transaction(async (tx) => {
    const found = await findClaim(tx, handle)
    if (found?.heldUntil !== heldUntil) return null
    const attempt = randomUUID()
    const until = ctx.clock.now() + MAX_ATTEMPT_SECS * 1000
    await takeUpClaim(tx, {
      handle,
      isFurther: found.isFurther,
      attempt,
      heldUntil: until,
      email: null,
      inviteCode: null,
      holder: holderOf(ctx.db),
    })
    return { ...found, attempt, mayArrive: false }
  })
