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
  async run(ctx, stopping) {
    const { db, clock } = ctx
    const now = clock.now()
    const overdue = { now, latestEnd: latestEnd(now), acceptedBefore: now - ACCEPTED_MILLIS, limit: PAGE_TRANSFERS }
    let expired = 0
    for (let found = PAGE_TRANSFERS; found === PAGE_TRANSFERS; expired += found) {
      stopping.throwIfAborted()
      const page = await listOverdueTransfers(db, overdue)
      for (const { id } of page) await expireTransfer(ctx, id)
      found = page.length
    }
    return {
      expired,
      deleted: await deleteTransfersEndedBefore(db, now - KEPT_MILLIS),
      devices: await deleteDevicesRevokedBefore(db, now - KEPT_MILLIS),
    }
  },
}
