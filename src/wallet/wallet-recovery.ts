/**
 * Recovers an identity without its device: two shares restore the recovery key, which signs the key of this wallet into
 * the identity in place of the lost one.
 *
 * One share is usually the server's. The server mails a code, and releases its share to the holder of the code after a
 * delay, during which the owner of the old device can object.
 */
import { OperatorError } from '../base/operator-error.ts'
import { parseShare, shareIndexes, type EscrowShare } from '../protocol/escrow-share.ts'
import { formatDidKey } from '../protocol/keys.ts'
import { recoveryKeyOf } from './recovery-seed.ts'
import { combineShares } from './shamir.ts'
import type { Recovery } from './wallet-contents.ts'
import { beginRekeying, finishPending, signedChange } from './wallet-operations.ts'
import { NoAnswer, ServerRefusal, textOf, type Answer } from '../base/server-request.ts'
import { asOwner } from './wallet-sessions.ts'
import type { Wallet } from './wallet.ts'

/** Find the account and have a code mailed to its address. The server does not say whether it has mailed one. */
export async function beginRecovery(wallet: Wallet, account: string, { byMail }: { byMail: boolean }): Promise<void> {
  if (byMail) await wallet.server.need('escrow', 'keeping a share for recovery')
  const did = await wallet.server.didOf(account)
  if (!did.startsWith('did:plc:'))
    throw new OperatorError(`${did} has no recovery key: its owner restores it by the document at its domain`)
  await wallet.directory.head(did)
  if (byMail) await wallet.server.post('/v1/recovery/initiate', { json: { identifier: did } })
  await wallet.update({ did, unfinished: { what: 'recovery', did, availableAt: null, escrowShare: null } })
}

export type ReleaseOutcome = { state: 'released' } | { state: 'pending'; availableAt: string }

/**
 * Open the release with the mailed code (`otp`), or poll it. Once the server releases the share, it is stored before
 * this returns.
 */
export async function askForShare(wallet: Wallet, otp: string | null): Promise<ReleaseOutcome> {
  const recovery = recoveryOf(wallet)
  if (recovery.escrowShare !== null) return { state: 'released' }
  const code = otp?.trim() ?? recovery.code ?? null
  const answer =
    (await releaseOf(wallet, recovery.did, code)) ??
    // An older server uses the code only to open the release, and accepts polls only without it.
    (otp === null && code !== null ? await releaseOf(wallet, recovery.did, null) : null)
  if (answer === null)
    throw new OperatorError(
      otp === null
        ? 'no release is in progress: it was cancelled, or the share was released already. Start again with --again'
        : 'the server does not accept this code, or has no share of this account',
    )
  if (answer['status'] === 'pending') {
    const availableAt = textOf(answer, 'availableAt')
    await wallet.update({ unfinished: { ...recovery, availableAt, ...(code !== null && { code }) } })
    return { state: 'pending', availableAt }
  }
  const escrowShare = textOf(answer, 'share')
  const outcome = parseShare(escrowShare)
  if (answer['status'] !== 'released' || !outcome.ok || outcome.share.index !== shareIndexes.escrow)
    throw new NoAnswer('the server released data that is not a recovery share')
  await wallet.update({ unfinished: { ...recovery, escrowShare } })
  return { state: 'released' }
}

/**
 * Ask for the share, with or without a code. If a code opens the release, every later request for it needs that code.
 * Returns null if the server refuses.
 */
async function releaseOf(wallet: Wallet, identifier: string, otp: string | null): Promise<Answer | null> {
  const json = { identifier, ...(otp !== null && { otp, code: 'required' }) }
  try {
    return await wallet.server.post('/v1/recovery/release', { json })
  } catch (error) {
    if (error instanceof ServerRefusal && error.status === 401) return null
    throw error
  }
}

export function recoveryOf({ contents: { unfinished } }: Wallet): Recovery {
  if (unfinished?.what !== 'recovery') throw new OperatorError('no recovery is in progress in this wallet')
  return unfinished
}

/** The share that the server released; null if there is none yet. */
export function releasedShare(wallet: Wallet): EscrowShare | null {
  const { escrowShare } = recoveryOf(wallet)
  const outcome = escrowShare === null ? null : parseShare(escrowShare)
  return outcome?.ok ? outcome.share : null
}

/**
 * Take over the identity with two shares: the key of this wallet replaces all keys that outrank the recovery key, the
 * wallet makes a new recovery key with new shares, and the server gets its share. Throws OperatorError if the shares do
 * not belong to the identity.
 */
export async function recover(wallet: Wallet, a: EscrowShare, b: EscrowShare): Promise<OperatorError | null> {
  const recovery = recoveryOf(wallet)
  const combined = combineShares(a, b)
  if (!combined.ok)
    throw new OperatorError(
      combined.fault === 'same-share'
        ? 'both shares are the same; a different one is required'
        : 'the two shares do not belong together: one of them is older than the last renewal, or belongs to another identity',
    )
  const key = recoveryKeyOf(combined.secret)
  combined.secret.fill(0)
  const head = await wallet.directory.head(recovery.did)
  const { rotationKeys } = head.state
  const place = rotationKeys.indexOf(formatDidKey(key.publicKey))
  if (place < 0)
    throw new OperatorError(
      `these shares restore a key that ${recovery.did} does not list: they belong to an older recovery key, or to another identity`,
    )
  const below = rotationKeys.slice(place + 1)
  const operationFor = (recoveryKey: string) =>
    signedChange(head, { rotationKeys: [wallet.deviceDid, recoveryKey, ...below] }, key)
  await beginRekeying(wallet, operationFor, recovery)
  return (await finishPending(wallet)).fault
}

/** Cancel an open release. Does nothing if there is none. */
export async function cancelRelease(wallet: Wallet): Promise<void> {
  await asOwner(wallet, (token) => wallet.server.post('/v1/recovery/release/cancel', { token }))
}

/** Have the server delete its share. The shares in the wallet and on paper still restore the key. */
export async function withdrawShare(wallet: Wallet): Promise<void> {
  await asOwner(wallet, (token) => wallet.server.delete('/v1/recovery/escrow-share', { token }))
}
