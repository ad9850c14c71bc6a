/** The token of a device. It says where the server is and completes a transfer, and opens nothing else. */
import { authenticationRequired } from '../../http/errors.ts'
import { findDeviceByToken, type Device } from '../wallet-devices/wallet-devices.ts'
import { presentedOpaqueToken, type Credential } from './credential.ts'

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
    return { device }
  },
}
