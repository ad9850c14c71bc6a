/**
 * Making an account. The order keeps a loser of a race, a refusing directory and a crash from leaving anything behind:
 *
 * 1. everything is checked that can be checked without effect;
 * 2. handle, address and invite are reserved in the database (`signup`), where races are decided;
 * 3. the directory learns of the identity;
 * 4. one transaction makes the account, its repository, its first session and its events, and ends the reservation.
 *
 * A sign-up that is cut off in between is undone: at once while the server runs, otherwise by the sweep. Its identity
 * is ended in the directory and its names are free again.
 */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { isUniqueViolation, type Tx } from '../../platform/database.ts'
import type { Sweep } from '../../platform/sweeps.ts'
import type { Did, Handle } from '../../protocol/identifiers.ts'
import { formatDidKey } from '../../protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation, tombstone, type LogOperation } from '../../protocol/plc.ts'
import { accountOf, hashPassword, insertAccount, makeAccountKey, signingKeyOf, type WrappedKey } from '../accounts/accounts.ts'
import { openSession, sessionTokens, type Tokens } from '../auth/auth.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { createRepo } from '../repo/repo.ts'
import { serverRotationKey, takeReservedKey } from '../identity/identity.ts'
import { useInvite } from '../invites/invites.ts'
import { checkRequest, requireFree, requireNew, requireUsable, type SignupRequest } from './signup-rules.ts'
import { deleteSignup, insertSignup, listSignupsBefore, type Signup } from './signup-store.ts'

export { isTaken } from './signup-store.ts'

/** An account that moved here and is not activated after this time may be deleted. */
const UNFINISHED_MOVE_SECS = 3 * 86_400
/** No sign-up that still runs is as old. */
const ABANDONED_AFTER_SECS = 10 * 60
const SWEEP_PAGE = 100

export interface NewIdentity {
  did: Did
  handle: Handle
  tokens: Tokens
  /** The first operation of a did:plc that was made here. */
  genesis: LogOperation | null
}

/** Create an account. `provenDid` is the DID whose owner asked, as a service token showed. */
export async function createAccount(ctx: Context, request: SignupRequest, provenDid: Did | null): Promise<NewIdentity> {
  const admitted = await checkRequest(ctx, request, provenDid)
  const { handle, email, password, inviteCode } = admitted
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  const key = makeAccountKey(ctx)
  const genesis = admitted.did === null ? await makeGenesis(ctx, { ...admitted, signingKey: key.signingKey }) : null
  const did = admitted.did ?? genesisDid(genesis!)
  const signup: Signup = { did, handle, email, inviteCode, genesis, reservedAt: ctx.clock.now() }

  await ctx.db.transaction(async (tx) => {
    await requireUsable(tx, inviteCode, signup.reservedAt)
    await requireFree(tx, signup)
    await requireNew(tx, did)
    await insertSignup(tx, signup)
  })
  try {
    if (genesis) await ctx.plc.submit(did, genesis)
    const tokenId = await ctx.db.transaction((tx) => establish(ctx, tx, signup, { ...key, passwordHash }))
    return { did, handle, genesis, tokens: await sessionTokens(ctx, did, null, tokenId) }
  } catch (error) {
    // A commit of which the disk has not said that it has it may have been made all the same: an identity in use must not end.
    if (!(await accountOf(ctx.db, did))) await abandon(ctx, signup)
    // Names are reserved against other sign-ups, not against an account that changes its own.
    throw isUniqueViolation(error) ? invalidRequest('Handle or email already taken') : error
  }
}

async function makeGenesis(ctx: Context, account: { signingKey: string; handle: Handle; recoveryKey: string | null }): Promise<LogOperation> {
  const serverKey = await serverRotationKey(ctx)
  const wanted = [account.recoveryKey, ctx.config.recoveryDidKey, formatDidKey(serverKey.publicKey)]
  const rotationKeys = [...new Set(wanted.filter((key) => key !== null))]
  const { signingKey, handle } = account
  return signOperation(genesisOperation({ signingKey, handle, rotationKeys, pdsEndpoint: ctx.config.publicUrl }), serverKey)
}

/** The account, in one transaction. Returns the id of the refresh token of its first session. */
async function establish(ctx: Context, tx: Tx, signup: Signup, made: WrappedKey & { passwordHash: string | null }): Promise<string> {
  const { did, handle, email, inviteCode, genesis } = signup
  if ((await deleteSignup(tx, did)) === 0) throw new Refusal(503, 'NotEnoughResources', 'The sign-up took too long')
  const now = ctx.clock.now()
  // The owner of a DID that was brought along may have published the key that was promised to it.
  const { signingKey, wrapped } = (genesis ? null : await takeReservedKey(tx, did)) ?? made
  await insertAccount(tx, {
    did,
    handle,
    email,
    passwordHash: made.passwordHash,
    signingKey,
    wrapped,
    createdAt: now,
    deactivatedAt: genesis ? null : now,
    deleteAfter: genesis ? null : now + UNFINISHED_MOVE_SECS * 1000,
  })
  const key = await signingKeyOf(ctx, tx, did)
  const repoEvents = await createRepo(ctx, tx, did, key!)
  if (inviteCode !== null) await useInvite(tx, inviteCode, did, now)
  if (genesis) {
    await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }, { type: 'account', did, status: 'active' }, ...repoEvents])
  }
  return openSession(ctx, tx, did, null)
}

/**
 * End the identity that the directory may know of, then give the names back. False when the directory does not
 * answer: the sweep tries again.
 */
async function abandon(ctx: Context, { did, genesis }: Pick<Signup, 'did' | 'genesis'>): Promise<boolean> {
  try {
    if (genesis && (await ctx.plc.lastOperation(did))?.type === 'plc_operation') {
      await ctx.plc.submit(did, signOperation(tombstone(genesis), await serverRotationKey(ctx)))
    }
    await ctx.db.transaction((tx) => deleteSignup(tx, did))
    return true
  } catch (error) {
    ctx.log.warn('a sign-up that was cut off is left for the next pass', { did, error })
    return false
  }
}

export const abandonedSignupSweep: Sweep = {
  name: 'abandoned-signups',
  destructive: true,
  intervalSecs: () => ABANDONED_AFTER_SECS,
  atStart: true,
  async run(ctx) {
    const report = { seen: 0, undone: 0, failed: 0 }
    for (const signup of await listSignupsBefore(ctx.db, ctx.clock.now() - ABANDONED_AFTER_SECS * 1000, SWEEP_PAGE)) {
      report.seen++
      if (await abandon(ctx, signup)) report.undone++
      else report.failed++
    }
    return report
  },
}
