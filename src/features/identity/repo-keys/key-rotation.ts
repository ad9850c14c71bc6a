/** The two requests of a wallet: a new key, and the operation that names it. */
import { isDeepStrictEqual } from 'node:util'
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { KeyedLock } from '../../../platform/running/keyed-lock.ts'
import { isStepWaiting } from '../../../platform/running/steps.ts'
import { parseCid } from '../../../protocol/cid.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import {
  droppedSpaceEntries,
  isPlcDid,
  isSameOperation,
  parseOperation,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  signerOf,
  stateOf,
  type AuditEntry,
  type Operation,
} from '../../../protocol/plc.ts'
import { accountNotFound, accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { announce } from '../account-events/account-events.ts'
import {
  makeAccountKey,
  settledTransaction,
  SigningHeld,
  signingKeyOf,
  holdSigning,
} from '../account-keys/account-keys.ts'
import { signingAuthority, unknownAuthority } from '../../access/wallet-proofs/wallet-proofs.ts'
import { settleStep } from './key-settlement.ts'
import { findStagedKey, putStagedKey, updateOperation } from './staged-key-store.ts'

/** Longest wait for the directory: most wallets give up after a minute. */
const MAX_SETTLING_MILLIS = 30_000

/** One completion at a time for each account, so that a repeated request finds the outcome of the previous one. */
const completions = perContext((ctx) => new KeyedLock(ctx, 'key rotation'))

/** The key with which an account signs now, as a did:key; null if there is no such account. */
async function currentKey(ctx: Context, did: Did): Promise<string | null> {
  const key = await signingKeyOf(ctx, ctx.db, did)
  return key && formatDidKey(key.publicKey)
}

/**
 * Stage a new key for an account, replacing an earlier staged one. It is on the curve of the present key, so that
 * services that have cached the present key fetch the new one. Returns it as a did:key.
 *
 * Throws `InvalidRequest` unless the DID is a did:plc, `NotFound` if the account has no key, `AccountTakedown`, and
 * `ServiceUnavailable` while it is unknown whether the directory names the previously staged key.
 */
export async function stageKey(by: Exchange, did: Did): Promise<string> {
  const { ctx } = by
  requirePlc(did)
  const key = await signingKeyOf(ctx, ctx.db, did)
  if (!key) throw notFound('The account has no signing key')
  const made = makeAccountKey(ctx, key.publicKey.curve)
  await settledTransaction(ctx, did, async (tx) => {
    await by.revalidate(tx)
    refuseTakendown(await accountStatus(tx, did))
    if ((await putStagedKey(tx, did, made, ctx.clock.now())) === 0) throw new SigningHeld()
  })
  announce(by, 'signingKeyStaged', did)
  return made.signingKey
}

/**
 * Replace the account's key by the staged one, which `given`, a signed operation, publishes. Returns the new key as a
 * did:key, also if the operation took effect before.
 *
 * Throws `InvalidRequest` unless the operation is the next or the newest of the DID, is signed by a rotation key, names
 * the staged key and changes no service; `PlcDirectoryError` (502) if the directory refuses it or does not respond;
 * what `unknownAuthority` returns; and `ServiceUnavailable` while another operation is not settled.
 */
export function completeRotation(by: Exchange, did: Did, given: unknown): Promise<string> {
  requirePlc(did)
  const operation = parseOperation(given)
  if (operation?.type !== 'plc_operation' || operation.prev === null || !parseCid(operation.prev))
    throw invalidRequest('Invalid operation')
  return completions(by.ctx).run(did, () => complete(by, did, operation))
}

/** A second look finds the outcome if the step of an earlier request finished the rotation during the first look. */
const MAX_LOOKS = 2

async function complete(by: Exchange, did: Did, operation: Operation): Promise<string> {
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const key = await tryToComplete(by, did, operation)
    if (key !== null) return key
  }
  throw invalidRequest('The staged key was replaced')
}

/** Returns the new key, or null if the staged key was replaced or promoted meanwhile. */
async function tryToComplete(by: Exchange, did: Did, operation: Operation): Promise<string | null> {
  const { ctx } = by
  // Read before the log: if the key is no longer staged, it was promoted because the directory had the operation, so
  // the log shows the operation.
  const staged = await findStagedKey(ctx.db, did)
  const authority = await signingAuthority(ctx, did)
  if (!authority.ok) throw unknownAuthority(did, authority.fault)
  const head = authority.head!
  const wanted = wantedKey(operation, head)
  if (!staged) {
    if (isSameOperation(operation, head.operation) && (await currentKey(ctx, did)) === wanted) return wanted
    throw invalidRequest('No rotation is in progress')
  }
  if (wanted !== staged.signingKey) throw invalidRequest('The operation does not name the staged key')
  if (!operation.rotationKeys.includes(staged.signingKey))
    throw invalidRequest('The staged key is not among the rotation keys')
  refuseMove(ctx, operation, head)
  if (!(await submit(by, did, staged.signingKey, operation))) return null
  return outcome(ctx, did, staged.signingKey)
}

/**
 * Returns the signing key that the operation names. Throws `InvalidRequest` unless it may follow `head`, or is `head`.
 */
function wantedKey(operation: Operation, head: AuditEntry): string {
  const current = stateOf(head.operation)
  if (!current) throw invalidRequest('Did is tombstoned')
  const isAccepted = isSameOperation(operation, head.operation)
  if (!isAccepted && signerOf(operation, current.rotationKeys) === null)
    throw invalidRequest('The operation is not signed by a rotation key of the identity')
  if (!isAccepted && operation.prev !== head.cid)
    throw invalidRequest('prev is not the newest operation of the identity')
  const wanted = operation.verificationMethods[SIGNING_KEY_NAME]
  if (wanted === undefined) throw invalidRequest('The operation names no signing key')
  return wanted
}

/**
 * A rotation must not change the services of the identity, nor drop its entries for permissioned data. Nor may it put a
 * key of this server into an identity that names another server.
 */
function refuseMove({ config }: Context, operation: Operation, head: AuditEntry): void {
  const state = stateOf(head.operation)!
  const { services } = state
  const [dropped] = droppedSpaceEntries(state, operation)
  if (dropped !== undefined) throw invalidRequest(`The operation lacks ${dropped}, which the identity names`)
  if (!isDeepStrictEqual(operation.services, services))
    throw invalidRequest('The operation changes the services of the identity')
  if (!isOwnUrl(config, services[PDS_SERVICE_NAME]?.endpoint))
    throw invalidRequest('The identity does not name this server')
}

/**
 * Hold the account, have the operation submitted, and wait until the first try has ended. If the operation is already
 * being submitted, wait for that instead of submitting it again. Returns false if the key is no longer staged.
 */
async function submit(by: Exchange, did: Did, signingKey: string, operation: Operation): Promise<boolean> {
  const { ctx } = by
  const submission = await settledTransaction(ctx, did, async (tx) => {
    await by.revalidate(tx)
    refuseTakendown(await accountStatus(tx, did))
    const staged = await findStagedKey(tx, did)
    if (staged?.signingKey !== signingKey) return 'gone'
    if (staged.operation !== null && !isSameOperation(staged.operation, operation)) throw new SigningHeld()
    if (staged.operation !== null && (await isStepWaiting(tx, settleStep, did))) return 'under way'
    if (staged.operation === null) {
      await updateOperation(tx, did, signingKey, operation)
      await holdSigning(ctx, tx, did)
    }
    await ctx.steps.add(tx, settleStep, { key: did, did, payload: { origin: requestOrigin(by) } })
    return 'begun'
  })
  if (submission === 'begun') await ctx.steps.nextTry(settleStep, did, MAX_SETTLING_MILLIS)
  if (submission === 'under way') await ctx.steps.hasten(settleStep.name, did, MAX_SETTLING_MILLIS)
  return submission !== 'gone'
}

/** Returns the key if it was promoted; otherwise throws `PlcDirectoryError` (502). */
async function outcome(ctx: Context, did: Did, signingKey: string): Promise<string> {
  // Read before the account's key: a staged key that is promoted in between is then reported as promoted, not as
  // refused.
  const isOpen = (await findStagedKey(ctx.db, did))?.operation != null
  const key = await currentKey(ctx, did)
  if (key === null) throw accountNotFound()
  if (key === signingKey) return signingKey
  throw new Refusal(
    502,
    'PlcDirectoryError',
    isOpen ? 'The directory has not said yet whether it accepts the operation' : 'The directory refused the operation',
  )
}

function requirePlc(did: Did): void {
  if (!isPlcDid(did))
    throw invalidRequest('Only a did:plc has a log of operations. Edit the document of a did:web instead.')
}
