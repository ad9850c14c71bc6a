/** A wallet that makes an account step by step, with every value that it sends open to change. */
import { randomBytes } from 'node:crypto'
import { Secret } from '../../../src/base/secret.ts'
import { formatShare, shareEnvelope, shareIndexes } from '../../../src/protocol/escrow-share.ts'
import type { Handle } from '../../../src/protocol/identifiers.ts'
import { genesisOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { PASSWORD } from './account.ts'
import { bearer, request, type Answer } from './http.ts'
import { ADMIN_TOKEN } from '../servers/config.ts'
import type { TestPds } from '../servers/pds.ts'
import { deviceKey, type DeviceKey } from './wallet.ts'

type Server = Pick<TestPds, 'url'>

/** What a server needs for ceremonies. */
export const forCeremonies = {
  signingKeyMasterKey: new Secret(new Uint8Array(32).fill(7)),
  rateLimit: { enabled: false },
}

export const operate = (pds: Server, path: string, json?: unknown): Promise<Answer> =>
  request(`${pds.url}${path}`, { headers: bearer(ADMIN_TOKEN), ...(json !== undefined && { json }) })

export async function claimCode(pds: Server): Promise<string> {
  const { body } = await operate(pds, '/v1/accounts/claim-codes', { count: 1 })
  return body.codes[0]
}

export interface PendingWallet {
  handle: Handle
  email: string
  code: string
  /** As the wallet spells its key. */
  devicePublicKey: string
  device: DeviceKey
  recovery: DeviceKey
  share: string
  /** The token of the session that goes on; empty before the wallet has begun. */
  token: string
}

/** A wallet that wants `<name>.test`, with keys of its own and without a code. */
export function newWallet(name: string): PendingWallet {
  const device = deviceKey()
  const share = shareEnvelope({ setId: 7, index: shareIndexes.escrow, payload: randomBytes(32) })
  return {
    handle: `${name}.test` as Handle,
    email: `${name}@example.com`,
    code: '',
    devicePublicKey: device.did.slice('did:key:'.length),
    device,
    recovery: deviceKey(),
    share: formatShare(share.bytes),
    token: '',
  }
}

export const mobile = (pds: Server, wallet: PendingWallet, changes: Record<string, unknown> = {}): Promise<Answer> =>
  request(`${pds.url}/v1/accounts/mobile`, {
    json: {
      email: wallet.email,
      handle: wallet.handle,
      devicePublicKey: wallet.devicePublicKey,
      platform: 'ios',
      claimCode: wallet.code,
      ...changes,
    },
  })

/** Begin with a new code. Fails if the answer is not 201. */
export async function begin(pds: Server, name: string, changes: Partial<PendingWallet> = {}): Promise<PendingWallet> {
  const wallet = { ...newWallet(name), code: await claimCode(pds), ...changes }
  const { status, body } = await mobile(pds, wallet)
  if (status !== 201) throw new Error(`the ceremony answered ${status} ${JSON.stringify(body)}`)
  return { ...wallet, token: body.sessionToken }
}

export const signingKeyFor = (pds: Server, wallet: PendingWallet): Promise<Answer> =>
  request(`${pds.url}/v1/repo-signing-key`, { headers: bearer(wallet.token) })

/** The genesis operation of the wallet, with changes that are signed. `keyId` is the issued key. */
export function genesisOf(
  pds: Server,
  { handle, device, recovery }: PendingWallet,
  keyId: string,
  changes: Partial<Operation> = {},
): Operation {
  const rotationKeys = [device.did, recovery.did, keyId]
  const operation = genesisOperation({ signingKey: keyId, handle, rotationKeys, pdsEndpoint: pds.url })
  return signOperation({ ...operation, ...changes }, device.key)
}

/** What the wallet sends to end its ceremony. */
export const didRequest = (pds: Server, wallet: PendingWallet, keyId: string) => ({
  rotationKeyPublic: wallet.device.did as string,
  signedCreationOp: genesisOf(pds, wallet, keyId),
  password: PASSWORD,
  recoveryKey: wallet.recovery.did as string,
  escrowShare: wallet.share,
})

export const sendDid = (pds: Server, wallet: PendingWallet, json: unknown): Promise<Answer> =>
  request(`${pds.url}/v1/dids`, { headers: bearer(wallet.token), json })

/** Ask for the key. Returns what the wallet sends to end its ceremony. */
export async function prepared(pds: Server, wallet: PendingWallet) {
  const { body } = await signingKeyFor(pds, wallet)
  return didRequest(pds, wallet, body.keyId)
}

export interface BornAccount extends PendingWallet {
  did: string
  /** Of the account, for the routes of owners. */
  session: string
}

/** The whole ceremony. Fails if a step does. */
export async function bear(pds: Server, name: string, changes: Record<string, unknown> = {}): Promise<BornAccount> {
  const wallet = await begin(pds, name)
  const { status, body } = await sendDid(pds, wallet, { ...(await prepared(pds, wallet)), ...changes })
  if (status !== 200) throw new Error(`the end of the ceremony answered ${status} ${JSON.stringify(body)}`)
  return { ...wallet, did: body.did, session: body.session_token }
}
