/**
 * The release of a share: a code by mail opens it, and once the delay is over, the share is handed out, once. Until
 * then its holder, who gets a mail, can cancel it.
 *
 * Everything is decided by the row of the share, within one transaction: of two who collect, one gets the share.
 */
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { readShare, shareIndexes } from '../../protocol/escrow-share.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import { accountAt, announce, announceIn, type By } from '../accounts/accounts.ts'
import { clearRelease, findShare, insertEscrowEvent, putRelease, type Release, type StoredShare } from './escrow-store.ts'
import { mayRecover, spendRecoveryCode } from './recovery-codes.ts'

export type ReleaseAnswer = { status: 'pending'; collectableAt: Millis } | { status: 'released'; share: Uint8Array }

/**
 * Open a release with a code, or, without one, collect the share of a release whose delay is over. Returns null for
 * every reason to refuse, which must all look the same. Throws if the stored share cannot be read; nothing is changed
 * then, and the code is not used up.
 */
export const releaseShare = (by: By, identifier: string, code?: string): Promise<ReleaseAnswer | null> =>
  by.ctx.db.transaction(async (tx) => {
    const account = await accountAt(tx, identifier)
    if (!mayRecover(account)) return null
    return code === undefined ? collect(by, tx, await findShare(tx, account.did)) : open(by, tx, account.did, code)
  })

async function open(by: By, tx: Tx, did: Did, code: string): Promise<ReleaseAnswer | null> {
  const { clock, config } = by.ctx
  const openedBy = opaqueTokenHash(code)
  if (openedBy === null) return null
  // Before looking for a share, so that the answer for an account without one costs a code too.
  const isUsed = await spendRecoveryCode(by.ctx, tx, did, openedBy)
  const share = await findShare(tx, did)
  // Shown again, the code that opened the release asks how it stands.
  if (!isUsed) return share?.release?.openedBy === openedBy ? collect(by, tx, share) : null
  if (share === null) return null
  const { releaseDelaySecs } = config.recovery
  const requestedAt = clock.now()
  const release: Release = { requestedAt, collectableAt: requestedAt + releaseDelaySecs * 1000, openedBy }
  await putRelease(tx, did, release)
  await insertEscrowEvent(tx, did, 'release_requested', requestedAt, { delay_secs: releaseDelaySecs })
  await announceIn(tx, by, 'releaseOpened', did, { collectableAt: release.collectableAt })
  return collect(by, tx, { ...share, release })
}

async function collect(by: By, tx: Tx, stored: StoredShare | null): Promise<ReleaseAnswer | null> {
  if (!stored?.release) return null
  const { did, wrapped, release } = stored
  const now = by.ctx.clock.now()
  if (now < release.collectableAt) return { status: 'pending', collectableAt: release.collectableAt }
  const share = opened(by.ctx, wrapped)
  await clearRelease(tx, did)
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
export async function cancelRelease(by: By, did: Did): Promise<boolean> {
  const { ctx } = by
  const isCancelled = await ctx.db.transaction(async (tx) => {
    if ((await clearRelease(tx, did)) === 0) return false
    await insertEscrowEvent(tx, did, 'release_cancelled', ctx.clock.now())
    return true
  })
  if (isCancelled) announce(by, 'releaseCancelled', did)
  return isCancelled
}
