/**
 * The release of a share. A mailed code opens the release. Once the delay is over, the share is handed out, and again
 * for an hour, because the first response may have been lost or gone to a stranger. The holder gets a mail each time,
 * and can cancel the release.
 *
 * The row of the share decides everything, within one transaction.
 */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { readShare, shareIndexes } from '../../../protocol/escrow-share.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { accountAt } from '../accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../account-events/account-events.ts'
import {
  clearRelease,
  findShare,
  insertEscrowEvent,
  putRelease,
  noteCollection,
  type Release,
  type StoredShare,
} from './escrow-store.ts'
import { mayRecover, spendRecoveryCode } from './recovery-codes.ts'

export type ReleaseAnswer = { status: 'pending'; collectableAt: Millis } | { status: 'released'; share: Uint8Array }

/** The credential of a request for a share. */
export interface ReleaseRequest {
  /** A handle or a DID. */
  identifier: string
  code?: string
  /** Whether the share can be collected only with the code that opens the release. */
  needsCode?: boolean
}

/**
 * Open a release with a code, or, without one, collect the share of a release whose delay is over. Returns null for
 * every reason to refuse, because all refusals must look the same. Throws if the stored share cannot be read; then
 * nothing changes and the code is not used up.
 */
export const releaseShare = (
  by: By,
  { identifier, code, needsCode = false }: ReleaseRequest,
): Promise<ReleaseAnswer | null> =>
  by.ctx.db.transaction(async (tx) => {
    const account = await accountAt(tx, identifier)
    if (!mayRecover(account)) return null
    if (code !== undefined) return open(by, tx, account.did, code, needsCode)
    const share = await findShare(tx, account.did, by.ctx.clock.now())
    return share?.release && isOpenToAll(share.release) ? collect(by, tx, share) : null
  })

/** Bounded, because each collection adds a row to the log of the account. */
const MAX_COLLECTIONS_WITHOUT_CODE = 100

/** Whether the share is handed out without the code. */
const isOpenToAll = ({ needsCode, collections }: Release): boolean =>
  !needsCode && collections < MAX_COLLECTIONS_WITHOUT_CODE

async function open(by: By, tx: Tx, did: Did, code: string, needsCode: boolean): Promise<ReleaseAnswer | null> {
  const { clock, config } = by.ctx
  const openedBy = opaqueTokenHash(code)
  if (openedBy === null) return null
  // Spend the code before looking for a share, so that asking about an account without a share costs a code too.
  const isUsed = await spendRecoveryCode(by.ctx, tx, did, openedBy)
  const requestedAt = clock.now()
  const share = await findShare(tx, did, requestedAt)
  // The code that opened the release may be shown again, to poll the release or to collect the share.
  if (!isUsed) return share?.release?.openedBy === openedBy ? collect(by, tx, share) : null
  if (share === null) return null
  const { releaseDelaySecs } = config.recovery
  const release: Release = {
    requestedAt,
    collectableAt: requestedAt + releaseDelaySecs * 1000,
    openedBy,
    // Without a delay, only the holder of the code may ever collect the share.
    needsCode: needsCode || releaseDelaySecs === 0,
    collectedAt: null,
    collections: 0,
  }
  await putRelease(tx, did, release)
  await insertEscrowEvent(tx, did, 'release_requested', requestedAt, { delay_secs: releaseDelaySecs })
  await announceIn(tx, by, 'releaseOpened', did, { collectableAt: release.collectableAt })
  return collect(by, tx, { ...share, release })
}

async function collect(by: By, tx: Tx, stored: StoredShare | null): Promise<ReleaseAnswer | null> {
  if (!stored?.release) return null
  const { did, wrapped, release } = stored
  const now = by.ctx.clock.now()
  const { collectableAt, collectedAt } = release
  if (collectedAt === null && now < collectableAt) return { status: 'pending', collectableAt }
  const share = opened(by.ctx, wrapped)
  await noteCollection(tx, did, now)
  await insertEscrowEvent(tx, did, 'released', now)
  await announceIn(tx, by, 'shareReleased', did)
  return { status: 'released', share }
}

function opened({ vault }: Context, wrapped: string): Uint8Array {
  const outcome = readShare(vault.unwrap(wrapped))
  if (!outcome.ok || outcome.share.index !== shareIndexes.escrow) throw new Error('what is in escrow is not share 2')
  return outcome.share.bytes
}

/** End the release of an account's share at its holder's request. Returns false if there is none. */
export const cancelRelease = (by: By, did: Did): Promise<boolean> =>
  by.ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    return endRelease(by, tx, did)
  })

/** End the release of an account's share, in the caller's transaction. Returns false if there is none. */
export async function endRelease(by: By, tx: Tx, did: Did): Promise<boolean> {
  const now = by.ctx.clock.now()
  if (!(await findShare(tx, did, now))?.release) return false
  await clearRelease(tx, did)
  await insertEscrowEvent(tx, did, 'release_cancelled', now)
  await announceIn(tx, by, 'releaseCancelled', did)
  return true
}
