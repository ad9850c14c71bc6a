/**
 * The actions of the holder of an account that moves here: begin the move, give the code or the operation that changes
 * the identity, sign in at the old server again, retry a part, cancel. The step does everything in between.
 */
import { Type } from '@sinclair/typebox'
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Upload } from '../../../http/uploaded-form.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'
import { parseDidKey } from '../../../protocol/keys.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import {
  isPlcDid,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  signerOf,
  type Operation,
  type UnsignedOperation,
} from '../../../protocol/plc.ts'
import { loginWithPassword } from '../passwords/passwords.ts'
import { passFactor } from '../../access/factors/factors.ts'
import { verifyServiceToken } from '../../access/service-auth/service-auth.ts'
import { importArchive } from '../../data/account-archives/account-archives.ts'
import { blobCounts } from '../../data/blobs/blobs.ts'
import { repoTotals } from '../../data/repo/repo.ts'
import { importRepo } from '../../data/sync/sync.ts'
import { accountOf, scheduleDeletion, type Account } from '../accounts/accounts.ts'
import { deleteAccount, recommendedCredentials, serverRotationKeys } from '../account-changes/account-changes.ts'
import { announceIn } from '../account-events/account-events.ts'
import { presentIdentity } from '../identity/identity.ts'
import { createAccount, type Enter, type NewIdentity } from '../signup/signup.ts'
import { changeOf, requireAgreed, shownAgain, type IdentityChange } from './agreed-identity.ts'
import { noNotes, requireFewKeys, requireKeepable, tooManyKeys, type KeyChanges } from './key-changes.ts'
import { atOldHost, logInAt, originOf, requireImports } from './move-plan.ts'
import { leavingOf } from './moving-away.ts'
import { mailCode, wishOf } from './move-stages.ts'
import { addMoveStep, keepAccount } from './move-step.ts'
import {
  deleteMove,
  deletePlansOf,
  findMove,
  findPlan,
  putMove,
  updateMove,
  updateMoveSession,
  type Move,
  type MoveState,
  type PlannedMove,
  type Stage,
} from './move-store.ts'
import { acceptOffer, type OfferRequest } from './offered-identity.ts'
import { hostOf, OldHostAway, OldHostRefusal } from './old-host.ts'
import { oldHostOf, plannedHost, sealSession } from './old-host-access.ts'

const CREATE_ACCOUNT = 'com.atproto.server.createAccount'

export interface BeginRequest {
  /** The token of the plan. */
  plan: string
  handle: string
  email: string
  password: string
  inviteCode?: string
  /** The second factor of an account that returns, if it has one. */
  authFactorToken?: string
  /** A did:key of the holder, which will rank above the key of this server. */
  recoveryKey?: string
  /** The rotation keys of the identity that are to stay; if omitted, those that seem to be the holder's. */
  keepKeys?: readonly string[]
}

/** The account of a move that has begun. */
export interface BegunMove<Entry> {
  did: Did
  handle: Handle | null
  /** What `Enter` returned. */
  entry: Entry
}

/**
 * Create the account, which is deactivated until its identity names this server, and start to move it. The old server
 * vouches for the holder with a service token, as for any client that moves an account. If a move was already begun, it
 * starts over with the password and the recovery key given now, because an intruder may have begun it. If the account
 * was left behind here, it returns: it keeps its handle, its address and its password, which the request has to give.
 *
 * Throws `InvalidRequest` for a plan that is unknown or has expired and for keys that cannot stay,
 * `AuthenticationRequired` for a wrong password of an account that returns, what `passFactor` throws about its second
 * factor, what `createAccount` throws, and what `planMove` throws about the old server.
 */
export async function beginMove<Entry>(
  exchange: Exchange,
  request: BeginRequest,
  enter: Enter<Entry>,
): Promise<BegunMove<Entry>> {
  const { ctx } = exchange
  requireImports(ctx)
  const { plan, recoveryKey, keepKeys, authFactorToken, ...account } = request
  const planned = await findPlan(ctx.db, opaqueTokenHash(plan) ?? '', ctx.clock.now())
  if (!planned) throw invalidRequest('plan: unknown, or expired; sign in at the old server again')
  const { did, host, sessionWrapped } = planned
  const { origin } = await originOf(ctx, did)
  if (origin !== host) throw invalidRequest('plan: the identity now names another server; sign in there')
  const notes = keepKeys === undefined ? noNotes : { ...noNotes, kept: keepKeys }
  if (keepKeys !== undefined) {
    const { state } = await presentIdentity(ctx, did)
    requireKeepable({ state, ours: await serverRotationKeys(ctx), recoveryKey: recoveryKey ?? null, notes })
  }
  await requireVouched(ctx, planned)
  const begin = async (tx: Tx): Promise<Entry> => {
    await forgetUnchanged(tx, did)
    await putMove(tx, {
      did,
      host,
      stage: 'repository',
      sessionWrapped,
      recoveryKey: recoveryKey ?? null,
      keyNotes: JSON.stringify(notes),
      operation: null,
      now: ctx.clock.now(),
    })
    await deletePlansOf(tx, did)
    await addMoveStep(ctx, tx, did)
    return enter(tx, did)
  }
  const left = await accountOf(ctx.db, did)
  if (left === null || !isReturning(left)) return createAccount(exchange, { ...account, did, recoveryKey }, did, begin)
  if (recoveryKey !== undefined && !parseDidKey(recoveryKey))
    throw invalidRequest('The recovery key is not a did:key of a supported curve')
  const revalidate = await loginWithPassword(exchange, did, account.password, () =>
    authenticationRequired('The account was here before: enter the password that it had here'),
  )
  await passFactor(exchange, left, authFactorToken)
  const entry = await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const now = await accountOf(tx, did)
    if (now === null || !isReturning(now)) throw notNow()
    await scheduleDeletion(ctx, tx, now, null)
    await announceIn(tx, exchange, 'arrived', did)
    return begin(tx)
  })
  return { did, handle: left.handle, entry }
}

/** Stages in which the old server still hosts the account, so that nothing has changed for others. */
const unchanged: readonly Stage[] = ['archive', 'repository', 'blobs', 'preferences', 'identity']

/** Delete an earlier move that was only begun or has ended, but not one that is changing the identity. */
async function forgetUnchanged(tx: Tx, did: Did): Promise<void> {
  const before = await findMove(tx, did)
  if (before !== null && (before.stage === 'done' || unchanged.includes(before.stage))) await deleteMove(tx, did)
}

/** Whether the account was active here before, was left behind, and can come back. */
const isReturning = ({ deactivatedAt, createdAt, takedownRef }: Account): boolean =>
  deactivatedAt !== null && deactivatedAt !== createdAt && takedownRef === null

/** The request for a move whose old server no longer exists. */
export interface KeyRequest extends Omit<BeginRequest, 'plan' | 'recoveryKey'>, OfferRequest {
  /** The offered operation, signed by a rotation key of the identity. */
  operation: unknown
}

/**
 * Create the account, into which the holder uploads an archive next. Signing the operation proves control of the
 * identity; the operation is submitted once the repository is here. Throws what `acceptOffer` and `createAccount`
 * throw.
 */
export async function beginMoveWithKey<Entry>(
  exchange: Exchange,
  request: KeyRequest,
  enter: Enter<Entry>,
): Promise<NewIdentity<Entry>> {
  const { ctx } = exchange
  const { identifier: _, operation: given, recoveryKey, keepKeys: __, ...account } = request
  const { did, origin, notes, operation } = await acceptOffer(ctx, request, given)
  return createAccount(exchange, { ...account, did, recoveryKey }, did, async (tx, made) => {
    await forgetUnchanged(tx, made)
    await putMove(tx, {
      did,
      host: origin,
      stage: 'archive',
      sessionWrapped: null,
      recoveryKey,
      keyNotes: JSON.stringify(notes),
      operation: JSON.stringify(operation),
      now: ctx.clock.now(),
    })
    return enter(tx, made)
  })
}

const permitShape = Type.Object({ token: Type.String({ maxLength: 8192 }) })

/**
 * Throws `AuthenticationRequired` unless the old server vouches for the holder, with a service token signed by the key
 * of the identity.
 */
async function requireVouched(ctx: Context, planned: PlannedMove): Promise<void> {
  const host = plannedHost(ctx, planned)
  const params = { aud: ctx.config.serverDid, lxm: CREATE_ACCOUNT }
  const { token } = await atOldHost(host, () => host.query('com.atproto.server.getServiceAuth', params, permitShape))
  const { iss } = await verifyServiceToken(ctx, token, { lxm: CREATE_ACCOUNT })
  if (iss !== planned.did) throw authenticationRequired('The old server vouched for another account')
}

/** What a move waits for the holder to give. */
export type Need = 'archive' | 'signature' | 'document' | 'sign-in' | 'decision'

export interface MoveView {
  did: Did
  handle: Handle | null
  /** Host name of the old server; null if the move has none. */
  host: string | null
  stage: Stage
  /** What the holder has to do; null if the server continues by itself, or has finished. */
  needs: Need | null
  /** What went wrong last, in a sentence. */
  fault: string | null
  records: number
  blobs: { expected: number; stored: number; lost: number }
  /**
   * Whether the old server signs the operation in exchange for a code that it mails. Otherwise a key of the holder has
   * to sign.
   */
  mailsCode: boolean
  /** Which rotation keys stay and go, if the move waits for the signature of the operation that changes them. */
  keys: KeyChanges | null
  /** The operation that changes them; null if too many keys would stay. */
  operation: UnsignedOperation | null
  /**
   * Identifies the content of the operation. The holder sends it with the code, so that the operation that is signed is
   * the one that was shown.
   */
  agreement: string | null
  /** What a did:web has to publish, if that is what the move waits for. */
  document: { signingKey: string; serviceEndpoint: string } | null
}

const needsOf = ({ did, stage, halted }: Move): Need | null => {
  if (halted !== null) return halted
  if (stage === 'archive') return 'archive'
  if (stage === 'identity') return isPlcDid(did) ? 'signature' : 'document'
  return null
}

/**
 * Returns the move of an account; null if the account is not moving here. Throws `PlcDirectoryError` if there is an
 * operation to sign.
 */
export async function moveOf(ctx: Context, did: Did): Promise<MoveView | null> {
  const move = await findMove(ctx.db, did)
  const account = await accountOf(ctx.db, did)
  if (move === null || account === null) return null
  const { host, stage, fault, blobsLost } = move
  const needs = needsOf(move)
  const change = needs === 'signature' ? await changeOf(ctx, did, wishOf(move)) : null
  const totals = await repoTotals(ctx, did)
  const { expected, imported } = await blobCounts.recent(ctx, did)
  return {
    did,
    handle: account.handle,
    host: host === null ? null : hostOf(host),
    stage,
    needs,
    fault: change !== null && change.operation === null ? `${tooManyKeys(change.keys.stay.length)}.` : fault,
    records: totals?.records ?? 0,
    blobs: { expected, stored: imported, lost: blobsLost },
    mailsCode: isPlcDid(did) && move.sessionWrapped !== null,
    keys: change?.keys ?? null,
    operation: change?.operation ?? null,
    agreement: change?.agreement ?? null,
    document: needs === 'document' ? await documentFor(ctx, did) : null,
  }
}

/** Whether the account is moving here. */
export async function isMoving(reader: Reader, did: Did): Promise<boolean> {
  const move = await findMove(reader, did)
  return move !== null && move.stage !== 'done'
}

async function documentFor(ctx: Context, did: Did): Promise<{ signingKey: string; serviceEndpoint: string }> {
  const { verificationMethods, services } = await recommendedCredentials(ctx, did)
  return {
    signingKey: verificationMethods[SIGNING_KEY_NAME]!,
    serviceEndpoint: services[PDS_SERVICE_NAME]!.endpoint,
  }
}

const noMove = () => new Refusal(404, 'NotFound', 'The account is not moving here')
const notNow = () => new Refusal(409, 'Conflict', 'The move is not waiting for that')

async function requireMove(ctx: Context, did: Did, ...needs: Need[]): Promise<Move> {
  const move = await findMove(ctx.db, did)
  if (move === null) throw noMove()
  const need = needsOf(move)
  if (need === null || !needs.includes(need)) throw notNow()
  return move
}

/**
 * Store what the holder has decided, including the session at the old server if one is given, and continue the move.
 * Throws `Conflict` if the move has continued meanwhile.
 */
async function resume(
  { ctx, revalidate }: Exchange,
  move: Move,
  { sessionWrapped, ...changes }: Partial<MoveState & Pick<Move, 'sessionWrapped'>>,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const state = { ...move, tries: 0, fault: null, halted: null, ...changes }
    if ((await updateMove(tx, move, state, ctx.clock.now())) === 0) throw notNow()
    if (sessionWrapped !== undefined) await updateMoveSession(tx, move.did, sessionWrapped)
    if (state.stage === 'submission') await keepAccount(ctx, tx, move.did)
    await addMoveStep(ctx, tx, move.did)
  })
}

const signedShape = Type.Object({ operation: Type.Unknown() })

/**
 * Have the old server sign the operation that `agreement` identifies, with the code that it has mailed. Throws
 * `Conflict` if the operation would differ from what was shown, `InvalidToken` or `ExpiredToken` for the code, and
 * `InvalidRequest` if the old server signs something else.
 */
export async function giveCode(
  exchange: Exchange,
  did: Did,
  { code, agreement }: { code: string; agreement: string },
): Promise<void> {
  const { ctx } = exchange
  const move = await requireMove(ctx, did, 'signature')
  const host = oldHostOf(ctx, move)
  if (host?.hasSession !== true) throw notNow()
  // Send every member of the operation, because an old server may merge omitted ones from the current state.
  const shown = await shownChange(ctx, move, agreement)
  const { rotationKeys, alsoKnownAs, verificationMethods, services } = shown.operation!
  const input = { token: code, rotationKeys, alsoKnownAs, verificationMethods, services }
  // Count the try first, which proves that the database can be written to: a code works once, and would be wasted if
  // the signed operation could not be stored.
  if ((await updateMove(ctx.db, move, { ...move, tries: move.tries + 1 }, ctx.clock.now())) === 0) throw notNow()
  const { operation } = await atOldHost(host, () =>
    host.procedure('com.atproto.identity.signPlcOperation', input, signedShape),
  )
  const agreed = requireAgreed(await shownChange(ctx, move, agreement), operation)
  const kept = signerOf(agreed, rotationKeys)
  if (kept !== null && kept !== move.recoveryKey) await dropKey(exchange, move, kept)
  await submitAgreed(exchange, move, agreed)
}

/** Returns the change as of now. Throws `Conflict` if it is not the one that was shown. */
async function shownChange(ctx: Context, move: Move, agreement: string): Promise<IdentityChange> {
  const change = await changeOf(ctx, move.did, wishOf(move))
  requireFewKeys(change.keys)
  if (change.agreement !== agreement) throw shownAgain()
  return change
}

const submitAgreed = (exchange: Exchange, move: Move, operation: Operation): Promise<void> =>
  resume(exchange, move, { stage: 'submission', operation: JSON.stringify(operation) })

/**
 * Note that the old server holds a key that it has not named as its own and that would stay. Throws `InvalidRequest`,
 * so that the holder reviews the keys again, unless it is a key of this server too.
 */
async function dropKey({ ctx }: Exchange, move: Move, key: string): Promise<void> {
  if ((await serverRotationKeys(ctx)).includes(key)) return
  const { notes } = wishOf(move)
  const kept = notes.kept?.filter((one) => one !== key) ?? null
  const keyNotes = JSON.stringify({ ...notes, kept, proven: [...notes.proven, key] })
  await updateMove(ctx.db, move, { ...move, keyNotes }, ctx.clock.now())
  throw invalidRequest(
    'The old server has signed with a key that your identity would have kept. It is left out now: ask for another code',
  )
}

/**
 * Choose the rotation keys of the identity that stay. All others go, except those of this server. Throws
 * `InvalidRequest` for keys that cannot stay.
 */
export async function chooseKeys({ ctx, revalidate }: Exchange, did: Did, keys: readonly string[]): Promise<void> {
  const move = await requireMove(ctx, did, 'signature')
  const { recoveryKey, notes: before } = wishOf(move)
  const notes = { ...before, kept: [...new Set(keys)] }
  const { state } = await presentIdentity(ctx, did)
  requireKeepable({ state, ours: await serverRotationKeys(ctx), recoveryKey, notes })
  await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const changed = await updateMove(tx, move, { ...move, keyNotes: JSON.stringify(notes) }, ctx.clock.now())
    if (changed === 0) throw notNow()
  })
}

/** Accept the operation that was shown, signed by a rotation key of the holder. Throws as `requireAgreed` does. */
export async function giveOperation(exchange: Exchange, did: Did, operation: unknown): Promise<void> {
  const { ctx } = exchange
  const move = await requireMove(ctx, did, 'signature')
  await submitAgreed(exchange, move, requireAgreed(await changeOf(ctx, did, wishOf(move)), operation))
}

/** Have the old server mail another code. Throws `InvalidRequest` if it refuses, and `ServiceUnavailable`. */
export async function mailAnotherCode({ ctx }: Exchange, did: Did): Promise<void> {
  const host = oldHostOf(ctx, await requireMove(ctx, did, 'signature'))
  if (host?.hasSession !== true) throw notNow()
  const fault = await atOldHost(host, () => mailCode(host))
  if (fault !== null) throw invalidRequest(fault)
}

/** Sign in at the old server again, because the session there has ended. Throws as `planMove` does. */
export async function signInAgain(
  exchange: Exchange,
  did: Did,
  given: { password: string; authFactorToken?: string },
): Promise<void> {
  const { ctx } = exchange
  const move = await requireMove(ctx, did, 'sign-in', 'signature')
  const host = oldHostOf(ctx, move)
  if (host === null) throw notNow()
  const sessionWrapped = sealSession(ctx.vault, await logInAt(host, did, given))
  if (move.halted !== null) return resume(exchange, move, { sessionWrapped })
  await ctx.db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    await updateMoveSession(tx, did, sessionWrapped)
  })
}

/** Retry what failed: the repository, blobs that were given up, or the check that a did:web names this server. */
export async function tryAgain(exchange: Exchange, did: Did): Promise<void> {
  const move = await requireMove(exchange.ctx, did, 'decision', 'document', 'signature')
  if (move.halted === 'decision') return resume(exchange, move, {})
  if (move.blobsLost > 0 && isPlcDid(did))
    return resume(exchange, move, { stage: 'blobs', blobsAfter: '', blobsLost: 0 })
  if (isPlcDid(did)) throw notNow()
  await resume(exchange, move, { stage: 'activation' })
}

/**
 * Continue without the old server, because it no longer exists or does not let the account leave. Everything that it
 * has not handed over is lost, unless the holder has an archive, and a key of the holder has to change the identity.
 */
export async function goWithoutOldServer(exchange: Exchange, did: Did): Promise<void> {
  const { ctx } = exchange
  const move = await findMove(ctx.db, did)
  if (move === null) throw noMove()
  const stage = stageWithout[move.stage]
  if (stage === undefined) throw notNow()
  await resume(exchange, move, { stage, sessionWrapped: null })
}

/** The stage in which a move continues without the old server, by its stage before. */
const stageWithout: Partial<Record<Stage, Stage>> = {
  repository: 'archive',
  // Without an archive the repository begins empty.
  archive: 'blobs',
  blobs: 'blobs',
  preferences: 'preferences',
  // The stage before `identity`, which proposes the change again: without the old server, its claims about which keys
  // are its own no longer count.
  identity: 'preferences',
}

/**
 * Import the repository from a CAR file, or everything from an archive that another Holdfast server has exported.
 * Throws as `importRepo` and `importArchive` do.
 */
export async function giveArchive(
  exchange: Exchange,
  did: Did,
  { upload, isZip }: { upload: Upload; isZip: boolean },
): Promise<void> {
  const { ctx } = exchange
  const move = await requireMove(ctx, did, 'archive', 'decision')
  if (move.stage !== 'archive' && move.stage !== 'repository') throw notNow()
  if (isZip) {
    if (!(await importArchive(exchange, did, upload)).hasRepo) throw invalidRequest('The archive has no repository')
  } else {
    await importRepo(exchange, did, upload.stream(ctx.config.repos.maxImportSize))
  }
  await resume(exchange, move, { stage: 'blobs' })
}

/**
 * Cancel the move: the account here is deleted, or stays deactivated if it was here before, and the account at the old
 * server stays as it was. Throws `Conflict` once the identity is being changed or already names this server, because
 * then no server would host the account.
 */
export async function cancelMove(exchange: Exchange, did: Did): Promise<void> {
  const { ctx, revalidate } = exchange
  const move = await findMove(ctx.db, did)
  if (move === null) throw noMove()
  if (!unchanged.includes(move.stage) || (await leavingOf(ctx, did)).isHere === true) throw notNow()
  const isKept = await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const account = await accountOf(tx, did)
    if (account === null || account.deactivatedAt === null) throw notNow()
    // The step may have advanced the move meanwhile.
    const present = await findMove(tx, did)
    if (present === null || !unchanged.includes(present.stage)) throw notNow()
    // Change the stage, so that a concurrent `giveCode` fails because the stage is no longer the one that it read.
    const state: MoveState = { ...present, stage: 'archive', operation: null }
    if ((await updateMove(tx, present, state, ctx.clock.now())) === 0) throw notNow()
    if (!isReturning(account)) return false
    await deleteMove(tx, did)
    return true
  })
  if (!isKept) await deleteAccount(exchange, did)
  const host = oldHostOf(ctx, move)
  await host?.endSession().catch((error: unknown) => {
    if (!(error instanceof OldHostRefusal) && !(error instanceof OldHostAway)) throw error
    ctx.log.debug('could not end the session at the old server', { did, error })
  })
}
