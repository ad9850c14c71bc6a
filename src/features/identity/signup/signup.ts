/**
 * Creates accounts. This order leaves nothing behind if a race is lost, the directory refuses, or the server crashes:
 *
 * 1. check everything that can be checked without side effects;
 * 2. claim handle, email address and invite code in the database, which decides races (`name-claims.ts`);
 * 3. submit the identity to the directory, unless an interrupted attempt has already done so;
 * 4. in one transaction, create the account, its repository, its events and its first session, and end the claim.
 *
 * If an attempt is interrupted in between, only the identity remains, for the next sign-up with the same handle.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { endAccess } from '../../../http/hooks.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation, type LogOperation } from '../../../protocol/plc.ts'
import { accountOf, addAccount } from '../accounts/accounts.ts'
import { announceIn, rememberPlace } from '../account-events/account-events.ts'
import { hashPassword, givePassword } from '../passwords/passwords.ts'
import { makeAccountKey, signingKeyOf } from '../account-keys/account-keys.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import { bindBroughtKey } from './brought-identity.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { createRepo } from '../../data/repo/repo.ts'
import { claimName, endClaim, endFailedAttempt, replaceName, type HeldName } from '../handles/handles.ts'
import { keepArrivingDocument } from '../web-documents/web-documents.ts'
import { serverRotationKey, submitOperation, verdictOf } from '../identity/identity.ts'
import { curveFor, takeReservedKey } from '../reserved-keys/reserved-keys.ts'
import { deleteFactors } from '../../access/factors/factors.ts'
import { useInvite } from '../invites/invites.ts'
import { noteWallet } from '../../access/wallet-proofs/wallet-proofs.ts'
import { giveBackPlace, passRangeGate, spendProof, type SignupPlace } from './signup-gates.ts'
import {
  type AdmittedSignup,
  checkPassword,
  checkRequest,
  handleTaken,
  requireFreeAddress,
  requireFreeHandle,
  requireNew,
  requireUsable,
  type SignupRequest,
} from './signup-rules.ts'

export { requireNoAccount } from './brought-identity.ts'
export { passRangeGate, signupNeeds, type GateAnswers, type SignupNeeds } from './signup-gates.ts'

/** A migrated account that is not activated within this time may be deleted. */
const UNFINISHED_MOVE_SECS = 3 * DAY_SECS

export interface NewIdentity<Entry> {
  did: Did
  handle: Handle
  /** What `Enter` returned, such as the first refresh token. */
  entry: Entry
  /** The genesis operation of a did:plc that was created here; null for a DID that existed before. */
  genesis: LogOperation | null
}

/** Opens the first session, in the transaction that creates the account, so that neither exists without the other. */
export type Enter<Entry> = (tx: Tx, did: Did) => Promise<Entry>

/**
 * Create an account. `provenDid` is the DID that a service token proved the caller to own, or null. Throws as
 * `checkRequest` does, `NotEnoughResources` (503) if another attempt took over, and `PlcDirectoryError`.
 */
export async function createAccount<Entry>(
  exchange: Exchange,
  request: SignupRequest,
  provenDid: Did | null,
  enter: Enter<Entry>,
): Promise<NewIdentity<Entry>> {
  const { ctx } = exchange
  const arrived = await arriveAgain(exchange, request, provenDid, enter)
  if (arrived) return arrived
  const admitted = await checkRequest(exchange, request, provenDid)
  const counted: SignupPlace[] = []
  try {
    return await makeAccount(exchange, admitted, enter, counted)
  } catch (error) {
    for (const place of counted) await giveBackPlace(ctx, place)
    throw error
  }
}

/** `counted` receives the counted place, which the caller gives back if no account is created. */
async function makeAccount<Entry>(
  exchange: Exchange,
  admitted: AdmittedSignup,
  enter: Enter<Entry>,
  counted: SignupPlace[],
): Promise<NewIdentity<Entry>> {
  const { ctx } = exchange
  const origin = requestOrigin(exchange)
  const { handle, email, password, inviteCode, proof } = admitted
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  const { brought } = admitted
  const key = brought?.key ?? makeAccountKey(ctx, admitted.did === null ? 'p256' : await curveFor(ctx, admitted.did))
  const fresh =
    admitted.did === null ? await prepareIdentity(ctx, admitted, key) : { did: admitted.did, prepared: null }
  const claimed = await claimName(
    ctx,
    { handle, email, inviteCode, ...fresh, isBrought: brought !== null },
    async (tx) => {
      const now = ctx.clock.now()
      await requireUsable(tx, inviteCode, handle, now)
      await requireFreeHandle(tx, handle, now)
      await (brought ? bindBroughtKey(tx, brought, email) : requireNew(tx, fresh.did))
      await requireFreeAddress(tx, email, now)
      const place = await passRangeGate(exchange, tx)
      if (place !== null) tx.afterCommit(() => counted.push(place))
      if (proof !== null) await spendProof(ctx, tx, proof)
    },
  )
  if (!claimed) throw handleTaken(handle)
  try {
    const { did, prepared } = await register(ctx, claimed, fresh, { isBrought: brought !== null })
    const entry = await ctx.db.transaction(async (tx) => {
      await establish(ctx, tx, admitted, { ...claimed, did }, { ...(prepared?.key ?? key), passwordHash })
      await rememberPlace(tx, did, origin)
      await announceIn(tx, exchange, admitted.did === null ? 'created' : 'arrived', did, { handle })
      return enter(tx, did)
    })
    return { did, handle, genesis: prepared?.genesis ?? null, entry }
  } catch (error) {
    await tidyUp(ctx, () => endFailedAttempt(ctx, claimed, error, { isSent: claimed.prepared !== null }))
    throw error
  }
}

/**
 * Continue a migration that was begun. If the owner of a DID repeats the request with the same handle and email
 * address, the existing account gets the password given now, or none, and a new session. All earlier access ends and
 * second factors are deleted, because an intruder may have begun the migration. Returns null if there is no such
 * account, or if it was ever active.
 */
async function arriveAgain<Entry>(
  exchange: Exchange,
  request: SignupRequest,
  provenDid: Did | null,
  enter: Enter<Entry>,
): Promise<NewIdentity<Entry> | null> {
  const { ctx } = exchange
  if (provenDid === null || request.did !== provenDid) return null
  const isHere = async (reader: Reader) => {
    const account = await accountOf(reader, provenDid)
    const isNew = account !== null && account.takedownRef === null && account.deactivatedAt === account.createdAt
    return isNew && account.handle === parseHandle(request.handle) && account.email === request.email?.toLowerCase()
      ? account
      : null
  }
  if (!(await isHere(ctx.db))) return null
  const password = checkPassword(request.password, true)
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  return ctx.db.transaction(async (tx) => {
    const account = await isHere(tx)
    if (!account) return null
    await givePassword(tx, provenDid, passwordHash)
    // `reset_password` alone would leave app passwords, and devices to which the account was transferred.
    for (const why of ['reset_password', 'revoked'] as const) await endAccess(ctx, tx, provenDid, why)
    await deleteFactors(tx, provenDid)
    await announceIn(tx, exchange, 'arrived', provenDid, { handle: account.handle! })
    return { did: provenDid, handle: account.handle!, genesis: null, entry: await enter(tx, provenDid) }
  })
}

type Identity = Pick<HeldName, 'did' | 'prepared'>

async function prepareIdentity(
  ctx: Context,
  { handle, recoveryKey, brought }: AdmittedSignup,
  key: WrappedKey,
): Promise<Identity> {
  if (brought) return { did: brought.did, prepared: { genesis: brought.genesis, key } }
  const serverKey = await serverRotationKey(ctx)
  const wanted = [recoveryKey, ctx.config.recoveryDidKey, formatDidKey(serverKey.publicKey)]
  const rotationKeys = [...new Set(wanted.filter((key) => key !== null))]
  const genesis = signOperation(
    genesisOperation({ signingKey: key.signingKey, handle, rotationKeys, pdsEndpoint: ctx.config.publicUrl }),
    serverKey,
  )
  return { did: genesisDid(genesis), prepared: { genesis, key } }
}

/**
 * Submit the identity to the directory. If the directory no longer accepts the identity that an earlier attempt left,
 * use the fresh one instead.
 */
async function register(
  ctx: Context,
  claimed: HeldName,
  fresh: Identity,
  { isBrought }: { isBrought: boolean },
): Promise<Identity> {
  if (claimed.prepared === null) return claimed
  try {
    await submitOperation(ctx, claimed.did, claimed.prepared.genesis, isBrought ? 'first' : 'newest')
    return claimed
  } catch (error) {
    const verdict = verdictOf(error)
    // The directory never accepts an invalid operation, even if it was sent before.
    const isOver = verdict === 'invalid' || (verdict !== 'unknown' && !claimed.mayArrive)
    if (claimed.did === fresh.did || !isOver) throw error
    const replaced = { ...claimed, ...fresh, mayArrive: false }
    if (!(await replaceName(ctx, replaced))) throw tookTooLong()
    return register(ctx, replaced, fresh, { isBrought })
  }
}

const tookTooLong = () =>
  new Refusal(503, 'NotEnoughResources', 'The sign-up took too long, or another attempt replaced it')

/** Create the account, its repository and its events. */
async function establish(
  ctx: Context,
  tx: Tx,
  admitted: AdmittedSignup,
  claimed: HeldName,
  made: WrappedKey & { passwordHash: string | null },
): Promise<void> {
  const { handle, email, inviteCode, recoveryKey, brought, language } = admitted
  const { did } = claimed
  const isMadeHere = admitted.did === null
  if ((await endClaim(tx, claimed)) === 0) throw tookTooLong()
  // The owner of the DID may have signed up under another handle meanwhile.
  await requireNew(tx, did)
  const now = ctx.clock.now()
  // The owner of a DID may already have published the key that was reserved for it.
  const { signingKey, wrapped } = (isMadeHere && brought === null ? null : await takeReservedKey(tx, did)) ?? made
  await addAccount(tx, {
    did,
    handle,
    email,
    passwordHash: made.passwordHash,
    signingKey,
    wrapped,
    createdAt: now,
    deactivatedAt: isMadeHere ? null : now,
    deleteAfter: isMadeHere ? null : now + UNFINISHED_MOVE_SECS * 1000,
    language,
  })
  if (!isMadeHere) await keepArrivingDocument(tx, did)
  if (made.passwordHash === null || recoveryKey !== null || brought !== null) await noteWallet(ctx, tx, did)
  const key = await signingKeyOf(ctx, tx, did)
  const repoEvents = await createRepo(ctx, tx, did, key!)
  if (inviteCode !== null) await useInvite(tx, inviteCode, did, now)
  if (isMadeHere) {
    await sequenceEvents(ctx, tx, [
      { type: 'identity', did, handle },
      { type: 'account', did, status: 'active' },
      ...repoEvents,
    ])
  }
}
