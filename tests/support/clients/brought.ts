/** A wallet that signs up by `createAccount`, with an identity that it has made itself. */
import type { Handle } from '../../../src/protocol/identifiers.ts'
import { genesisOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { xrpc } from './account.ts'
import type { TestPds } from '../servers/pds.ts'
import { deviceKey, type DeviceKey } from './wallet.ts'

export const reserveKey = async (pds: Pick<TestPds, 'url'>, did?: string): Promise<string> => {
  const { status, body } = await xrpc(pds, 'com.atproto.server.reserveSigningKey', { json: { did } })
  if (status !== 200) throw new Error(`reserveSigningKey answered ${status} ${JSON.stringify(body)}`)
  return body.signingKey
}

export interface Bringing {
  device: DeviceKey
  signingKey: string
  plcOp: Operation
}

/** An identity named `<name>.test`, with a key reserved here and the device above it. `changes` are signed. */
export async function bring(
  pds: Pick<TestPds, 'url'>,
  name: string,
  changes: Partial<Operation> = {},
  device: DeviceKey = deviceKey(),
): Promise<Bringing> {
  const signingKey = await reserveKey(pds)
  const rotationKeys = [device.did, signingKey]
  const operation = genesisOperation({
    signingKey,
    handle: `${name}.test` as Handle,
    rotationKeys,
    pdsEndpoint: pds.url,
  })
  return { device, signingKey, plcOp: signOperation({ ...operation, ...changes }, device.key) }
}
