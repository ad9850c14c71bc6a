/** Ends transfers that nobody ended, and deletes the rows of old ones and of devices that were revoked long ago. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteDevicesRevokedBefore } from '../wallet-devices/wallet-devices.ts'
import { deleteTransfersEndedBefore, listOverdueTransfers } from './transfer-store.ts'
import { expireTransfer } from './transferring.ts'

const DAY_MILLIS = 86_400_000
/** How long a device that accepted a transfer may take until it is completed. */
const ACCEPTED_MILLIS = 30 * DAY_MILLIS
/** How long it can be seen who had an account transferred to which device. */
const KEPT_MILLIS = 365 * DAY_MILLIS
const PAGE_TRANSFERS = 100

export const transferSweep: Sweep = {
  name: 'transfers',
  destructive: true,
  intervalSecs: () => 86_400,
  async run(ctx) {
    const { db, clock } = ctx
    const now = clock.now()
    let expired = 0
    for (const { id } of await listOverdueTransfers(db, { now, acceptedBefore: now - ACCEPTED_MILLIS, limit: PAGE_TRANSFERS })) {
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
