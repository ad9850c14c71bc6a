/**
 * Handles on their way to an account. One is claimed in the database before the directory learns of it, by a sign-up
 * or by an account that takes another handle; so of several who want it one tells the directory, and the others never do.
 *
 * What an attempt leaves behind when it fails or is killed holds up nobody for long:
 * - The identity of a sign-up may be in the directory already. It belongs to nobody: no password, address or session
 *   is tied to it. Whoever signs up with the handle next goes on with it, and no second one is made. Only an identity
 *   with other rotation keys is ended first.
 * - An account's change may have reached the directory, which then decides: the account gets the handle, or it is free.
 * - While an operation of unknown outcome may still arrive there (`DOUBT_SECS`), only who goes on with it is let in.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../../platform/context.ts'
import type { Reader, Tx } from '../../platform/database/database.ts'
import { PlcDirectoryError } from '../../platform/network/directory-client.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import type { Did, Handle, Millis } from '../../protocol/identifiers.ts'
import { isPlcDid, operationCid, signOperation, stateOf, tombstone, type LogOperation } from '../../protocol/plc.ts'
import { accountAt, accountOf, accountWithEmail, announceIn, setHandle, type By } from '../accounts/accounts.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { heldRotationKey } from './identity-keys.ts'
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

export { deleteAllClaims, deleteClaim as endClaim, isEmailUnderWay } from './name-claim-store.ts'
export type { PreparedIdentity } from './name-claim-store.ts'

/** No attempt takes longer: all it waits for has time-outs. */
const MAX_ATTEMPT_SECS = 300
/** How long an operation that was sent, and not answered, may be on its way. */
const DOUBT_SECS = 60

export interface WantedName extends Claimant {
  handle: Handle
  /** Held together with the handle, as is the invite code. */
  email?: string
  inviteCode?: string | null
}

/** A handle that is claimed, and for whom: as it was wanted, or as an earlier attempt left it. */
export type HeldName = Claimant & Pick<Hold, 'handle' | 'attempt'>

/**
 * Claim a handle; null when somebody else has it, or is about to. `admit` refuses, in the same transaction, what accounts
 * forbid. Whoever gets the claim ends it: `endClaim` with what makes the name an account's, `forgetName` or `leaveName`.
 */
export async function claimName(ctx: Context, wanted: WantedName, admit: (tx: Tx) => Promise<void>): Promise<HeldName | null> {
  const { handle, did, prepared, email = null, inviteCode = null } = wanted
  const attempt = randomUUID()
  const found = await ctx.db.transaction(async (tx) => {
    await admit(tx)
    const now = ctx.clock.now()
    const found = await findClaim(tx, handle)
    if (found && isHeld(found, now) && (found.attempt !== null || !goesOn(found, wanted))) return 'taken'
    if (email !== null) await releaseOverdueEmail(tx, email, now)
    const hold = { handle, attempt, heldUntil: now + MAX_ATTEMPT_SECS * 1000, email, inviteCode }
    if (found) await takeUpClaim(tx, hold)
    else await insertClaim(tx, hold, wanted)
    return found
  })
  if (found === 'taken') return null
  if (found && goesOn(found, wanted)) return { handle, attempt, did: found.did, prepared: found.prepared }
  const held: HeldName = { handle, attempt, did, prepared }
  if (found === null) return held
  return (await settle(ctx, { ...found, attempt })) && (await replaceName(ctx, held)) ? held : null
}

/** A time far ahead was written before the clock was set back. */
const isHeld = ({ heldUntil }: Pick<Claim, 'heldUntil'>, now: Millis): boolean =>
  heldUntil > now && heldUntil <= now + MAX_ATTEMPT_SECS * 1000

/** Whether an attempt is one more at what was begun: the same account, or an identity that differs in nothing but its key. */
function goesOn(found: Claimant, wanted: Claimant): boolean {
  if (found.prepared === null || wanted.prepared === null) return found.prepared === wanted.prepared && found.did === wanted.did
  return found.prepared.key !== null && isDeepStrictEqual(withoutKeys(found.prepared.genesis), withoutKeys(wanted.prepared.genesis))
}

const withoutKeys = (genesis: LogOperation) => ({ ...stateOf(genesis), verificationMethods: null })

/** Put the wanted claimant in the place of one that is settled, or of an identity that the directory refused. */
export const replaceName = async (ctx: Context, held: HeldName): Promise<boolean> =>
  (await ctx.db.transaction((tx) => replaceClaimant(tx, held, held))) > 0

/** Give a handle back that the directory has not heard of, or has refused. */
export const forgetName = (ctx: Context, held: Pick<HeldName, 'handle' | 'attempt'>): Promise<number> =>
  ctx.db.transaction((tx) => deleteClaim(tx, held))

/** End an attempt that the directory may have heard of. */
export const leaveName = ({ db, clock }: Context, { handle, attempt }: Pick<HeldName, 'handle' | 'attempt'>): Promise<number> =>
  endAttempt(db, { handle, attempt, heldUntil: clock.now() + DOUBT_SECS * 1000 })

/**
 * Somebody tries once more at a sign-up that is under way, and perhaps waits for a directory that is silent: the earlier
 * attempt is over, whatever it still hears, and the new one goes on with what it began.
 */
export const leaveOwnName = async (
  { db, clock }: Context,
  sameSignup: Omit<Parameters<typeof endAttemptOf>[1], 'heldUntil'>,
): Promise<void> => void (await endAttemptOf(db, { ...sameSignup, heldUntil: clock.now() + DOUBT_SECS * 1000 }))

/** At start: whatever was under way was cut off. */
export const leaveAllNames = async ({ db, clock }: Context): Promise<void> => void (await endAttempts(db, clock.now() + DOUBT_SECS * 1000))

/**
 * Give the handle to the account that claimed it, and tell the network. False when the account was deleted meanwhile;
 * whoever follows the network has heard its last word then.
 */
export function giveHandle(by: By, held: Pick<HeldName, 'handle' | 'did' | 'attempt'>, actor?: string): Promise<boolean> {
  const { ctx } = by
  const { handle, did } = held
  return ctx.db.transaction(async (tx) => {
    const before = await accountOf(tx, did)
    if ((await deleteClaim(tx, held)) === 0 || (await setHandle(tx, did, handle)) === 0) return false
    await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
    if (before?.handle !== handle) await announceIn(tx, by, 'handleChanged', did, { handle, actor })
    return true
  })
}

/**
 * Make sure that nothing in the directory speaks for a claim that nobody goes on with. False when the handle turns out to
 * be an account's. Throws when the directory does not answer; then the claim is left as it was.
 */
async function settle(ctx: Context, claim: HeldName): Promise<boolean> {
  const { handle, did, prepared, attempt } = claim
  try {
    if (prepared) {
      await endIdentity(ctx, did, prepared)
      return true
    }
    const state = isPlcDid(did) && (await accountOf(ctx.db, did)) ? await ctx.plc.state(did) : null
    if (state === null || claimedHandle(state) !== handle) return true
    return !(await giveHandle({ ctx }, claim))
  } catch (error) {
    await endAttempt(ctx.db, { handle, attempt, heldUntil: ctx.clock.now() })
    throw error
  }
}

/** Unless the directory has not heard of it, or somebody has used it since. */
async function endIdentity(ctx: Context, did: Did, { genesis }: PreparedIdentity): Promise<void> {
  const last = await ctx.plc.lastOperation(did)
  if (last === null || !isSame(last, genesis)) return
  const key = await heldRotationKey(ctx, did, stateOf(genesis)!.rotationKeys)
  if (key) await submitOnce(ctx, did, signOperation(tombstone(genesis), key))
}

const isSame = (one: LogOperation, other: LogOperation): boolean => operationCid(one).equals(operationCid(other))

/** Add an operation to the directory's log of a DID. When it refuses, or does not answer, its log says whether it has it. */
export async function submitOnce({ plc }: Pick<Context, 'plc'>, did: Did, operation: LogOperation): Promise<void> {
  try {
    await plc.submit(did, operation)
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    const last = await plc.lastOperation(did)
    if (last === null || !isSame(last, operation)) throw error
  }
}

/** Whether the directory has the operation for certain not, and will not have it. */
export const isDirectoryRefusal = (error: unknown): boolean =>
  error instanceof PlcDirectoryError && error.status !== null && error.status >= 400 && error.status < 500

/** Whether an account has the name, or somebody is about to get it. */
export const isNameTaken = {
  handle: async (reader: Reader, handle: Handle, now: Millis): Promise<boolean> =>
    (await accountAt(reader, handle)) !== null || isHandleUnderWay(reader, handle, now),
  email: async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
    (await accountWithEmail(reader, email)) !== null || isEmailUnderWay(reader, email, now),
}

/** Settles a claim that nobody came back for. `heldUntil` is what was read of it: nothing is done if somebody has come since. */
export async function settleUnheld(ctx: Context, handle: Handle, heldUntil: Millis): Promise<void> {
  const claim = await takeUnheld(ctx, handle, heldUntil)
  if (claim && (await settle(ctx, claim))) await forgetName(ctx, claim)
}

/** Null: somebody has come for it since. */
const takeUnheld = (ctx: Context, handle: Handle, heldUntil: Millis): Promise<HeldName | null> =>
  ctx.db.transaction(async (tx) => {
    const found = await findClaim(tx, handle)
    if (found?.heldUntil !== heldUntil) return null
    const attempt = randomUUID()
    await takeUpClaim(tx, { handle, attempt, heldUntil: ctx.clock.now() + MAX_ATTEMPT_SECS * 1000, email: null, inviteCode: null })
    return { ...found, attempt }
  })
