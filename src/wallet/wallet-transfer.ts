/**
 * Moving an identity to another device. The new device makes a key of its own, and its owner carries the public half to
 * the old one, which signs it into the identity. No private key travels, and the server cannot exchange what is
 * carried.
 */
import { OperatorError } from '../base/operator-error.ts'
import { formatMultikey, parseDidKey } from '../protocol/keys.ts'
import type { Arrival, HandOver } from './wallet-contents.ts'
import { ownHead, renewShares, signedChange } from './wallet-operations.ts'
import { ServerRefusal, textOf } from './wallet-server.ts'
import { devicePlatform, type Wallet } from './wallet.ts'

/** On the old device: returns the code that the new one accepts, and until when (as the server writes it). */
export async function beginHandOver(wallet: Wallet): Promise<{ code: string; expiresAt: string }> {
  const { walletSession } = wallet.contents
  await ownHead(wallet)
  if (walletSession === null)
    throw new OperatorError(
      'this wallet has no session that the server takes for a transfer. "holdfast wallet export" copies the keys instead',
    )
  const answer = await wallet.server.post('/v1/transfer/initiate', { token: walletSession })
  await wallet.update({ unfinished: { what: 'hand-over', transferId: textOf(answer, 'transferId'), operation: null } })
  return { code: textOf(answer, 'transferCode'), expiresAt: textOf(answer, 'expiresAt') }
}

/**
 * On the new device, in a wallet without an identity. Its key has to be carried to the old device. `recoveryKey` is the
 * did:key of the recovery key that the old device knows; null if it knows none.
 */
export async function acceptTransfer(
  wallet: Wallet,
  { account, transferCode, recoveryKey }: { account: string; transferCode: string; recoveryKey: string | null },
): Promise<void> {
  const did = await wallet.server.didOf(account)
  // The key exists before the server hears of it.
  await wallet.update({ did, recoveryKey })
  const json = { transferCode, devicePublicKey: formatMultikey(wallet.deviceKey.publicKey), platform: devicePlatform() }
  const answer = await wallet.server.post('/v1/transfer/accept', { json })
  const unfinished: Arrival = { what: 'arrival', transferId: textOf(answer, 'transferId'), deviceToken: textOf(answer, 'deviceToken') }
  await wallet.update({ unfinished })
}

/** On the old device: sign the key of the new one into the identity, in the place of its own, and end all sessions. */
export async function handOver(wallet: Wallet, newKey: string): Promise<void> {
  const transfer = handOverOf(wallet)
  if (parseDidKey(newKey) === null || newKey === wallet.deviceDid) throw new OperatorError(`${newKey} is not the key of another device`)
  const operation = transfer.operation ?? (await replacing(wallet, newKey))
  await wallet.update({ unfinished: { ...transfer, operation } })
  const refused = await wallet.directory.submit(wallet.did, operation)
  if (refused !== null) {
    await wallet.update({ unfinished: { ...transfer, operation: null } })
    throw new OperatorError(`the directory refuses the change, and nothing was changed: ${refused}`)
  }
  await complete(wallet, transfer.transferId, wallet.contents.walletSession)
  await wallet.update({ unfinished: null, walletSession: null, session: null, keychainShare: null, paperShare: null })
}

function handOverOf({ contents: { unfinished } }: Wallet): HandOver {
  if (unfinished?.what !== 'hand-over')
    throw new OperatorError('no transfer was begun in this wallet: "holdfast wallet transfer" begins one')
  return unfinished
}

async function replacing(wallet: Wallet, newKey: string) {
  const head = await ownHead(wallet)
  const rotationKeys = head.state.rotationKeys.map((key) => (key === wallet.deviceDid ? newKey : key))
  return signedChange(head, { rotationKeys }, wallet.deviceKey)
}

/** On the new device: finish if the old one has handed over. The wallet is complete afterwards, with new shares. */
export async function arrive(
  wallet: Wallet,
  { transferId, deviceToken }: Arrival,
): Promise<{ arrived: false } | { arrived: true; fault: OperatorError | null }> {
  const { state } = await wallet.directory.head(wallet.did)
  if (!state.rotationKeys.includes(wallet.deviceDid)) return { arrived: false }
  await complete(wallet, transferId, deviceToken)
  // The old device knows a share of the old set.
  return { arrived: true, fault: await renewShares(wallet) }
}

/** Either device may complete the transfer; whoever comes second finds it completed. */
async function complete(wallet: Wallet, transferId: string, token: string | null): Promise<void> {
  try {
    await wallet.server.post('/v1/transfer/complete', { token, json: { transferId } })
  } catch (error) {
    if (!(error instanceof ServerRefusal) || ![400, 401].includes(error.status)) throw error
  }
}
