/** The token of a device. With it, a device can ask where the server is and complete a transfer, but nothing else. */
import type { Credential } from '../../../http/credential.ts'
import type { Guard } from '../../../http/endpoint.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { presentedOpaqueToken, strict, taking } from '../../../http/credential-guards.ts'
import { isUseDue } from '../../../platform/running/last-use.ts'
import { findDeviceByToken, noteDeviceUse, type Device } from './wallet-device-store.ts'

export interface DeviceCaller {
  device: Device
}

/** Throws `AuthenticationRequired` if the token is unknown or revoked. */
export const deviceCredential: Credential<DeviceCaller> = {
  name: 'device',
  recognises: presentedOpaqueToken,
  async check({ ctx }, tokenHash) {
    const device = await findDeviceByToken(ctx.db, tokenHash)
    if (device === null) throw authenticationRequired('The device is unknown or was revoked')
    const now = ctx.clock.now()
    if (isUseDue(device.usedAt, now))
      ctx.background.run('note of the use of a device', () => noteDeviceUse(ctx.db, device.id, now))
    return { device }
  },
}

/** Guard for a device. The handler checks that the device asks about itself. Throws `AuthenticationRequired`. */
export const device: Guard<DeviceCaller> = strict(
  taking([deviceCredential], () => {
    throw authenticationRequired()
  }),
)
