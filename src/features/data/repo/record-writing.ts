/** Writes of account holders, apps and agents. */
import { authenticationRequired, invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Tx } from '../../../platform/database/database.ts'
import { type Cid, parseCid } from '../../../protocol/cid.ts'
import {
  parseDid,
  parseRecordKey,
  recordUri,
  type AtUri,
  type Did,
  type Nsid,
  type RecordKey,
} from '../../../protocol/identifiers.ts'
import { accountAt, accountNotFound, requireActive } from '../../identity/accounts/accounts.ts'
import { onceSettled } from '../../identity/account-keys/account-keys.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import {
  isAgent,
  isRecorded,
  recordUse,
  revalidateAgent,
  revalidationOf,
  type AccessCaller,
  type RecordedCaller,
} from '../../access/callers/callers.ts'
import { requirePermission } from '../../access/auth/auth.ts'
import { applyCommit, nextRecordKey, type CommitJob, type CommitMeta, type Write } from './commit-writer.ts'
import { recordTotal } from './repo-store.ts'
import { PROFILE, withPresentImages } from './profile-images.ts'
import { prepareRecord, type ValidationStatus } from './record-preparation.ts'

type Action = 'create' | 'update' | 'put' | 'delete'

export type RecordWriteInput = { collection: Nsid; swapRecord?: string | null } & (
  | { action: 'create'; rkey?: RecordKey; record: Record<string, unknown>; replacesSame?: boolean }
  | { action: 'update' | 'put'; rkey: RecordKey; record: Record<string, unknown> }
  | { action: 'delete'; rkey: RecordKey; lenient?: boolean }
)

export interface WriteInput {
  writes: readonly RecordWriteInput[]
  validate?: boolean
  swapCommit?: string
}

export interface WriteOutcome {
  /** Null if there was nothing to do. */
  commit: CommitMeta | null
  /** In the order of the writes. */
  results: WriteResult[]
}

export interface WriteResult {
  uri: AtUri
  /** Null for a delete. */
  cid: Cid | null
  validationStatus?: ValidationStatus
}

/** Actions that the grant of an app must cover. */
const neededActions: Record<Action, readonly ('create' | 'update' | 'delete')[]> = {
  create: ['create'],
  update: ['update'],
  put: ['create', 'update'],
  delete: ['delete'],
}

/**
 * Apply the writes in one commit, all or none. Results are in the order of the writes.
 *
 * Throws what `prepareRecord` and `applyCommit` throw, and refuses writes that the grant does not cover. Waits if the
 * account's key is being replaced, and throws `ServiceUnavailable` if that takes too long.
 */
export async function writeRecords(
  ctx: Context,
  caller: AccessCaller,
  did: Did,
  input: WriteInput,
): Promise<WriteOutcome> {
  requirePermission(caller, (permissions) => {
    for (const { action, collection } of input.writes)
      for (const needed of neededActions[action]) permissions.assertRepo({ collection, action: needed })
  })
  if (!isAgent(caller) || !caller.ofChild) await requireConfirmedAddress(ctx, did)
  const prepared = await Promise.all(input.writes.map((write) => prepareWrite(ctx, did, write, input.validate)))
  const job = {
    did,
    writes: prepared.map(({ write }) => write),
    swapCommit: cidOf(input.swapCommit) ?? undefined,
    revalidation: revalidationOf(ctx, caller),
  }
  const apply = isRecorded(caller)
    ? (tx: Tx) => recordedCommit(ctx, tx, caller, job)
    : (tx: Tx) => applyCommit(ctx, tx, job)
  let commit: CommitMeta | null
  try {
    commit = await ctx.db.transactionOn(accountLock(did), apply)
  } catch (error) {
    await onceSettled(ctx, did, error)
    commit = await ctx.db.transactionOn(accountLock(did), apply)
  }
  return {
    commit,
    results: prepared.map(({ write, status }) => ({
      uri: recordUri(did, `${write.collection}/${write.rkey}`),
      cid: write.action === 'delete' ? null : write.record.cid,
      ...(status !== null && { validationStatus: status }),
    })),
  }
}

/**
 * Throws `EmailNotConfirmed` if the server requires a confirmed address for the first record, and the account has an
 * address that is not confirmed and no record yet.
 */
export async function requireConfirmedAddress({ config, db }: Context, did: Did): Promise<void> {
  if (!config.signup.requireConfirmedAddress) return
  const account = await accountAt(db, did)
  if (account === null || account.email === null || account.emailConfirmedAt !== null) return
  if ((await recordTotal(db, did)) === 0)
    throw new Refusal(403, 'EmailNotConfirmed', 'Confirm your email address before you write the first record')
}

/**
 * Apply the writes of an agent or a delegate, and record them with the commit. Throws `InvalidToken` (401) if the agent
 * or the delegation has ended meanwhile.
 */
async function recordedCommit(
  ctx: Context,
  tx: Tx,
  caller: RecordedCaller,
  job: CommitJob,
): Promise<CommitMeta | null> {
  const commit = await applyCommit(ctx, tx, job)
  if (commit !== null) await recordUse(ctx, tx, caller, { type: 'repo_write', detail: changesOf(commit) })
  else if (isAgent(caller)) await revalidateAgent(ctx, tx, caller)
  return commit
}

function changesOf({ ops, rev }: CommitMeta): Record<string, unknown> {
  const count = (action: string) => ops.filter((op) => op.action === action).length
  const collections = [...new Set(ops.map(({ path }) => path.slice(0, path.indexOf('/'))))].toSorted()
  return { creates: count('create'), updates: count('update'), deletes: count('delete'), collections, rev }
}

async function prepareWrite(
  ctx: Context,
  did: Did,
  input: RecordWriteInput,
  validate: boolean | undefined,
): Promise<{ write: Write; status: ValidationStatus | null }> {
  const { collection, rkey = nextRecordKey(ctx) } = input
  if (parseRecordKey(rkey) === null) throw invalidRequest(`Invalid record key: ${rkey}`)
  const swapRecord = cidOf(input.swapRecord)
  if (input.action === 'delete')
    return { write: { action: 'delete', collection, rkey, swapRecord, lenient: input.lenient }, status: null }
  const written =
    input.action === 'put' && collection === PROFILE ? await withPresentImages(ctx.db, did, input.record) : input.record
  const { record, status } = await prepareRecord(ctx, { collection, rkey, record: written, validate })
  const place = { collection, rkey, swapRecord, record }
  return {
    write:
      input.action === 'create'
        ? { action: 'create', replacesSame: input.replacesSame, ...place }
        : { action: input.action, ...place },
    status,
  }
}

function cidOf<T extends null | undefined>(text: string | T): Cid | T {
  if (typeof text !== 'string') return text
  const cid = parseCid(text)
  if (cid === null) throw invalidRequest(`Invalid CID: ${text}`)
  return cid
}

/**
 * Returns the DID of `repo`, a DID or handle. Refuses with `AuthenticationRequired` if the repository is not the
 * caller's own.
 */
export async function requireOwnRepo(ctx: Context, caller: Pick<AccessCaller, 'did'>, repo: string): Promise<Did> {
  const did = parseDid(repo)
  // The account's status is checked in the transaction, where it counts.
  if (did === caller.did) return did
  const account = await accountAt(ctx.db, repo)
  if (account === null) throw accountNotFound()
  requireActive(statusOf(account))
  if (account.did !== caller.did) throw authenticationRequired()
  return account.did
}
