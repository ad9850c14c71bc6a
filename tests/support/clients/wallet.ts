/**
 * A wallet, as far as it signs: keys of a device, and proofs over what it asks for. `holdfast wallet` is the whole one.
 */
import { randomBytes } from 'node:crypto'
import { openWalletSession } from '../../../src/features/access/sessions/sessions.ts'
import type { Config } from '../../../src/platform/configuration/config.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import { base64url } from '../../../src/protocol/base64url.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey, type Curve, type SigningKey } from '../../../src/protocol/keys.ts'
import {
  accountDeletionEnvelope,
  sovereignSessionEnvelope,
  type Signer,
} from '../../../src/protocol/signed-envelope.ts'
import { createAccount, type TestAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

export interface DeviceKey {
  key: SigningKey
  /** As a did:key. */
  did: Did
}

export function deviceKey(curve: Curve = 'p256'): DeviceKey {
  const key = signingKey(curve, randomBytes(32))
  return { key, did: formatDidKey(key.publicKey) }
}

/** The server that a proof is for, and the clock of the wallet. */
export interface SigningFor {
  ctx: { config: Pick<Config, 'serverDid'> }
  clock: Pick<Clock, 'now'>
}

export type SignedMembers = { signingKey: string; timestamp: number; nonce: string; signature: string }

/**
 * The members of a proof by this device over the envelope that `envelopeOf` makes of it. `changes` go into the envelope
 * too.
 */
export function proofBy(
  pds: SigningFor,
  device: DeviceKey,
  did: string,
  envelopeOf: (signer: Signer) => Uint8Array,
  changes: Partial<Signer> = {},
): SignedMembers {
  const signer: Signer = {
    aud: pds.ctx.config.serverDid,
    did: did as Did,
    key: device.did,
    timestamp: Math.floor(pds.clock.now() / 1000),
    nonce: base64url(randomBytes(32)),
    ...changes,
  }
  const signature = base64url(device.key.sign(envelopeOf(signer)))
  return { signingKey: signer.key, timestamp: signer.timestamp, nonce: signer.nonce, signature }
}

/** Opens the session of a wallet. Returns its token. */
export const walletSession = (pds: Pick<TestPds, 'ctx' | 'clock'>, did: string): Promise<string> =>
  pds.ctx.db.transaction((tx) =>
    openWalletSession(
      tx,
      did as Did,
      { byPassword: false },
      { openedAt: pds.clock.now(), openedWith: null, openedFrom: null },
    ),
  )

/** Transfers the account of a wallet to another device, which accepts at once. */
export async function transferAway(pds: Pick<TestPds, 'ctx' | 'clock' | 'url'>, did: string): Promise<void> {
  const headers = bearer(await walletSession(pds, did))
  const transfer = `${pds.url}/v1/transfer`
  const begun = await request(`${transfer}/initiate`, { method: 'POST', headers })
  const { transferId, transferCode } = begun.body
  await request(`${transfer}/accept`, { json: { transferCode, devicePublicKey: 'zPhone', platform: 'ios' } })
  const { status } = await request(`${transfer}/complete`, { json: { transferId }, headers })
  if (status !== 200) throw new Error(`the transfer answered ${status}`)
}

/**
 * An account whose identity the device may sign for: its key is the first rotation key. It has no password if
 * `password` is undefined.
 */
export async function sovereignAccount(
  pds: Pick<TestPds, 'url'>,
  name: string,
  input: Record<string, unknown> = {},
  device: DeviceKey = deviceKey(),
): Promise<TestAccount & { device: DeviceKey }> {
  return { ...(await createAccount(pds, name, { recoveryKey: device.did, ...input })), device }
}

/** The body with which a wallet asks for a session. */
export const sessionRequest = (
  pds: SigningFor,
  { did, device }: { did: string; device: DeviceKey },
  changes: Partial<Signer> = {},
): SignedMembers & { did: string } => ({ did, ...proofBy(pds, device, did, sovereignSessionEnvelope, changes) })

/** The proof with which a wallet has an account deleted. */
export const deletionProof = (
  pds: SigningFor,
  { did, device }: { did: string; device: DeviceKey },
  changes: Partial<Signer> = {},
): SignedMembers => proofBy(pds, device, did, accountDeletionEnvelope, changes)

/** Ask for a session, with the given body. */
export const askSession = (
  pds: Pick<TestPds, 'url'>,
  json: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> => request(`${pds.url}/v1/sessions/sovereign`, { json, headers })
