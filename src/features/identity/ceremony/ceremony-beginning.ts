/**
 * Begins ceremonies: one transaction reserves the names and spends the invite, so that a race leaves one ceremony and a
 * refusal leaves nothing.
 */
import { randomUUID } from 'node:crypto'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { claimCodeRedeemed, invalidClaim, notFound, Refusal } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { Handle, Millis } from '../../../protocol/identifiers.ts'
import { passRangeGate } from '../signup/signup.ts'
import { AddressTaken, withinRefusedAddresses } from '../addresses/addresses.ts'
import { handleNotAvailable, reservedFor, reserveName, setReservedUntil } from '../handles/handles.ts'
import {
  hasUsedInvite,
  insertClaimCodes,
  inviteBoundTo,
  isInviteUsable,
  isInviteUsedUp,
  useInvite,
} from '../invites/invites.ts'
import { addDevice, deleteDevicesOf, devicesOf } from '../../access/wallet-devices/wallet-devices.ts'
import { keptUntil, SESSION_SECS } from './ceremony-state.ts'
import { findCeremony, insertCeremony, replaceCeremonySession, type Ceremony } from './ceremony-store.ts'

export const tiers = ['free', 'pro', 'business'] as const
export type Tier = (typeof tiers)[number]

/** Hours within which the code of an account that an operator has provisioned can be redeemed. */
export const BOUND_CODE_HOURS = 24

interface Names {
  handle: Handle
  email: string
}

/** A device as the wallet describes it. */
interface WalletDevice {
  devicePublicKey: string
  platform: string
}

/** Throws `AddressTaken` or `HandleNotAvailable` (409). */
async function open(
  ctx: Context,
  tx: Tx,
  { handle, email, tier, inviteCode }: Names & { tier: Tier; inviteCode: string },
): Promise<Ceremony> {
  const begun = { id: randomUUID(), handle, email, tier, inviteCode, createdAt: ctx.clock.now() }
  const ceremony: Ceremony = { ...begun, sessionExpiresAt: null, key: null, did: null, registeredAt: null }
  const taken = await reserveName(ctx, tx, { handle, email, owner: begun.id, until: keptUntil(ceremony) })
  if (taken === 'email')
    throw new AddressTaken(email, new Refusal(409, 'AccountExists', 'The email address belongs to another account'))
  if (taken === 'handle') throw handleNotAvailable(handle)
  await insertCeremony(tx, begun)
  return ceremony
}

/**
 * Begin a ceremony for another person, on behalf of an operator. `code` is a new claim code, which is bound to the
 * ceremony. Returns the id. Throws `AddressTaken` or `HandleNotAvailable` (409), and a unique violation if the code
 * exists.
 */
export async function provision(
  ctx: Context,
  tx: Tx,
  names: Names & { tier: Tier },
  { code, createdBy }: { code: string; createdBy: string },
): Promise<string> {
  const { id, createdAt } = await open(ctx, tx, { ...names, inviteCode: code })
  const expiresAt = createdAt + BOUND_CODE_HOURS * HOUR_MILLIS
  await insertClaimCodes(tx, [code], { createdBy, boundTo: id, now: createdAt, expiresAt })
  return id
}

export interface BegunCeremony {
  accountId: string
  deviceId: string
  deviceToken: string
  sessionToken: string
}

/**
 * Begin a ceremony, or come back to it: with the same code, names and device, the wallet gets a new session, and the
 * previous one becomes void. A code that an operator bound to these names also begins the ceremony.
 *
 * Throws `AccountExists`, `HandleNotAvailable` and `ClaimCodeRedeemed` (409), `NotFound` for any other code that cannot
 * be used, and `RateLimitExceeded` after too many taken addresses.
 */
export function beginCeremony(
  exchange: Exchange,
  wanted: Names & WalletDevice & { claimCode: string },
): Promise<BegunCeremony> {
  const { ctx } = exchange
  return withinRefusedAddresses(exchange, () =>
    ctx.db.transaction(async (tx) => {
      const now = ctx.clock.now()
      const ceremony = (await comeBack(tx, wanted, now)) ?? (await beginAnew(exchange, tx, wanted, now))
      const { id } = ceremony
      await deleteDevicesOf(tx, id)
      const device = await addDevice(tx, deviceOf(exchange, id, wanted), now)
      const { token, hash } = newToken()
      const sessionExpiresAt = now + SESSION_SECS * 1000
      await replaceCeremonySession(tx, id, hash, sessionExpiresAt)
      await setReservedUntil(tx, id, keptUntil({ ...ceremony, sessionExpiresAt }))
      return { accountId: id, ...device, sessionToken: token }
    }),
  )
}

const deviceOf = (exchange: Exchange, owner: string, { devicePublicKey: publicKey, platform }: WalletDevice) => ({
  owner,
  publicKey,
  platform,
  openedWith: requestOrigin(exchange).openedWith,
})

/** Returns null if the names are not those of a ceremony, or if the ceremony has another code or another device. */
async function comeBack(
  tx: Tx,
  { handle, email, claimCode, devicePublicKey }: Names & WalletDevice & { claimCode: string },
  now: Millis,
): Promise<Ceremony | null> {
  const id = await reservedFor(tx, handle, now)
  const ceremony = id === null ? null : await findCeremony(tx, id)
  if (ceremony?.email !== email || ceremony.inviteCode !== claimCode) return null
  if (await hasUsedInvite(tx, claimCode, ceremony.id))
    return (await devicesOf(tx, ceremony.id)).some(({ publicKey }) => publicKey === devicePublicKey) ? ceremony : null
  await redeem(tx, claimCode, ceremony, now, ceremony.id)
  return ceremony
}

async function beginAnew(
  exchange: Exchange,
  tx: Tx,
  wanted: Names & { claimCode: string },
  now: Millis,
): Promise<Ceremony> {
  const ceremony = await open(exchange.ctx, tx, { ...wanted, tier: 'free', inviteCode: wanted.claimCode })
  await redeem(tx, wanted.claimCode, ceremony, now)
  await passRangeGate(exchange, tx)
  return ceremony
}

async function redeem(
  tx: Tx,
  code: string,
  { id, handle }: Pick<Ceremony, 'id' | 'handle'>,
  now: Millis,
  boundTo?: string,
): Promise<void> {
  if (await isInviteUsable(tx, code, { handle, now, boundTo })) return useInvite(tx, code, id, now)
  throw (await isInviteUsedUp(tx, code, now))
    ? claimCodeRedeemed()
    : notFound('The code is unknown, has expired or was revoked')
}

/**
 * Spend a code that an operator bound to a ceremony, for a device. Throws `InvalidClaim`, in the same words for every
 * code that cannot be used.
 */
export function redeemForDevice(
  exchange: Exchange,
  { claimCode, ...device }: WalletDevice & { claimCode: string },
): Promise<{ accountId: string; deviceId: string; deviceToken: string }> {
  const { db, clock } = exchange.ctx
  return db.transaction(async (tx) => {
    const now = clock.now()
    const id = await inviteBoundTo(tx, claimCode)
    const ceremony = id === null ? null : await findCeremony(tx, id)
    const isKept = ceremony !== null && (await reservedFor(tx, ceremony.handle, now)) === ceremony.id
    if (!isKept || !(await isInviteUsable(tx, claimCode, { ...ceremony, now, boundTo: ceremony.id })))
      throw invalidClaim('The code is not valid')
    await useInvite(tx, claimCode, ceremony.id, now)
    return { accountId: ceremony.id, ...(await addDevice(tx, deviceOf(exchange, ceremony.id, device), now)) }
  })
}
