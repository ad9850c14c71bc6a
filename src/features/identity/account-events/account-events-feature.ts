/** The events of accounts, the mails about them, known places, and the addresses that accounts had. */
import type { Feature } from '../../../http/feature.ts'
import { deleteEventsOf, forgetSubject } from './account-event-store.ts'
import { accountEventSweep } from './account-event-sweep.ts'
import { noticeStep } from './account-events.ts'
import { deleteFormerAddressesOf, keepFormerAddress } from './former-address-store.ts'
import { formerAddressSweep } from './former-address-sweep.ts'
import { deletePlacesOf } from './known-place-store.ts'

export const accountEvents: Feature = {
  name: 'account-events',
  sweeps: [formerAddressSweep, accountEventSweep],
  steps: [noticeStep],
  async forgetAccount(_, tx, did) {
    await deleteEventsOf(tx, did)
    await forgetSubject(tx, did)
    await deletePlacesOf(tx, did)
    await deleteFormerAddressesOf(tx, did)
  },
  async endAddress({ clock }, tx, did, { before, after }) {
    if (before !== null && before !== after) await keepFormerAddress(tx, did, before, clock.now())
  },
  async endAccess(_, tx, did, why) {
    // An intruder may have signed in from some of the known places.
    if (why !== 'new_password' && why !== 'transferred') await deletePlacesOf(tx, did)
  },
}
