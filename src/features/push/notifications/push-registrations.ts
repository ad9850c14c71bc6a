/**
 * Registers and unregisters devices for pushes. The relay is told later (`handle-steps.ts`), so no request waits for
 * it.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountStatus, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { orderHandle, releaseHandle } from './handle-steps.ts'
import {
  deleteRegistrations,
  findRegistration,
  putRegistration,
  registrationsOf,
  type PushRegistration,
  type RegistrationKey,
  type RegistrationOwner,
} from './push-registration-store.ts'

/** Most devices of one account. A further device replaces the one that registered longest ago. */
const MAX_DEVICES = 20

export type PushDevice = Omit<PushRegistration, 'owner' | 'handle' | 'renewedAt' | 'registeredAt' | 'pushedAt'>

/** Register a device of an account, or replace its registration. Throws `AccountNotFound` or `AccountTakedown`. */
export async function registerDevice({ ctx, revalidate }: Exchange, did: Did, device: PushDevice): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    refuseTakendown(await accountStatus(tx, did))
    const registrations = await registrationsOf(tx, did)
    const others = registrations.filter(({ deviceId }) => deviceId !== device.deviceId)
    await removeAll(ctx, tx, did, others.slice(0, Math.max(0, others.length + 1 - MAX_DEVICES)))
    const before = registrations.find(({ deviceId }) => deviceId === device.deviceId)
    await replace(ctx, tx, before ?? null, { ...device, owner: did })
  })
}

/**
 * Register the device of an operator. Returns false if `isPaired` reports that the device has been revoked meanwhile.
 */
export const registerOperatorDevice = (
  ctx: Context,
  device: PushDevice,
  isPaired: (tx: Tx) => Promise<boolean>,
): Promise<boolean> =>
  ctx.db.transaction(async (tx) => {
    if (!(await isPaired(tx))) return false
    const owned = { ...device, owner: 'operators' } as const
    await replace(ctx, tx, await findRegistration(tx, owned), owned)
    return true
  })

async function replace(
  ctx: Context,
  tx: Tx,
  before: PushRegistration | null,
  device: PushDevice & Pick<PushRegistration, 'owner'>,
): Promise<void> {
  await putRegistration(tx, { ...device, registeredAt: ctx.clock.now() })
  // If the token stays the same, the relay itself replaces the handle.
  if (before && before.token !== device.token) await releaseHandle(ctx, tx, before)
  await orderHandle(ctx, tx, device)
}

async function removeAll(
  ctx: Context,
  tx: Tx,
  owner: RegistrationOwner,
  registrations: readonly PushRegistration[],
): Promise<void> {
  if (registrations.length === 0) return
  await deleteRegistrations(
    tx,
    owner,
    registrations.map(({ deviceId }) => deviceId),
  )
  for (const registration of registrations) await releaseHandle(ctx, tx, registration)
}

/** Remove the registration of a device. Returns false if there is none. */
export async function removeRegistration(ctx: Context, tx: Tx, key: RegistrationKey): Promise<boolean> {
  const found = await findRegistration(tx, key)
  if (found) await removeAll(ctx, tx, key.owner, [found])
  return found !== null
}

/** Remove the registrations of an account, in the caller's transaction. Returns how many. */
export async function removeRegistrationsOf(ctx: Context, tx: Tx, did: Did): Promise<number> {
  const registrations = await registrationsOf(tx, did)
  await removeAll(ctx, tx, did, registrations)
  return registrations.length
}
