/** The token of a device. It says where the server is and completes a transfer, and opens nothing else. */
import { authenticationRequired } from '../../http/errors.ts'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import { findDeviceByToken, type Device } from '../wallet-devices/wallet-devices.ts'
import { presentedAs, type Credential } from './credential.ts'

export interface DeviceCaller {
  device: Device
}

const bearer = presentedAs('bearer')

/** Throws `AuthenticationRequired` if the token is unknown or revoked. */
export const deviceCredential: Credential<DeviceCaller> = {
  name: 'device',
  recognises(exchange) {
    const token = bearer(exchange)
    return token === null ? null : opaqueTokenHash(token)
  },
  async check({ ctx }, tokenHash) {
    const device = await findDeviceByToken(ctx.db, tokenHash)
    if (device === null) throw authenticationRequired('The device is unknown or was revoked')
    return { device }
  },
}
