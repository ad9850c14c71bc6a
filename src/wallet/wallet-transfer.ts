/**
 * Moves an identity to another device. The new device makes a key of its own, and its owner carries the public key to
 * the old device, which signs it into the identity. No private key leaves its device, and the server cannot substitute
 * a key, because the owner carries it.
 */
import { OperatorError } from '../base/operator-error.ts'
import { formatMultikey, parseDidKey } from '../protocol/keys.ts'
import type { Operation } from '../protocol/plc.ts'
import type { Arrival, HandOver } from './wallet-contents.ts'
import { ownHead, renewShares, signedChange } from './wallet-operations.ts'
import { NoAnswer, ServerRefusal, textOf } from '../base/server-request.ts'
import { devicePlatform, type Wallet } from './wallet.ts'

export interface TransferCode {
  code: string
  /** As the server writes it. */
  expiresAt: string
}

/**
 * On the old device. Returns the code that the new device enters. The server gives a code only to the session that the
 * ceremony ended with. Without that session, returns null, and the devices do the transfer without the server: the
 * sessions of the account then stay open.
 */
export async function beginHandOver(wallet: Wallet): Promise<TransferCode | null> {
  await ownHead(wallet)
  const answer = await initiated(wallet)
  const transferId = answer && textOf(answer, 'transferId')
  const shown = answer && { code: textOf(answer, 'transferCode'), expiresAt: textOf(answer, 'expiresAt') }
  // The code becomes part of a command that a person copies.
  if (shown && !/^[A-Za-z0-9]{1,64}$/.test(shown.code)) throw new NoAnswer('the server returned an invalid code')
  await wallet.update({ unfinished: { what: 'hand-over', transferId, operation: null } })
  return shown
}

async function initiated({
  server,
  contents: { walletSession },
}: Wallet): Promise<Readonly<Record<string, unknown>> | null> {
  if (walletSession === null) return null
  try {
    return await server.post('/v1/transfer/initiate', { token: walletSession })
  } catch (error) {
    if (error instanceof ServerRefusal && error.status === 401) return null
    throw error
  }
}

/**
 * On the new device, in a wallet without an identity. Its owner has to carry its key to the old device. `code` is the
 * code that the old device shows, if it has one, and `recoveryKey` the did:key of the old device's recovery key, if
 * any.
 */
export async function joinTransfer(
  wallet: Wallet,
  { account, code, recoveryKey }: { account: string; code: string | null; recoveryKey: string | null },
): Promise<void> {
  const did = await wallet.server.didOf(account)
  // Store the wallet with its device key before the server learns of the key.
  await wallet.update({ recoveryKey })
  const transfer = code === null ? null : await accepted(wallet, code)
  const unfinished: Arrival = { what: 'arrival', transfer }
  await wallet.update({ did, unfinished })
}

async function accepted(wallet: Wallet, transferCode: string): Promise<Arrival['transfer']> {
  const json = { transferCode, devicePublicKey: formatMultikey(wallet.deviceKey.publicKey), platform: devicePlatform() }
  const answer = await wallet.server.post('/v1/transfer/accept', { json })
  return { id: textOf(answer, 'transferId'), deviceToken: textOf(answer, 'deviceToken') }
}

/**
 * On the old device: sign the key of the new device into the identity, in place of the old key, and end all sessions.
 */
export async function handOver(wallet: Wallet, newKey: string): Promise<void> {
  const transfer = handOverOf(wallet)
  if (parseDidKey(newKey) === null || newKey === wallet.deviceDid)
    throw new OperatorError(`${newKey} is not the key of another device`)
  const operation = await operationFor(wallet, transfer, newKey)
  await wallet.update({ unfinished: { ...transfer, operation } })
  const refused = await wallet.directory.submit(wallet.did, operation)
  if (refused !== null) {
    await wallet.update({ unfinished: { ...transfer, operation: null } })
    throw new OperatorError(`the directory refuses the change, and nothing was changed: ${refused}`)
  }
  const { walletSession } = wallet.contents
  if (transfer.transferId !== null && walletSession !== null) await complete(wallet, transfer.transferId, walletSession)
  await wallet.update({ unfinished: null, walletSession: null, session: null, keychainShare: null, paperShare: null })
}

/** The operation that was signed for this key before, unless another key has been typed since. */
async function operationFor(wallet: Wallet, { operation }: HandOver, newKey: string): Promise<Operation> {
  if (
    operation !== null &&
    (operation.rotationKeys.includes(newKey) || (await wallet.directory.has(wallet.did, operation)))
  )
    return operation
  const head = await ownHead(wallet)
  if (head.state.rotationKeys.includes(newKey))
    throw new OperatorError(`the identity already lists ${newKey}: use the key that the new device printed`)
  const rotationKeys = head.state.rotationKeys.map((key) => (key === wallet.deviceDid ? newKey : key))
  return signedChange(head, { rotationKeys }, wallet.deviceKey)
}

function handOverOf({ contents: { unfinished } }: Wallet): HandOver {
  if (unfinished?.what !== 'hand-over')
    throw new OperatorError('no transfer is in progress in this wallet: run "holdfast wallet transfer" to start one')
  return unfinished
}

/** On the new device: finish if the old device has handed over. The wallet is complete afterwards, with new shares. */
export async function arrive(
  wallet: Wallet,
  { transfer }: Arrival,
): Promise<{ arrived: false } | { arrived: true; fault: OperatorError | null }> {
  const { state } = await wallet.directory.head(wallet.did)
  if (!state.rotationKeys.includes(wallet.deviceDid)) return { arrived: false }
  if (transfer !== null) await complete(wallet, transfer.id, transfer.deviceToken)
  // The old device knows a share of the previous set.
  return { arrived: true, fault: await renewShares(wallet) }
}

/**
 * Either device may complete the transfer. The second one finds it already completed. A transfer that the new device
 * did not accept expires.
 */
async function complete(wallet: Wallet, transferId: string, token: string): Promise<void> {
  try {
    await wallet.server.post('/v1/transfer/complete', { token, json: { transferId } })
  } catch (error) {
    if (!(error instanceof ServerRefusal) || ![400, 401, 409].includes(error.status)) throw error
  }
}
