/**
 * Deletes accounts: one transaction removes every row about the account and adds the event for the network; the files
 * are deleted after the commit. The identity is left untouched, because it belongs to its owner.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../../http/errors.ts'
import { forgetAccount } from '../../../http/hooks.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountDeletionEnvelope } from '../../../protocol/signed-envelope.ts'
import { accountOf } from '../accounts/accounts.ts'
import { announceIn, announce, type By, type Operated } from '../account-events/account-events.ts'
import { loginWithPassword, MAX_TRIED_PASSWORD_CHARS, noteFailedSignIn, provePassword } from '../passwords/passwords.ts'
import { askedBy, mailCode, redeemCode } from '../mails/mails.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { passFactor } from '../../access/factors/factors.ts'
import { checkProof, spendNonce, type ProofFault } from '../../access/wallet-proofs/wallet-proofs.ts'

/** What a holder sends to have the account deleted. A wallet puts its proof into the extension, under either name. */
interface DeletionRequest {
  did: Did
  /** Empty if there is a proof, and ignored beside one. */
  password: string
  token: string
  /** A code of the second factor, if the account has an authenticator app or a passkey. */
  authFactorToken?: string
  extension?: Record<string, unknown>
  custos?: Record<string, unknown>
}

/** Mail the holder of an account the code that the deletion requires. Throws as `mailCode` does. */
export const requestDeletionCode = (exchange: Exchange, did: Did): Promise<void> =>
  mailCode(exchange, did, 'delete_account', askedBy(exchange), {
    causedBy: 'holder',
    record: (tx) => announceIn(tx, exchange, 'deletionRequested', did),
  })

/**
 * Delete an account at its holder's request, with the mailed code, and either the password, with the second factor if
 * the holder keeps one, or the proof of a wallet. Throws `InvalidRequest` if a member is missing,
 * `AuthenticationRequired` if a credential is wrong, `RateLimitExceeded` after too many wrong passwords, what
 * `passFactor` throws, and what `provenBy` throws if the directory fails.
 *
 * Whichever credential is wrong, the answer is the same and follows the work of one password hash; only the right
 * password reveals that the account has a second factor. The code is redeemed last, so that only a wrong code uses up
 * one of its tries.
 */
export async function deleteOwnAccount(exchange: Exchange, request: DeletionRequest): Promise<void> {
  const { did, password, token } = request
  const proof = request.custos?.['proof'] ?? request.extension?.['proof'] ?? null
  if (token.trim() === '' || (password === '' && proof === null))
    throw invalidRequest('A token is required, and a password or a proof')
  const revalidate = proof === null ? await checkPassword(exchange, request) : await spendProof(exchange, did, proof)
  await deleteProven(exchange, { did, token, revalidate })
}

interface ProvenDeletion {
  did: Did
  token: string
  /** Throws if the proof of the holder is no longer valid. */
  revalidate: (tx: Tx) => Promise<void>
}

/**
 * Delete an account whose holder has just proved to be the holder as at a sign-in, with the mailed code. Throws
 * `AuthenticationRequired` if the code is wrong.
 */
export async function deleteProven(exchange: Exchange, { did, token, revalidate }: ProvenDeletion): Promise<void> {
  const { ctx } = exchange
  const outcome = await ctx.db.transaction(async (tx) => {
    if ((await accountOf(tx, did)) === null) return 'gone already'
    await revalidate(tx)
    const fault = await redeemCode(ctx, tx, { did, purpose: 'delete_account', code: token })
    return fault ? 'refused' : { sequel: await purge(ctx, tx, did) }
  })
  if (outcome === 'refused') throw deletionRefused()
  if (outcome === 'gone already') return
  announce(exchange, 'deleted', did)
  await tidyUp(ctx, outcome.sequel)
}

const deletionRefused = () => authenticationRequired('Invalid did, password, proof or token')

async function checkPassword(
  exchange: Exchange,
  { did, password, authFactorToken }: DeletionRequest,
): Promise<Revalidate> {
  // A password that is too long must fail like any other wrong one. It is cut to one character more than the longest
  // that is ever compared, so the rest cannot be right.
  const revalidate = await loginWithPassword(
    exchange,
    did,
    password.slice(0, MAX_TRIED_PASSWORD_CHARS + 1),
    deletionRefused,
  )
  const account = await accountOf(exchange.ctx.db, did)
  if (account !== null) await passFactor(exchange, account, authFactorToken, { readsMail: true })
  return revalidate
}

/** Check the proof and spend its nonce, durably: a wrong code does not make the proof usable again. */
async function spendProof(exchange: Exchange, did: Did, given: unknown): Promise<Revalidate> {
  const { ctx } = exchange
  // Hash a dummy password, so that the response time does not reveal whether a password or a proof was checked.
  await provePassword(ctx, null, '', deletionRefused)
  const checked = await checkProof(ctx, { did, given, envelopeOf: accountDeletionEnvelope, isAdmitted: () => true })
  const refuse = (fault: ProofFault): never => {
    noteFailedSignIn(exchange, fault, checked.account)
    throw deletionRefused()
  }
  if (!checked.ok) return refuse(checked.fault)
  // Do not store the nonce for an account that was deleted in the meantime.
  const isFirstUse = await ctx.db.transaction(
    async (tx) => (await accountOf(tx, did)) === null || (await spendNonce(ctx, tx, checked.proof)),
  )
  if (!isFirstUse) return refuse('proof used before')
  return () => Promise.resolve()
}

/**
 * Delete an account unconditionally. `operated` names the operator who does it, if one does. Returns false if there is
 * no such account.
 */
export async function deleteAccount(by: By, did: Did, operated: Operated | null = null): Promise<boolean> {
  const { ctx } = by
  const sequel = await ctx.db.transaction(async (tx) => {
    if (!(await accountOf(tx, did))) return null
    await operated?.record?.(tx)
    return purge(ctx, tx, did)
  })
  if (sequel === null) return false
  announce(by, 'deleted', did, { actor: operated?.actor })
  await tidyUp(ctx, sequel)
  return true
}

/**
 * Delete an account whose deletion is due. Returns false if it is no longer due, because its owner has activated it.
 */
export async function deleteDueAccount(ctx: Context, did: Did): Promise<boolean> {
  const sequel = await ctx.db.transaction(async (tx) => {
    const account = await accountOf(tx, did)
    if (account === null || account.deactivatedAt === null || account.deleteAfter === null) return null
    return account.deleteAfter <= ctx.clock.now() ? purge(ctx, tx, did) : null
  })
  if (sequel === null) return false
  announce({ ctx }, 'deleted', did)
  await tidyUp(ctx, sequel)
  return true
}

/** Returns the work to do after the commit: deleting the files. If that fails, the blob scrub finds them as orphans. */
async function purge(ctx: Context, tx: Tx, did: Did): Promise<() => Promise<void>> {
  await ctx.steps.deleteOf(tx, did)
  const sequel = await forgetAccount(ctx, tx, did)
  await sequenceEvents(ctx, tx, [{ type: 'account', did, status: 'deleted' }])
  return sequel
}
