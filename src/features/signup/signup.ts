/**
 * Making an account. The order keeps a loser of a race, a refusing directory and a crash from leaving anything behind:
 *
 * 1. everything is checked that can be checked without effect;
 * 2. handle, address and invite are claimed in the database, where races are decided (`name-claims.ts`);
 * 3. the directory learns of the identity, unless an attempt that was cut off told it already;
 * 4. one transaction makes the account, its repository, its events and its first way in, and ends the claim.
 *
 * Of an attempt that is cut off in between, only the identity stays, for whoever signs up with the handle next.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import { originOf } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import type { Reader, Tx } from '../../platform/database/database.ts'
import { parseHandle, type Did, type Handle } from '../../protocol/identifiers.ts'
import { formatDidKey } from '../../protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation, type LogOperation } from '../../protocol/plc.ts'
import { accountOf, announce, hashPassword, insertAccount, insertPlace, makeAccountKey, signingKeyOf, updatePassword, type WrappedKey } from '../accounts/accounts.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { createRepo } from '../repo/repo.ts'
import { claimName, curveFor, endClaim, forgetName, type HeldName, isDirectoryRefusal, leaveName, replaceName, serverRotationKey, submitOnce, takeReservedKey } from '../identity/identity.ts'
import { useInvite } from '../invites/invites.ts'
import { type AdmittedSignup, checkPassword, checkRequest, handleTaken, requireFreeAddress, requireFreeHandle, requireNew, requireUsable, type SignupRequest } from './signup-rules.ts'

/** An account that moved here and is not activated after this time may be deleted. */
const UNFINISHED_MOVE_SECS = 3 * 86_400

export interface NewIdentity<Entry> {
  did: Did
  handle: Handle
  /** What lets the person in. */
  entry: Entry
  /** The first operation of a did:plc that was made here. */
  genesis: LogOperation | null
}

/** Lets the person in whose account is being made, in the same transaction: nobody has an account and no way into it, nor the reverse. */
export type Enter<Entry> = (tx: Tx, did: Did) => Promise<Entry>

/** Create an account. `provenDid` is the DID whose owner asked, as a service token showed. */
export async function createAccount<Entry>(exchange: Exchange, request: SignupRequest, provenDid: Did | null, enter: Enter<Entry>): Promise<NewIdentity<Entry>> {
  const { ctx } = exchange
  const origin = originOf(exchange)
  const arrived = await arriveAgain(ctx, request, provenDid, enter)
  if (arrived) {
    announce(exchange, 'arrived', arrived.did, { handle: arrived.handle })
    return arrived
  }
  const admitted = await checkRequest(exchange, request, provenDid)
  const { handle, email, password, inviteCode } = admitted
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  const key = makeAccountKey(ctx, admitted.did === null ? 'p256' : await curveFor(ctx, admitted.did))
  const fresh = admitted.did === null ? await prepareIdentity(ctx, admitted, key) : { did: admitted.did, prepared: null }
  const claimed = await claimName(ctx, { handle, email, inviteCode, ...fresh }, async (tx) => {
    const now = ctx.clock.now()
    await requireUsable(tx, inviteCode, now)
    await requireFreeHandle(tx, handle, now)
    await requireNew(tx, fresh.did)
    await requireFreeAddress(tx, email, now)
  })
  if (!claimed) throw handleTaken(handle)
  try {
    const { did, prepared } = await register(ctx, claimed, fresh)
    const entry = await ctx.db.transaction(async (tx) => {
      await establish(ctx, tx, admitted, { ...claimed, did }, { ...(prepared?.key ?? key), passwordHash })
      await insertPlace(tx, did, origin)
      return enter(tx, did)
    })
    announce(exchange, admitted.did === null ? 'created' : 'arrived', did, { handle })
    return { did, handle, genesis: prepared?.genesis ?? null, entry }
  } catch (error) {
    const isUntold = claimed.prepared === null || isDirectoryRefusal(error)
    await (isUntold ? forgetName(ctx, claimed) : leaveName(ctx, claimed))
    throw error
  }
}

/**
 * A move that was begun goes on: the owner of a DID, with the handle and the address of before, gets a new session of the
 * account that was made for it, and the password that is given now. Null for everybody else, and once it was active.
 */
async function arriveAgain<Entry>(ctx: Context, request: SignupRequest, provenDid: Did | null, enter: Enter<Entry>): Promise<NewIdentity<Entry> | null> {
  if (provenDid === null || request.did !== provenDid) return null
  const isHere = async (reader: Reader) => {
    const account = await accountOf(reader, provenDid)
    const isNew = account !== null && account.takedownRef === null && account.deactivatedAt === account.createdAt
    return isNew && account.handle === parseHandle(request.handle) && account.email === request.email?.toLowerCase() ? account : null
  }
  if (!(await isHere(ctx.db))) return null
  const password = checkPassword(request.password, true)
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  return ctx.db.transaction(async (tx) => {
    const account = await isHere(tx)
    if (!account) return null
    if (passwordHash !== null) await updatePassword(tx, provenDid, passwordHash)
    return { did: provenDid, handle: account.handle!, genesis: null, entry: await enter(tx, provenDid) }
  })
}

type Identity = Pick<HeldName, 'did' | 'prepared'>

async function prepareIdentity(ctx: Context, { handle, recoveryKey }: AdmittedSignup, key: WrappedKey): Promise<Identity> {
  const serverKey = await serverRotationKey(ctx)
  const wanted = [recoveryKey, ctx.config.recoveryDidKey, formatDidKey(serverKey.publicKey)]
  const rotationKeys = [...new Set(wanted.filter((key) => key !== null))]
  const genesis = signOperation(genesisOperation({ signingKey: key.signingKey, handle, rotationKeys, pdsEndpoint: ctx.config.publicUrl }), serverKey)
  return { did: genesisDid(genesis), prepared: { genesis, key } }
}

/** Tell the directory of the identity. One that an earlier attempt left, and that was ended since, gives way to the fresh one. */
async function register(ctx: Context, claimed: HeldName, fresh: Identity): Promise<Identity> {
  if (claimed.prepared === null) return claimed
  try {
    await submitOnce(ctx, claimed.did, claimed.prepared.genesis)
    return claimed
  } catch (error) {
    if (claimed.did === fresh.did || !isDirectoryRefusal(error)) throw error
    if (!(await replaceName(ctx, { ...claimed, ...fresh }))) throw tookTooLong()
    return register(ctx, { ...claimed, ...fresh }, fresh)
  }
}

const tookTooLong = () => new Refusal(503, 'NotEnoughResources', 'The sign-up took too long, or was tried again meanwhile')

/** The account, its repository and its events. */
async function establish(ctx: Context, tx: Tx, admitted: AdmittedSignup, claimed: HeldName, made: WrappedKey & { passwordHash: string | null }): Promise<void> {
  const { handle, email, inviteCode } = admitted
  const { did } = claimed
  const isMadeHere = admitted.did === null
  if ((await endClaim(tx, claimed)) === 0) throw tookTooLong()
  // Under another handle, its owner may have come in meanwhile.
  await requireNew(tx, did)
  const now = ctx.clock.now()
  // The owner of a DID that was brought along may have published the key that was promised to it.
  const { signingKey, wrapped } = (isMadeHere ? null : await takeReservedKey(tx, did)) ?? made
  await insertAccount(tx, {
    did,
    handle,
    email,
    passwordHash: made.passwordHash,
    signingKey,
    wrapped,
    createdAt: now,
    deactivatedAt: isMadeHere ? null : now,
    deleteAfter: isMadeHere ? null : now + UNFINISHED_MOVE_SECS * 1000,
  })
  const key = await signingKeyOf(ctx, tx, did)
  const repoEvents = await createRepo(ctx, tx, did, key!)
  if (inviteCode !== null) await useInvite(tx, inviteCode, did, now)
  if (isMadeHere) {
    await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }, { type: 'account', did, status: 'active' }, ...repoEvents])
  }
}
