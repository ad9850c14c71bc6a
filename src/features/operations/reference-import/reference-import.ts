/**
 * Moves a whole server of the reference into this one, in place: `holdfast import-reference`.
 *
 * The order of the steps lets the command be killed anywhere and run again. First the numbers of the event log are
 * raised above those of the old server, so that no number is assigned twice, and the keys of the old server are stored.
 * Then accounts arrive one by one, each in one transaction that also notes its arrival. Then recent events, codes and
 * reserved keys follow, which may be written twice, and browsers, which are written once. The end is noted last.
 * Nothing in the old folder is changed.
 */
import { concurrently } from '../../../base/concurrently.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Feature } from '../../../http/feature.ts'
import type { Context } from '../../../platform/context.ts'
import { inPages, inPieces } from '../../../platform/database/database.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { keepFormerIssuer, REFRESH_TTL_SECS } from '../../access/sessions/sessions.ts'
import { keepBrowser } from '../../access/pages/pages.ts'
import { blobBytes } from '../../data/blobs/blobs.ts'
import { headSeq, keepEvents, raisePruned, raiseSeq } from '../../data/firehose/firehose.ts'
import { wrapAccountKey } from '../../identity/account-keys/account-keys.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { isNameTaken } from '../../identity/handles/handles.ts'
import { keepFormerRotationKey } from '../../identity/identity/identity.ts'
import { keepReservedKey } from '../../identity/reserved-keys/reserved-keys.ts'
import { keepInvites } from '../../identity/invites/invites.ts'
import { bringAccount } from './account-arrival.ts'
import { isFaultOfAccount } from './former-repo.ts'
import { formerStateOf } from './former-state.ts'
import { accountsOf, browsersIn, invitesOf, isAccountOf, type FormerAccount } from './reference-accounts.ts'
import { ReferenceActor } from './reference-actor.ts'
import { formerBlobs, type FormerBlobs } from './reference-blobs.ts'
import { eventsFrom, firstSeqSinceOf, lastSeqOf } from './reference-events.ts'
import { reservedKeysOf, type ReferenceFolder } from './reference-folder.ts'
import {
  arrivalsAfter,
  findArrival,
  findMove,
  finishMove,
  insertMove,
  noteBrowsers,
  type Arrival,
  type Move,
} from './reference-import-store.ts'
import { ACCOUNTS_AT_ONCE, belongingsOf, promisedTo, type Terms } from './reference-survey.ts'

export { openReferenceFolder, type ReferenceFolder } from './reference-folder.ts'
export { mailServer, parseReferenceEnv, secretKeys, translateReferenceEnv, type Setting } from './reference-env.ts'
export { requireBlobFolder, survey, termsOf, type Survey, type Terms } from './reference-survey.ts'

/** Arrivals per page. */
const ARRIVALS = 500

export const referenceImport: Feature = { name: 'reference-import' }

export interface Moving {
  folder: ReferenceFolder
  terms: Terms
  /** Called with each fault of an account or a blob. */
  onFault(fault: string): void
  /** Called after each account, with the number of accounts so far. */
  onProgress(accounts: number): void
}

export interface Moved {
  accounts: number
  /** Accounts that an earlier run brought here. */
  before: number
  records: number
  blobs: number
  /** Accounts and blobs that were not brought here. */
  missingAccounts: number
  missingBlobs: number
  /** The number after which the event log continues. */
  seq: number
}

/**
 * Bring everything here. Faults of single accounts are reported to `onFault`, and a later run tries these accounts
 * again. Throws `OperatorError` if the old server has moved here before, or has run since the move began. Can be called
 * again after any error.
 */
export async function importReference(ctx: Context, moving: Moving): Promise<Moved> {
  await blobBytes.storage(ctx).prepare({ mustReach: true })
  const move = await begin(ctx, moving)
  const moved = await bringAccounts(ctx, moving)
  moved.missingAccounts += await reportGone(ctx, moving)
  await bringRest(ctx, moving, move)
  moving.folder.requireUnchanged()
  if (moved.missingAccounts === 0) await ctx.db.transaction((tx) => finishMove(tx, move.serverDid, ctx.clock.now()))
  return { ...moved, seq: await headSeq(ctx.db) }
}

/** Raise the event numbers, and store the keys of the old server. */
async function begin(ctx: Context, { folder, terms }: Moving): Promise<Move> {
  const { serverDid, sessionKey, rotationKey } = terms
  return ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now()
    const known = await findMove(tx, serverDid)
    if (known !== null && known.finishedAt !== null)
      throw new OperatorError(
        `${serverDid} has already moved in, on ${wireTime(known.finishedAt)}: there is nothing to do`,
      )
    const last = lastSeqOf(folder.sequencer)
    if (known !== null && last > known.lastSeq)
      throw new OperatorError('the old server has run since the move began: start again with an empty data folder')
    if (sessionKey !== null) await keepFormerIssuer(ctx, tx, { key: sessionKey, until: now + REFRESH_TTL_SECS * 1000 })
    if (rotationKey !== null) await keepFormerRotationKey(ctx, tx, 'k256', rotationKey)
    if (known !== null) return known
    const head = await headSeq(tx)
    const from = firstSeqSinceOf(folder.sequencer, terms.eventsSince)
    // Events keep their numbers, so those of the old server can only be added below all others.
    const isFollowed = from !== null && head < from
    const move = { serverDid, lastSeq: last, eventsFrom: isFollowed ? from : null, browsersAt: null, finishedAt: null }
    if (last > head) {
      await raiseSeq(tx, last)
      await raisePruned(tx, move.eventsFrom === null ? last : move.eventsFrom - 1)
    }
    await insertMove(tx, move, now)
    return move
  })
}

async function bringAccounts(ctx: Context, { folder, terms, onFault, onProgress }: Moving): Promise<Moved> {
  const moved: Moved = { accounts: 0, before: 0, records: 0, blobs: 0, missingAccounts: 0, missingBlobs: 0, seq: 0 }
  const blobs = formerBlobs(folder)
  await concurrently(accountsOf(folder.accounts), ACCOUNTS_AT_ONCE, async (account) => {
    const { did } = account
    const arrival = await findArrival(ctx.db, did)
    const reason = await (arrival === null ? obstacleTo(ctx, account) : staleness(folder, arrival))
    if (reason !== null) {
      moved.missingAccounts++
      onFault(`${did}: ${reason}`)
    } else if (arrival !== null) moved.before++
    else await bringOne({ ctx, folder, terms, blobs, onFault }, account, moved)
    onProgress(moved.accounts + moved.before + moved.missingAccounts)
  })
  return moved
}

interface Bringing extends Pick<Moving, 'folder' | 'terms' | 'onFault'> {
  ctx: Context
  blobs: FormerBlobs
}

async function bringOne(
  { ctx, folder, terms, blobs, onFault }: Bringing,
  account: FormerAccount,
  moved: Moved,
): Promise<void> {
  const { did } = account
  try {
    const {
      records,
      blobs: arrivedBlobs,
      blobFaults,
    } = await ReferenceActor.whileOpen(folder, did, (actor) =>
      bringAccount(
        ctx,
        {
          ...belongingsOf(folder, account, terms, ctx.clock.now()),
          formerState: formerStateOf(folder, actor, did),
        },
        actor,
        blobs,
      ),
    )
    moved.accounts++
    moved.records += records
    moved.blobs += arrivedBlobs
    moved.missingBlobs += blobFaults.length
    for (const fault of blobFaults) onFault(`${did}: ${fault}`)
  } catch (error) {
    if (!isFaultOfAccount(error)) throw error
    moved.missingAccounts++
    onFault(`${did}: ${error.message}`)
  }
}

/** Returns why an account cannot come here; null if it can. */
export async function obstacleTo(
  { db, clock }: Context,
  { did, handle, email }: FormerAccount,
): Promise<string | null> {
  const now = clock.now()
  if ((await accountOf(db, did)) !== null) return 'an account with this DID is here already'
  if (handle !== null && (await isNameTaken.handle(db, handle, now))) return `the handle ${handle} is taken here`
  if (email !== null && (await isNameTaken.email(db, email, now))) return 'its email address is taken here'
  return null
}

/** Returns a fault if the old server has written to an account since it came here; null otherwise. */
async function staleness(folder: ReferenceFolder, { did, formerState }: Arrival): Promise<string | null> {
  if (formerState === null) return null
  try {
    const state = await ReferenceActor.whileOpen(folder, did, async (actor) => formerStateOf(folder, actor, did))
    return state === formerState
      ? null
      : 'the old server has written to it since it came here: start again with an empty data folder'
  } catch (error) {
    if (!isFaultOfAccount(error)) throw error
    return error.message
  }
}

/** Report the accounts that are here, but no longer at the old server. Returns how many. */
async function reportGone({ db }: Context, { folder, onFault }: Moving): Promise<number> {
  let gone = 0
  const pages = inPages(ARRIVALS, { did: '' }, ({ did }, limit) => arrivalsAfter(db, did, limit))
  for await (const page of pages)
    for (const { did } of page.filter((arrival) => !isAccountOf(folder.accounts, arrival.did))) {
      gone++
      onFault(`${did}: the old server has deleted it since it came here: start again with an empty data folder`)
    }
  return gone
}

/** Bring what belongs to no single account. Everything but the browsers may be written twice. */
async function bringRest(
  ctx: Context,
  { folder, onFault }: Moving,
  { serverDid, eventsFrom: from, browsersAt }: Move,
): Promise<void> {
  const { clock, db } = ctx
  if (from !== null)
    for (const events of eventsFrom(folder.sequencer, from, onFault))
      await db.transaction((tx) => keepEvents(tx, events))
  for (const some of inPieces(invitesOf(folder.accounts))) await db.transaction((tx) => keepInvites(tx, some))
  if (browsersAt === null)
    await db.transaction(async (tx) => {
      const now = clock.now()
      for (const browser of browsersIn(folder.accounts, now)) await keepBrowser(tx, browser)
      await noteBrowsers(tx, serverDid, now)
    })
  for (const { name, secret } of reservedKeysOf(folder, onFault)) {
    const key = wrapAccountKey(ctx, 'k256', secret)
    await db.transaction((tx) => keepReservedKey(tx, key, promisedTo(name), clock.now()))
  }
}
