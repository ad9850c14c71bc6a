/** Deletes the former addresses of accounts after 30 days. */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteOldAddresses } from './former-address-store.ts'

export const formerAddressSweep: Sweep = {
  name: 'former-addresses',
  destructive: true,
  intervalSecs: () => DAY_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteOldAddresses(db, clock.now()) }),
}
