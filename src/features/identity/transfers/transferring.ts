/**
 * The life of a transfer: each change of its state in one transaction, with the devices and sessions that it concerns.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Exchange } from '../../../http/endpoint.ts'
import { endAccess } from '../../../http/hooks.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { shortCode } from '../../../protocol/short-code.ts'
import { accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../account-events/account-events.ts'
import type { TransferParty } from './transfer-party.ts'
import { recordAudit } from '../../operations/operators/operators.ts'
import { addDevice, revokeDevice, revokeDevices, type Device } from '../../access/wallet-devices/wallet-devices.ts'
import {
  findTransfer,
  findTransferByCode,
  findUnendedTransfer,
  insertTransfer,
  updateAccepted,
  updateEnded,
  type Transfer,
} from './transfer-store.ts'

const CODE_LENGTH = 6
const CODE_TTL_SECS = 15 * 60
/** Most attempts to draw a code that no running transfer has. */
const MAX_DRAWS = 6

/** Also true if the end is later than any new transfer could have: it was written before the clock was set back. */
const isExpired = ({ expiresAt }: Transfer, now: Millis): boolean => expiresAt <= now || expiresAt > latestEnd(now)

/** The latest end that a transfer can have. Twice the lifetime, because the clocks of two nodes may differ a little. */
export const latestEnd = (now: Millis): Millis => now + 2 * CODE_TTL_SECS * 1000

/** Begin a transfer. Returns it with its code, or null if one is running. Throws `AccountTakedown`. */
export async function beginTransfer(
  by: Exchange,
  did: Did,
): Promise<(Pick<Transfer, 'id' | 'expiresAt'> & { code: string }) | null> {
  const { ctx } = by
  for (let draw = 1; draw <= MAX_DRAWS; draw++) {
    const now = ctx.clock.now()
    const begun = {
      id: randomUUID(),
      did,
      code: shortCode(CODE_LENGTH, randomBytes),
      createdAt: now,
      expiresAt: now + CODE_TTL_SECS * 1000,
    }
    const outcome = await ctx.db.transaction(async (tx) => {
      await by.revalidate(tx)
      refuseTakendown(await accountStatus(tx, did))
      const before = await findUnendedTransfer(tx, did)
      if (before && !isExpired(before, now)) return 'running'
      if (before) await end(tx, before, 'expired', now)
      if ((await insertTransfer(tx, begun)) === 0) return 'code in use'
      await announceIn(tx, by, 'transferBegun', did)
      return 'begun'
    })
    if (outcome === 'running') return null
    if (outcome === 'code in use') continue
    return begun
  }
  throw new Error(`${MAX_DRAWS} codes in a row were in use`)
}

export type Acceptance =
  | { ok: true; transferId: string; deviceId: string; deviceToken: string }
  | { ok: false; fault: 'no such code' | 'already accepted' }

/** Accept the transfer with this code for a device. One code admits one device. */
export function acceptTransfer(
  by: Exchange,
  code: string,
  device: Pick<Device, 'publicKey' | 'platform'>,
): Promise<Acceptance> {
  const { ctx } = by
  return ctx.db.transaction(async (tx): Promise<Acceptance> => {
    const now = ctx.clock.now()
    const transfer = await findTransferByCode(tx, code)
    if (!transfer) return { ok: false, fault: 'no such code' }
    if (transfer.status === 'accepted') return { ok: false, fault: 'already accepted' }
    const status = await accountStatus(tx, transfer.did)
    if (isExpired(transfer, now)) await end(tx, transfer, 'expired', now)
    if (isExpired(transfer, now) || status === null || status === 'takendown')
      return { ok: false, fault: 'no such code' }
    const added = await addDevice(tx, { owner: transfer.did, ...device, openedWith: requestOrigin(by).openedWith }, now)
    await updateAccepted(tx, transfer.id, added.deviceId, now)
    await announceIn(tx, by, 'transferAccepted', transfer.did)
    return { ok: true, transferId: transfer.id, ...added }
  })
}

/** `ended`: the transfer ended without a device, or does not exist. `stranger`: the caller does not take part in it. */
export type Completion = 'complete' | 'pending' | 'ended' | 'stranger'

/**
 * Complete a transfer that was accepted: end every session of the account, and revoke the tokens of all its devices but
 * the one that accepted. That device may repeat the request. Throws `AccountTakedown`.
 */
export function completeTransfer(by: Exchange, party: TransferParty, id: string): Promise<Completion> {
  const { ctx } = by
  return ctx.db.transaction(async (tx): Promise<Completion> => {
    await by.revalidate(tx)
    const transfer = await findTransfer(tx, id)
    if (!transfer) return 'ended'
    const { did, deviceId, status } = transfer
    const isDevice = 'device' in party
    if (isDevice ? party.device.id !== deviceId : party.did !== did) return 'stranger'
    if (status === 'pending') return 'pending'
    if (status === 'complete') return isDevice ? 'complete' : 'stranger'
    if (status !== 'accepted' || deviceId === null) return isDevice ? 'stranger' : 'ended'
    refuseTakendown(await accountStatus(tx, did))
    const now = ctx.clock.now()
    await updateEnded(tx, id, 'complete', now)
    await endAccess(ctx, tx, did, 'transferred')
    await revokeDevices(tx, did, { except: deviceId, now })
    await announceIn(tx, by, 'transferCompleted', did)
    return 'complete'
  })
}

/**
 * End a transfer without completing it, and revoke the device that accepted it. Returns whether a device had accepted
 * it.
 */
async function end(
  tx: Tx,
  { id, did, deviceId }: Transfer,
  status: 'expired' | 'cancelled',
  now: Millis,
): Promise<boolean> {
  await updateEnded(tx, id, status, now)
  return deviceId !== null && (await revokeDevice(tx, did, deviceId, now)) > 0
}

export type Cancellation = { ok: true; revokedDevice: boolean } | { ok: false; status: 'complete' | 'expired' } | null

/** Cancel a transfer for an operator. Sessions stay. Returns null if there is none with this id. */
export function cancelTransferAs(by: Exchange, actor: string, id: string): Promise<Cancellation> {
  const { ctx } = by
  return ctx.db.transaction(async (tx): Promise<Cancellation> => {
    const transfer = await findTransfer(tx, id)
    if (!transfer) return null
    const { status, did } = transfer
    if (status === 'cancelled') return { ok: true, revokedDevice: false }
    if (status === 'complete' || status === 'expired') return { ok: false, status }
    const now = ctx.clock.now()
    if (status === 'pending' && isExpired(transfer, now)) {
      await end(tx, transfer, 'expired', now)
      return { ok: false, status: 'expired' }
    }
    const revokedDevice = await end(tx, transfer, 'cancelled', now)
    await recordAudit(by, tx, {
      actor,
      action: 'transfer_cancelled',
      subject: did,
      detail: JSON.stringify({ transfer: id, revokedDevice }),
    })
    await announceIn(tx, by, 'transferCancelled', did, { actor })
    return { ok: true, revokedDevice }
  })
}

/** Returns the transfer of an account that is running; null if there is none. */
export async function runningTransfer(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  did: Did,
): Promise<Transfer | null> {
  const transfer = await findUnendedTransfer(db, did)
  return transfer?.status === 'pending' && isExpired(transfer, clock.now()) ? null : transfer
}

/** Cancel the running transfer of an account for its holder. Returns false if there is none. */
export async function cancelTransfer(by: By, did: Did): Promise<boolean> {
  const { ctx } = by
  return ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    const isCancelled = await cancelRunningTransfer(tx, did, ctx.clock.now())
    if (isCancelled) await announceIn(tx, by, 'transferCancelled', did)
    return isCancelled
  })
}

/** Cancel the running transfer of an account, in the caller's transaction. Returns false if there is none. */
export async function cancelRunningTransfer(tx: Tx, did: Did, now: Millis): Promise<boolean> {
  const transfer = await findUnendedTransfer(tx, did)
  if (!transfer) return false
  await end(tx, transfer, 'cancelled', now)
  return true
}

/**
 * Revoke one device of an account for its holder, and end a transfer that the device accepted. Returns false if the
 * account has no such device.
 */
export async function revokeTransferDevice(by: By, did: Did, deviceId: string): Promise<boolean> {
  const { ctx } = by
  return ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    const now = ctx.clock.now()
    if ((await revokeDevice(tx, did, deviceId, now)) === 0) return false
    if ((await findUnendedTransfer(tx, did))?.deviceId === deviceId) await cancelRunningTransfer(tx, did, now)
    await announceIn(tx, by, 'deviceRevoked', did)
    return true
  })
}

/** Cancel the running transfer of an account and revoke all its devices. Returns how many devices were revoked. */
export async function endTransferCredentials(tx: Tx, did: Did, now: Millis): Promise<number> {
  const revoked = await revokeDevices(tx, did, { now })
  await cancelRunningTransfer(tx, did, now)
  return revoked
}

/** End a transfer that has expired but has not ended yet. */
export async function expireTransfer(ctx: Context, id: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const transfer = await findTransfer(tx, id)
    if (transfer?.status === 'pending' || transfer?.status === 'accepted')
      await end(tx, transfer, 'expired', ctx.clock.now())
  })
}
