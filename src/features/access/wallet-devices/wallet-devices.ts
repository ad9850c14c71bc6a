/**
 * Devices that have a token of their own: the device of a pending account, and devices to which an account was
 * transferred.
 */
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { invalidClaim } from '../../../http/errors.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { insertDevice, type Device } from './wallet-device-store.ts'

export { deviceCredential, type DeviceCaller } from './device-credential.ts'
export {
  deleteDevicesOf,
  deleteDevicesRevokedBefore,
  devicesOf,
  revokeDevice,
  revokeDevices,
  type Device,
} from './wallet-device-store.ts'

const MAX_PUBLIC_KEY_CHARS = 512

/** The members of a request that describe a device. `devicePublicKey` is stored as it is spelled. */
export const deviceMembers = {
  devicePublicKey: Type.String(),
  platform: Type.Union(['ios', 'android', 'macos', 'linux', 'windows'].map((name) => Type.Literal(name))),
}

/** Throws `InvalidClaim` if the key is empty or longer than 512 characters. */
export function requireDeviceKey(publicKey: string): void {
  if (publicKey === '' || publicKey.length > MAX_PUBLIC_KEY_CHARS)
    throw invalidClaim(`devicePublicKey must have from 1 to ${MAX_PUBLIC_KEY_CHARS} characters`)
}

/** Store a new device, in the caller's transaction. Returns its id and its token. */
export async function addDevice(
  tx: Tx,
  device: Pick<Device, 'owner' | 'publicKey' | 'platform' | 'openedWith'>,
  now: Millis,
): Promise<{ deviceId: string; deviceToken: string }> {
  const { token, hash } = newToken()
  const id = randomUUID()
  await insertDevice(tx, { ...device, id, tokenHash: hash, createdAt: now })
  return { deviceId: id, deviceToken: token }
}
