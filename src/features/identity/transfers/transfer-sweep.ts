/** Ends abandoned transfers, and deletes the rows of old ones and of devices that were revoked long ago. */
import { DAY_MILLIS, DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteDevicesRevokedBefore } from '../../access/wallet-devices/wallet-devices.ts'
import { deleteTransfersEndedBefore, listOverdueTransfers } from './transfer-store.ts'
import { expireTransfer, latestEnd } from './transferring.ts'

/** How long an accepted transfer may remain uncompleted. */
const ACCEPTED_MILLIS = 30 * DAY_MILLIS
/** How long the rows show which account was transferred to which device. */
const KEPT_MILLIS = 365 * DAY_MILLIS
const PAGE_TRANSFERS = 100

export const transferSweep: Sweep = {
  name: 'transfers',
  destructive: true,
  intervalSecs: () => DAY_SECS,
  async run(ctx) {
    const { db, clock } = ctx
    const now = clock.now()
    let expired = 0
    for (const { id } of await listOverdueTransfers(db, {
      now,
      latestEnd: latestEnd(now),
      acceptedBefore: now - ACCEPTED_MILLIS,
      limit: PAGE_TRANSFERS,
    })) {
      await expireTransfer(ctx, id)
      expired++
    }
    return {
      expired,
      deleted: await deleteTransfersEndedBefore(db, now - KEPT_MILLIS),
      devices: await deleteDevicesRevokedBefore(db, now - KEPT_MILLIS),
    }
  },
}
