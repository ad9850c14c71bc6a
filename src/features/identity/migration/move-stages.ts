/**
 * The stages of a move that the server performs by itself. The process may be killed during any stage, which is then
 * performed again: it keeps what it has already fetched and fetches what is missing. Until the operation on the
 * identity is submitted, the account at the old server is untouched.
 */
import { Type } from '@sinclair/typebox'
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { StepPostponed } from '../../../platform/running/steps.ts'
import { readCar } from '../../../protocol/car.ts'
import { parseCommit } from '../../../protocol/commit.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { isPlcDid, isSameOperation, operationCid, type LogOperation } from '../../../protocol/plc.ts'
import { putPreferences } from '../../../protocol/preference-rules.ts'
import { accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { activateAccount } from '../account-changes/account-changes.ts'
import { blobCounts, blobReferences, knownBlobs } from '../../data/blobs/blobs.ts'
import { storePreferences } from '../../data/preferences/preferences.ts'
import { repoHead, type RepoHead } from '../../data/repo/repo.ts'
import { importFetchedRepo } from '../../data/sync/sync.ts'
import { requireNoDoubt, submitOperation, verdictOf } from '../identity/identity.ts'
import { changeOf, claimedKeys, type Wish } from './agreed-identity.ts'
import { noNotes, type KeyNotes } from './key-changes.ts'
import { updateMove, updateMoveSession, type Move, type MoveState, type Stage } from './move-store.ts'
import { awayOf, OldHostAway, OldHostRefusal, OldSessionEnded, type OldHost } from './old-host.ts'

/** Time for the archive of a repository, which must be less than the time of one try of the step. */
const ARCHIVE_MILLIS = 3 * MINUTE_MILLIS
const BLOB_MILLIS = MINUTE_MILLIS
/** Largest proof of a record, of which only the commit is read. */
const MAX_PROOF_BYTES = 4 * 1024 * 1024
/** Most blobs that are tried when the identity is about to change. */
const MAX_LATE_BLOBS = 1000
/** Most tries of an archive, or of one blob, that arrives damaged or not at all. */
const MAX_TRIES = 3
/** How long an unreachable old server may delay a stage that the holder cannot skip. */
const PATIENCE_MILLIS = DAY_MILLIS

export interface Job {
  ctx: Context
  move: Move
  /** Null if the move continues without the old server. */
  host: OldHost | null
  /** Whether the turn of this job is over. */
  isOver(): boolean
}

/** Performs a stage. Returns the changes to the state of the move. */
type Perform = (job: Job) => Promise<Partial<MoveState>>

/** Stages that wait for the holder. */
export type Waiting = 'archive' | 'identity' | 'done'

export const performers: Readonly<Record<Exclude<Stage, Waiting>, Perform>> = {
  repository: takeRepository,
  blobs: takeBlobs,
  preferences: takePreferences,
  submission: submit,
  activation: activate,
  farewell: sayFarewell,
}

async function takeRepository({ ctx, move, host }: Job): Promise<Partial<MoveState>> {
  try {
    await fetchRepository(ctx, move.did, host!)
  } catch (error) {
    if (!isDamaged(error) || move.tries + 1 < MAX_TRIES) throw error
    return { halted: 'decision', fault: `The repository could not be taken over: ${wordsOf(error, host!)}` }
  }
  return { stage: 'blobs' }
}

/** `before`: as `importFetchedRepo` takes it. */
async function fetchRepository(ctx: Context, did: Did, host: OldHost, before?: RepoHead | null): Promise<void> {
  const bounds = { maxBytes: ctx.config.repos.maxImportSize, bodyTimeoutMillis: ARCHIVE_MILLIS }
  await downloaded(host, ['com.atproto.sync.getRepo', { did }, bounds], (response) =>
    importFetchedRepo({ ctx }, did, bodyOf(response), before),
  )
}

/** Download a body and pass it to `use`. When `use` returns, the rest of the body is not received. */
async function downloaded<T>(
  host: OldHost,
  [nsid, params, bounds]: Parameters<OldHost['download']>,
  use: (response: Response) => Promise<T>,
): Promise<T> {
  const used = new AbortController()
  try {
    return await use(await host.download(nsid, params, { ...bounds, signal: used.signal }))
  } finally {
    used.abort()
  }
}

/** Whether the error means that the old server has sent something unusable. */
export const isDamaged = (error: unknown): boolean =>
  (error instanceof Refusal && error.status < 500) || error instanceof OutboundError || error instanceof OldHostRefusal

const wordsOf = (error: unknown, host: OldHost): string => (awayOf(error, host.origin) as Error).message

async function* bodyOf(response: Response): AsyncGenerator<Uint8Array> {
  for await (const chunk of response.body ?? []) yield chunk
}

async function takeBlobs({ ctx, move, host, isOver }: Job): Promise<Partial<MoveState>> {
  const { did } = move
  for await (const missing of blobReferences.allMissing(ctx.db, did, move.blobsAfter)) {
    for (const { cid } of missing) {
      if (host === null) return withoutMissing(ctx, did)
      if (isOver()) yieldTurn()
      try {
        await fetchBlob(ctx, did, cid, host)
      } catch (error) {
        // The holder has decided to continue without the old server.
        if (error instanceof OldHostAway && !host.hasSession) return withoutMissing(ctx, did)
        if (error instanceof Refusal && error.name === 'PayloadTooLarge')
          return { halted: 'decision', fault: `${error.message}. Ask the operator of this server for more.` }
        if (!isDamaged(error)) throw error
        const isFinal = error instanceof OldHostRefusal || move.tries + 1 >= MAX_TRIES
        if (!isFinal) throw error
        return lost(move, cid)
      }
    }
  }
  return { stage: 'preferences' }
}

const lost = ({ blobsLost }: Move, cid: string): Partial<MoveState> => ({ blobsAfter: cid, blobsLost: blobsLost + 1 })

async function withoutMissing(ctx: Context, did: Did): Promise<Partial<MoveState>> {
  const { expected, imported } = await blobCounts.exact(ctx, did)
  return { stage: 'preferences', blobsLost: Math.max(0, expected - imported) }
}

/** Throws an error that satisfies `isDamaged` if the content is too long, is another blob, or breaks off. */
async function fetchBlob(ctx: Context, did: Did, cid: string, host: OldHost): Promise<void> {
  const bounds = { maxBytes: ctx.config.blobs.maxBlobSize, bodyTimeoutMillis: BLOB_MILLIS }
  const isRight = await downloaded(host, ['com.atproto.sync.getBlob', { did, cid }, bounds], (response) => {
    const declaredType = response.headers.get('content-type')?.split(';')[0]!.trim().toLowerCase() ?? null
    const admission = { permit: () => undefined, record: () => Promise.resolve() }
    return knownBlobs.take(ctx, did, { cid, declaredType, bytes: bodyOf(response) }, admission)
  })
  if (!isRight) throw invalidRequest('The old server sent a different blob')
}

const MAX_PREFERENCES = 10_000
const preferencesShape = Type.Object({ preferences: Type.Array(Type.Unknown(), { maxItems: MAX_PREFERENCES }) })

async function takePreferences(job: Job): Promise<Partial<MoveState>> {
  const { ctx, move, host } = job
  const { did } = move
  if (host?.hasSession === true) {
    const taken = await host.query('app.bsky.actor.getPreferences', {}, preferencesShape).catch((error: unknown) => {
      if (error instanceof OldHostRefusal) return { preferences: [] }
      throw error
    })
    const known = putPreferences([], taken.preferences, { personalDetails: true })
    if (known.ok && known.stored.length > 0)
      await ctx.db.transactionOn(accountLock(did), async (tx) => {
        const status = await accountStatus(tx, did)
        refuseTakendown(status)
        // If the account is active, the holder has activated it without the move, and may have changed the preferences
        // since.
        if (status !== 'active') await storePreferences(tx, did, known.stored)
      })
  }
  return proposeIdentity(job)
}

/** Ask the old server which keys are its own, and have it mail its code. */
async function proposeIdentity({ ctx, move, host }: Job): Promise<Partial<MoveState>> {
  const { did, operation } = move
  // The holder has already brought a signed operation.
  if (operation !== null) return { stage: 'submission' }
  if (!isPlcDid(did)) return { stage: 'identity' }
  const signer = host?.hasSession === true ? host : null
  const claimed = signer === null ? null : await claimedKeys(signer)
  const { recoveryKey, notes: before } = wishOf(move)
  const notes = { ...before, claimed }
  // Throws if the identity cannot be changed: then no code is needed.
  await changeOf(ctx, did, { recoveryKey, notes })
  const fault = signer === null ? null : await mailCode(signer)
  return { stage: 'identity', keyNotes: JSON.stringify(notes), fault }
}

/** The holder's wishes for the identity, from the row of the move. */
export const wishOf = ({ recoveryKey, keyNotes }: Pick<Move, 'recoveryKey' | 'keyNotes'>): Wish => ({
  recoveryKey,
  notes: keyNotes === null ? noNotes : (JSON.parse(keyNotes) as KeyNotes),
})

/** Returns why the old server mails no code, in words, or null. */
export async function mailCode(host: OldHost): Promise<string | null> {
  try {
    await host.procedure('com.atproto.identity.requestPlcOperationSignature', undefined, Type.Unknown())
    return null
  } catch (error) {
    if (!(error instanceof OldHostRefusal)) throw error
    return `The old server mails no code: ${error.message}`
  }
}

/**
 * Fetch what was written at the old server since the repository was fetched: days may pass before the holder changes
 * the identity. If something cannot be fetched, the move continues without it, because the holder has already decided
 * to move.
 */
async function catchUp(job: Job): Promise<Partial<MoveState>> {
  const { ctx, move, host } = job
  const { did, blobsLost } = move
  if (host?.hasSession !== true || !hasPatience(job)) return {}
  // Commits after this head were written here, and stay.
  const before = await repoHead(ctx.db, did)
  // If the account is active, the holder has activated it without the move, and may have written to it since.
  if ((await accountStatus(ctx.db, did)) === 'active') return {}
  try {
    if (!(await hasSameTree(ctx, did, host))) await fetchRepository(ctx, did, host, before)
    const { expected, imported } = await blobCounts.exact(ctx, did)
    return expected - imported > blobsLost ? { blobsLost: await fetchLateBlobs(job, host) } : {}
  } catch (error) {
    if (!isDamaged(error) && !(error instanceof OldHostAway) && !(error instanceof OldSessionEnded)) throw error
    ctx.log.warn('could not take over later writes from the old server', { did, error })
    return {}
  }
}

/** The absolute difference, because a time in the future was written before the clock was set back. */
const hasPatience = ({ ctx, move }: Job): boolean => Math.abs(ctx.clock.now() - move.changedAt) < PATIENCE_MILLIS

/**
 * Whether the repository at the old server has the same tree as the one here. Returns false if the old server does not
 * say.
 */
async function hasSameTree(ctx: Context, did: Did, host: OldHost): Promise<boolean> {
  try {
    const proven = { did, collection: 'app.bsky.actor.profile', rkey: 'self' }
    const bounds = { maxBytes: MAX_PROOF_BYTES, bodyTimeoutMillis: BLOB_MILLIS }
    return await downloaded(host, ['com.atproto.sync.getRecord', proven, bounds], async (response) => {
      const { roots, pages } = await readCar(bodyOf(response))
      for await (const blocks of pages)
        for (const { cid, bytes } of blocks)
          if (cid.equals(roots[0])) return (await repoHead(ctx.db, did))?.data.equals(parseCommit(bytes).data) === true
      return false
    })
  } catch (error) {
    if (error instanceof Malformed || isDamaged(error)) return false
    throw error
  }
}

/** Fetch missing blobs, including those that were given up before. Returns how many are still missing. */
async function fetchLateBlobs({ ctx, move: { did }, isOver }: Job, host: OldHost): Promise<number> {
  let [tries, fetched] = [0, 0]
  for await (const missing of blobReferences.allMissing(ctx.db, did))
    for (const { cid } of missing) {
      // Yield only before the first try or if this turn has fetched something: otherwise the next turn would begin with
      // the same failing blobs, and get no further.
      if (isOver() && (tries === 0 || fetched > 0)) yieldTurn()
      if (isOver() || ++tries > MAX_LATE_BLOBS) break
      try {
        await fetchBlob(ctx, did, cid, host)
        fetched++
      } catch (error) {
        if (!isDamaged(error)) throw error
      }
    }
  const { expected, imported } = await blobCounts.exact(ctx, did)
  return Math.max(0, expected - imported)
}

async function submit(job: Job): Promise<Partial<MoveState>> {
  const { ctx, move } = job
  const { did, unansweredAt } = move
  // Before each try, because the directory may be down for long, and the holder may write at the old server meanwhile.
  const late = await catchUp(job)
  const operation = JSON.parse(move.operation!) as LogOperation
  const sentAt = ctx.clock.now()
  // Stored before the operation is sent, because the process may end before the answer arrives.
  if ((await updateMove(ctx.db, move, { ...move, unansweredAt: sentAt }, sentAt)) === 0) return {}
  try {
    await submitOperation(ctx, did, operation)
  } catch (error) {
    if (['unknown', 'postponed'].includes(verdictOf(error))) throw error
    await updateMove(ctx.db, move, { ...move, unansweredAt }, sentAt)
    requireNoDoubt(unansweredAt, sentAt)
    return agreeAgain(job, `The directory refused the change of your identity: ${(error as Error).message}`)
  }
  return { stage: 'activation', ...late }
}

/** Go back to the stage in which the holder agrees to an operation, and tell the holder why. */
async function agreeAgain({ host }: Job, fault: string): Promise<Partial<MoveState>> {
  if (host?.hasSession === true)
    await mailCode(host).catch((error: unknown) => {
      // Ignored: the holder can sign in at the old server again, and ask for another code.
      if (!(error instanceof OldHostAway) && !(error instanceof OldSessionEnded)) throw error
    })
  return { stage: 'identity', operation: null, unansweredAt: null, fault }
}

/** Whether the directory has an operation that is newer than the operation of the move. */
async function isSuperseded({ plc }: Context, { did, operation }: Move): Promise<boolean> {
  const [own, last] = [JSON.parse(operation!) as LogOperation, await plc.lastOperation(did)]
  return last !== null && !isSameOperation(last, own) && operationCid(last).toString() !== own.prev
}

async function activate(job: Job): Promise<Partial<MoveState>> {
  const { ctx, move } = job
  // For a did:web no operation was submitted: the holder has changed the document, perhaps after days.
  const late = isPlcDid(move.did) ? {} : await catchUp(job)
  try {
    await activateAccount({ ctx }, move.did)
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500) throw error
    // Only its holder can correct the document of a did:web.
    if (!isPlcDid(move.did)) return { stage: 'identity', fault: `${error.message}.` }
    // The did:plc has been changed, so the activation has read an old copy, unless the identity has been changed again.
    if (!(await isSuperseded(ctx, move))) throw new PlcDirectoryError(200, error.message, { cause: error })
    return agreeAgain(job, `Your identity has changed again: ${error.message}`)
  }
  return { stage: 'farewell', ...late }
}

async function sayFarewell(job: Job): Promise<Partial<MoveState>> {
  const { ctx, move, host } = job
  const { did } = move
  const left = 'The account at the old server is still active: sign in there, and deactivate it yourself.'
  let fault: string | null = null
  if (host?.hasSession === true)
    try {
      await host.procedure('com.atproto.server.deactivateAccount', {}, Type.Unknown())
      await host.endSession()
    } catch (error) {
      const isAway = error instanceof OldHostAway
      if (isAway && hasPatience(job)) throw error
      if (!isAway && !(error instanceof OldHostRefusal) && !(error instanceof OldSessionEnded)) throw error
      fault = left
    }
  await updateMoveSession(ctx.db, did, null)
  return { stage: 'done', fault }
}

/** Ends the turn of the job by throwing `StepPostponed`, so that other moves get theirs. */
export function yieldTurn(): never {
  throw new StepPostponed('continues', 0)
}
