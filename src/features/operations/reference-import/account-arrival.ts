/**
 * Brings one account here, with everything that belongs to it. First its repository is staged and its blobs are stored;
 * then one transaction creates the account. If the process is killed before that, nothing of the account is visible,
 * and a repetition starts over.
 */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Tx } from '../../../platform/database/database.ts'
import { BatchFile } from '../../../platform/files/batch-file.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  insertAppPassword,
  keepSession,
  type FormerSession,
  type NewAppPassword,
} from '../../access/sessions/sessions.ts'
import { keepOAuthSession, type FormerOAuthSession } from '../../access/oauth/oauth.ts'
import {
  arrivalLocks,
  ownArrivedBlobs,
  placeBlob,
  replaceBlobReferences,
  type ArrivedBlob,
} from '../../data/blobs/blobs.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { storePreferences } from '../../data/preferences/preferences.ts'
import { adoptRepo, resignHead, setRecordTakedown, stageBlocks, stageRepo } from '../../data/repo/repo.ts'
import type { ImportedRecord } from '../../data/sync/sync.ts'
import { wrapAccountKey } from '../../identity/account-keys/account-keys.ts'
import { addArrivedAccount } from '../../identity/accounts/accounts.ts'
import { damagedBlob, formerRepoOf, missingBlob, type FormerRepo } from './former-repo.ts'
import type { FormerAccount } from './reference-accounts.ts'
import type { ReferenceActor } from './reference-actor.ts'
import type { FormerBlobs } from './reference-blobs.ts'
import { noteArrival } from './reference-import-store.ts'

/** Least time until a scheduled deletion here: the old server never deleted an account by itself. */
const MIN_TIME_TO_DELETION_MILLIS = 30 * DAY_MILLIS

/** What belongs to an account beside its repository. */
export interface Belongings {
  account: FormerAccount
  appPasswords: readonly { appPassword: NewAppPassword; hash: string }[]
  sessions: readonly FormerSession[]
  appSessions: readonly FormerOAuthSession[]
}

export interface Arriving extends Belongings {
  /** As in `formerStateOf`. */
  formerState: string
}

export interface Arrived {
  records: number
  blobs: number
  /** What is wrong with the blobs that were not brought here. */
  blobFaults: string[]
}

interface BlobUse {
  record: string
  cid: string
}

/** Throws `OperatorError` or `Refusal` if the repository is damaged; then nothing of the account is stored here. */
export async function bringAccount(
  ctx: Context,
  belongings: Arriving,
  actor: ReferenceActor,
  formerBlobs: FormerBlobs,
): Promise<Arrived> {
  const { did } = belongings.account
  const former = formerRepoOf(actor, did)
  const { commit } = former.repo
  const uses = new BatchFile<BlobUse>(ctx.config.dataDir)
  const counts = { records: 0, nodes: 0 }
  try {
    const { blobs, faults } = await placeBlobs(ctx, did, actor, formerBlobs)
    await stageRepo(ctx, commit.rev, async (id) => {
      for await (const page of former.repo.pages()) {
        await stageBlocks(ctx, id, commit.rev, {
          nodes: page.nodes,
          records: page.records.map((record) => asWritten(actor, did, record)),
        })
        uses.add(page.records.flatMap(({ path, blobs }) => blobs.map((cid) => ({ record: path, cid }))))
        counts.records += page.records.length
        counts.nodes += page.nodes.length
      }
      const locks = [accountLock(did), ...arrivalLocks(blobs)]
      await ctx.db.transactionOn(locks, (tx) => settle(ctx, tx, { belongings, actor, former, id, uses, counts, blobs }))
    })
    return { records: counts.records, blobs: blobs.length, blobFaults: faults }
  } finally {
    uses.close()
  }
}

function asWritten(actor: ReferenceActor, did: Did, record: ImportedRecord): ImportedRecord {
  const written = actor.writtenAt(did, record.path)
  return written === null ? record : { ...record, written }
}

async function placeBlobs(
  ctx: Context,
  did: Did,
  actor: ReferenceActor,
  formerBlobs: FormerBlobs,
): Promise<{ blobs: ArrivedBlob[]; faults: string[] }> {
  const blobs: ArrivedBlob[] = []
  const faults: string[] = []
  for (const blob of actor.blobs()) {
    const { cid, mimeType, takedownRef } = blob
    const bytes = await formerBlobs.open(did, blob)
    const size = bytes === null ? null : await placeBlob(ctx, cid, bytes)
    if (size === null) faults.push(bytes === null ? missingBlob(cid) : damagedBlob(cid))
    else blobs.push({ did, cid, mimeType, size, takedownRef })
  }
  return { blobs, faults }
}

interface Settling {
  belongings: Arriving
  actor: ReferenceActor
  former: FormerRepo
  /** The staged repository. */
  id: number
  uses: BatchFile<BlobUse>
  counts: { records: number; nodes: number }
  blobs: readonly ArrivedBlob[]
}

async function settle(
  ctx: Context,
  tx: Tx,
  { belongings, actor, former, id, uses, counts, blobs }: Settling,
): Promise<void> {
  const { account } = belongings
  const { did } = account
  const { commit, root, blocks } = former.repo
  const { rev, data } = commit
  const now = ctx.clock.now()
  await addArrivedAccount(tx, {
    ...account,
    ...wrapAccountKey(ctx, 'k256', actor.secret),
    deleteAfter: account.deleteAfter === null ? null : Math.max(account.deleteAfter, now + MIN_TIME_TO_DELETION_MILLIS),
  })
  await replaceBlobReferences(tx, { did, rev, now, batches: uses.batches() })
  await adoptRepo(tx, did, id, { rev, head: root, data, commitBlock: blocks.get(root)! }, counts)
  for (const { path, ref } of actor.takendownRecords()) await setRecordTakedown(tx, { did, path, ref })
  await ownArrivedBlobs(ctx, tx, blobs, now)
  const preferences = actor.preferences()
  if (preferences.length > 0) await storePreferences(tx, did, preferences)
  for (const { appPassword, hash } of belongings.appPasswords) await insertAppPassword(tx, did, appPassword, hash)
  for (const session of belongings.sessions) await keepSession(tx, session)
  for (const session of belongings.appSessions) await keepOAuthSession(tx, session)
  await noteArrival(tx, { did, formerState: belongings.formerState }, now)
  if (former.isSigned) return
  const event = await resignHead(ctx, tx, did, actor.key)
  const isActive = account.takedownRef === null && account.deactivatedAt === null
  if (isActive) await sequenceEvents(ctx, tx, [event])
}
