/**
 * Ends abandoned ceremonies. If the identity of a ceremony may have reached the directory, the sweep looks it up first,
 * because a ceremony whose identity the directory has is kept for longer.
 */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import { Round } from '../../../base/round.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { deleteReservationsOf } from '../handles/handles.ts'
import { deleteDevicesOf } from '../../access/wallet-devices/wallet-devices.ts'
import { QUIET_MILLIS, REGISTERED_QUIET_MILLIS } from './ceremony-state.ts'
import { deleteQuietCeremony, listQuietCeremonies, type Ceremony } from './ceremony-store.ts'
import { noteRegistered } from './registration.ts'

const PAGE_CEREMONIES = 100
/** How long before the names become free the sweep starts to look up an identity that the directory may have. */
const ASKED_AHEAD_MILLIS = DAY_MILLIS

/** Rounds, so that identities whose look-up keeps failing do not keep a pass from the others. */
const rounds = perContext(() => ({
  doubtful: new Round<Ceremony>(),
  unregistered: new Round<Ceremony>(),
  registered: new Round<Ceremony>(),
}))

export const ceremonySweep: Sweep = {
  name: 'ceremonies',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  async run(ctx, stopping) {
    const report = { seen: 0, ended: 0, registered: 0, failed: 0 }
    const now = ctx.clock.now()
    const choices = [
      // While their names are still kept.
      { kind: 'doubtful', before: now - QUIET_MILLIS + ASKED_AHEAD_MILLIS, ends: false },
      { kind: 'unregistered', before: now - QUIET_MILLIS, ends: true },
      { kind: 'registered', before: now - REGISTERED_QUIET_MILLIS, ends: true },
    ] as const
    for (const { kind, before, ends } of choices)
      for (const ceremony of await rounds(ctx)[kind].next(PAGE_CEREMONIES, (after) =>
        listQuietCeremonies(ctx.db, { kind, before, after, limit: PAGE_CEREMONIES }),
      )) {
        stopping.throwIfAborted()
        report.seen++
        try {
          if (await isRegisteredSince(ctx, ceremony)) report.registered++
          else if (ends && (await end(ctx, ceremony, before))) report.ended++
        } catch (error) {
          report.failed++
          ctx.log.warn('could not check or end a ceremony; will retry in the next pass', { did: ceremony.did, error })
        }
      }
    return report
  },
}

/** Whether the directory has the identity although this server never learned it. Throws `PlcDirectoryError`. */
async function isRegisteredSince(ctx: Context, ceremony: Ceremony): Promise<boolean> {
  if (ceremony.registeredAt !== null || ceremony.did === null || !isPlcDid(ceremony.did)) return false
  if ((await ctx.plc.auditLog(ceremony.did)) === null) return false
  await noteRegistered(ctx, ceremony)
  return true
}

/** Returns false if its wallet has come back in the meantime. */
const end = ({ db }: Context, { id }: Ceremony, before: Millis): Promise<boolean> =>
  db.transaction(async (tx) => {
    if ((await deleteQuietCeremony(tx, id, before)) === 0) return false
    await deleteDevicesOf(tx, id)
    await deleteReservationsOf(tx, id)
    return true
  })
