/** PLC operations that a wallet signs: what each one changes, and how a wallet resumes an unfinished one. */
import { OperatorError } from '../base/operator-error.ts'
import { nextOperation, signOperation, SIGNING_KEY_NAME, type Operation, type PlcState } from '../protocol/plc.ts'
import { parseDidKey, type SigningKey } from '../protocol/keys.ts'
import type { Deposit, Recovery, Rekeying } from './wallet-contents.ts'
import type { IdentityHead } from './wallet-directory.ts'
import { newShares } from './recovery-seed.ts'
import { NoAnswer, ServerRefusal } from '../base/server-request.ts'
import { asOwner } from './wallet-sessions.ts'
import type { Wallet } from './wallet.ts'

/** The operation after `head` that makes `changes` and keeps everything else, signed with `key`. */
export function signedChange(head: IdentityHead, changes: Partial<PlcState>, key: SigningKey): Operation {
  const next = nextOperation(head.operation, changes)
  if (next === null) throw new OperatorError('the identity has been tombstoned in the directory')
  return signOperation(next, key)
}

/** The head of the wallet's identity. Throws OperatorError if the device key is not one of its rotation keys. */
export async function ownHead(wallet: Wallet): Promise<IdentityHead> {
  const { did, deviceDid } = wallet
  if (!did.startsWith('did:plc:'))
    throw new OperatorError(`${did} has no entry in a directory: its keys are in the document at its domain`)
  const head = await wallet.directory.head(did)
  if (!head.state.rotationKeys.includes(deviceDid))
    throw new OperatorError(
      `the key of this device is no longer a rotation key of ${did}: another wallet or a recovery has replaced it`,
    )
  return head
}

/** Replaces the recovery key at its rank; if there was none, adds the new one below the first key. */
const withRecoveryKey = (keys: readonly string[], before: string | null, after: string): string[] => {
  const place = before === null ? -1 : keys.indexOf(before)
  return place < 0 ? [...keys.slice(0, 1), after, ...keys.slice(1)] : keys.with(place, after)
}

/**
 * Store an operation that replaces recovery key and shares, with the new key and shares. `finishRekeying` submits it.
 */
export async function beginRekeying(
  wallet: Wallet,
  operationFor: (recoveryKey: string) => Operation,
  otherwise: Recovery | null = null,
): Promise<void> {
  const { recoveryKey, keychain, escrow, paper } = newShares()
  const unfinished: Rekeying = {
    what: 'rekeying',
    operation: operationFor(recoveryKey),
    recoveryKey,
    keychainShare: keychain,
    escrowShare: escrow,
    paperShare: paper,
    otherwise,
  }
  await wallet.update({ unfinished })
}

/**
 * Submit the operation to the directory, then deposit the server's share. May be repeated after any failure. If only
 * the deposit fails, the new keys are in force, and the deposit remains as the unfinished step.
 */
async function finishRekeying(wallet: Wallet, rekeying: Rekeying): Promise<OperatorError | null> {
  const { operation, recoveryKey, keychainShare, escrowShare, paperShare, otherwise } = rekeying
  const refused = await wallet.directory.submit(wallet.did, operation)
  if (refused !== null) {
    await wallet.update({ unfinished: otherwise })
    throw new OperatorError(`the directory refuses the change, and nothing was changed: ${refused}`)
  }
  const fault = await faultOfDeposit(wallet, escrowShare)
  const unfinished = fault === null ? null : ({ what: 'deposit', escrowShare } satisfies Deposit)
  await wallet.update({ recoveryKey, keychainShare, paperShare, unfinished })
  return fault
}

async function finishDeposit(wallet: Wallet, escrowShare: string): Promise<OperatorError | null> {
  const fault = await faultOfDeposit(wallet, escrowShare)
  if (fault === null) await wallet.update({ unfinished: null })
  return fault
}

async function faultOfDeposit(wallet: Wallet, escrowShare: string): Promise<OperatorError | null> {
  try {
    await depositShare(wallet, escrowShare)
    return null
  } catch (error) {
    if (error instanceof OperatorError) return error
    throw error
  }
}

async function depositShare(wallet: Wallet, share: string): Promise<void> {
  const { capabilities } = await wallet.server.describe()
  // Without a share at the server, the shares in the wallet and on paper are enough.
  if (!capabilities.has('escrow')) return
  await asOwner(wallet, (token) => wallet.server.put('/v1/recovery/escrow-share', { token, json: { share } }))
}

/** Give the identity a new recovery key, and make new shares. Earlier shares become useless. */
export async function renewShares(wallet: Wallet): Promise<OperatorError | null> {
  const head = await ownHead(wallet)
  const { recoveryKey: before } = wallet.contents
  await beginRekeying(wallet, (recoveryKey) =>
    signedChange(
      head,
      { rotationKeys: withRecoveryKey(head.state.rotationKeys, before, recoveryKey) },
      wallet.deviceKey,
    ),
  )
  return (await finishPending(wallet)).fault
}

/** Replace the repository key of the identity by a key that the server stages. */
export async function rotateRepoKey(wallet: Wallet): Promise<string> {
  await ownHead(wallet)
  const { signingKey } = await asOwner(wallet, (token) => wallet.server.post('/v1/repo-keys/rotation', { token }))
  if (typeof signingKey !== 'string' || parseDidKey(signingKey) === null)
    throw new NoAnswer('the server returned no key')
  // Read after the request, because the request makes the server settle an earlier rotation.
  const head = await ownHead(wallet)
  const { verificationMethods, rotationKeys } = head.state
  const before = verificationMethods[SIGNING_KEY_NAME]
  const others = rotationKeys.filter((key) => key !== before)
  const operation = signedChange(
    head,
    {
      verificationMethods: { ...verificationMethods, [SIGNING_KEY_NAME]: signingKey },
      rotationKeys: [...others, signingKey],
    },
    wallet.deviceKey,
  )
  await wallet.update({ unfinished: { what: 'rotation', operation } })
  await finishPending(wallet)
  return signingKey
}

/** Send the operation of a rotation to the server, which submits it and then signs with the new key. */
async function finishRotation(wallet: Wallet, operation: Operation): Promise<void> {
  try {
    await asOwner(wallet, (token) =>
      wallet.server.post('/v1/repo-keys/rotation/complete', { token, json: { operation } }),
    )
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.status !== 400) throw error
    // Either the server had already finished the rotation, or the identity has changed since and can never accept this
    // operation.
    const isDone = await wallet.directory.has(wallet.did, operation)
    if (!isDone) {
      await wallet.update({ unfinished: null })
      throw error
    }
  }
  await wallet.update({ unfinished: null })
}

export interface Finished {
  /** The step that was finished; null if there was none. */
  what: 'rekeying' | 'deposit' | 'rotation' | null
  /** Why the server did not take its share; null if it did, or if there was no share to give. */
  fault: OperatorError | null
}

/**
 * Finish an unfinished rekeying, deposit or rotation. Throws OperatorError if the directory or the server refuses, or
 * does not answer.
 */
export async function finishPending(wallet: Wallet): Promise<Finished> {
  const { unfinished } = wallet.contents
  switch (unfinished?.what) {
    case 'rekeying':
      return { what: unfinished.what, fault: await finishRekeying(wallet, unfinished) }
    case 'deposit':
      return { what: unfinished.what, fault: await finishDeposit(wallet, unfinished.escrowShare) }
    case 'rotation':
      await finishRotation(wallet, unfinished.operation)
      return { what: unfinished.what, fault: null }
    default:
      return { what: null, fault: null }
  }
}
