/** Compares the identity of one account with the directory. */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { claimedHandle } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { foreignChange, type ForeignChange } from '../../../protocol/plc-changes.ts'
import {
  headOf,
  operationCid,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  stateOf,
  type LogOperation,
} from '../../../protocol/plc.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { enqueuePush } from '../../push/notifications/notifications.ts'
import { announceIn, changedWords } from '../account-events/account-events.ts'
import { signingKeyOf } from '../account-keys/account-keys.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import { ownOperations, resolveDid } from '../identity/identity.ts'
import { putIdentity, watchedIdentity, type Misfit, type WatchedIdentity } from './watched-identity-store.ts'

/**
 * Whether the directory cannot be reached, or asks this server to wait. An answer that is too long comes from a
 * directory that can be reached.
 */
const isAway = (error: unknown): boolean =>
  error instanceof PlcDirectoryError &&
  (error.status === null ? !isTooLong(error.cause) : error.status === 429 || error.status >= 500)

/** Anyone who can change an identity can make its log longer than this server reads. */
const isTooLong = (cause: unknown): boolean => cause instanceof OutboundError && cause.fault === 'too-large'

/**
 * Compare the identity of an account with what the directory said last time, and notify the holder of operations that
 * did not come from here. The first look accepts the identity as it is. Returns the outcome: `failed` if the answer is
 * not a valid log.
 *
 * Throws `PlcDirectoryError` if the directory cannot be reached.
 */
export async function lookAt(ctx: Context, did: Did): Promise<'same' | 'changed' | 'failed'> {
  try {
    return await look(ctx, did)
  } catch (error) {
    if (isAway(error) || !(error instanceof PlcDirectoryError || error instanceof FalseLog)) throw error
    ctx.log.warn('identity not compared', { did, error })
    return 'failed'
  }
}

/** The directory's log contradicts what the directory said before. */
class FalseLog extends Error {}

async function look(ctx: Context, did: Did): Promise<'same' | 'changed'> {
  const { db, plc } = ctx
  const known = await watchedIdentity(db, did)
  const last = await plc.lastOperation(did)
  const account = await accountOf(db, did)
  if (account === null) return 'same'
  // Keep the known head while the directory does not know the identity, so that operations in between are found once it
  // knows the identity again.
  const newest = last === null ? (known?.head ?? NONE) : operationCid(last).toString()
  const misfit = await misfitOf(ctx, account, last)
  if (known !== null && known.head === newest && known.misfit === misfit) return 'same'
  const isNews = known !== null && known.head !== NONE && known.head !== newest
  const { head, past, news } = isNews
    ? await changeSince(ctx, known)
    : { head: newest, past: known?.change ?? null, news: null }
  const isKept = await db.transaction((tx) => keep(ctx, tx, known, { did, head, misfit, change: news ?? past }, news))
  if (!isKept || news === null) return 'same'
  await resolveDid(ctx, did, { live: true })
  return 'changed'
}

/** Stands for the newest operation of an identity that the directory does not know. */
const NONE = ''

/** Returns how the newest operation does not fit the account; null if it fits. */
async function misfitOf(ctx: Context, account: Account, last: LogOperation | null): Promise<Misfit | null> {
  const state = last && stateOf(last)
  if (state === null) return 'ended'
  const { did, handle } = account
  if (state.services[PDS_SERVICE_NAME]?.endpoint !== ctx.config.publicUrl) return 'server'
  const key = await signingKeyOf(ctx, ctx.db, did)
  if (key === null || state.verificationMethods[SIGNING_KEY_NAME] !== formatDidKey(key.publicKey)) return 'signing-key'
  return handle === null || claimedHandle(state) === handle ? null : 'handle'
}

/**
 * Returns the known change as `past`, unless it has been undone, and the change since as `news`. `head` is the newest
 * operation in the log, which may be newer than the one that the directory named before.
 */
async function changeSince(
  ctx: Context,
  { did, head, change }: WatchedIdentity,
): Promise<{ head: string; past: ForeignChange | null; news: ForeignChange | null }> {
  const log = (await ctx.plc.auditLog(did)) ?? []
  const place = log.findIndex(({ cid }) => cid === head)
  if (place < 0) throw new FalseLog('the log of the directory lacks an operation that it had')
  if (log.slice(place).some(({ cid, operation }) => operationCid(operation).toString() !== cid))
    throw new FalseLog('the log of the directory has a wrong CID')
  const isUndone = log.find(({ cid }) => cid === change?.cid)?.nullified ?? true
  return {
    head: headOf(log)?.cid ?? head,
    past: isUndone ? null : change,
    news: foreignChange(log, head, await ownOperations(ctx.db, did)),
  }
}

/** Store what was found, and notify the holder. Returns false if another node was faster. */
async function keep(
  ctx: Context,
  tx: Tx,
  known: WatchedIdentity | null,
  found: WatchedIdentity,
  news: ForeignChange | null,
): Promise<boolean> {
  const { did, misfit } = found
  const account = await accountOf(tx, did)
  if (account === null || (await watchedIdentity(tx, did))?.head !== known?.head) return false
  await putIdentity(tx, found)
  if (news === null) return true
  await announceIn(tx, { ctx }, 'identityChangedElsewhere', did, { change: news })
  await enqueuePush(ctx, tx, did, {
    type: 'identity_changed',
    title: 'Your identity was changed elsewhere',
    body: `It changed: ${changedWords(news)}. If this was not you, undo it within 72 hours.`,
  })
  // Tells services that have cached the identity. For an account that has left, its new server does that.
  const isActive = account.deactivatedAt === null && account.takedownRef === null
  if (isActive && misfit !== 'server') await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
  return true
}
