/**
 * Imports a repository from another server.
 *
 * The whole archive is checked while a new repository is built from it beside the present one, in small transactions.
 * One short transaction then replaces the present one. Until then nothing of the new one is visible, and an import that
 * fails or is killed leaves only rows that the `abandoned-repos` sweep deletes.
 */
import { invalidRequest, Refusal, serviceUnavailable } from '../../../http/errors.ts'
import { BatchFile } from '../../../platform/files/batch-file.ts'
import { CHECKED_BYTES, hasRoomFor, NoRoom, whileRoom } from '../../../platform/files/free-space.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Client } from '../../../base/fair-queue.ts'
import { NoPlace, Places } from '../../../base/places.ts'
import { Semaphore, SemaphoreFull } from '../../../base/semaphore.ts'
import { Shares } from '../../../base/shares.ts'
import { Stalled, steady, uploadPace } from '../../../base/unstalled.ts'
import { clientHere } from '../../../platform/running/request-scope.ts'
import type { Block } from '../../../protocol/car.ts'
import { signCommit, unsignedCommit, verifyCommit, type Commit } from '../../../protocol/commit.ts'
import { publishedSigningKey } from '../../../protocol/did-document.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { formatDidKey, parseDidKey, type PublicKey } from '../../../protocol/keys.ts'
import { tidMicros } from '../../../protocol/tid.ts'
import { accountStatus, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../../identity/account-events/account-events.ts'
import {
  isSigningHeld,
  onceSettled,
  settledKeyOf,
  settledTransaction,
  SigningHeld,
} from '../../identity/account-keys/account-keys.ts'
import { quotaOf, refuseRecords } from '../../identity/quotas/quotas.ts'
import { replaceBlobReferences } from '../blobs/blobs.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { documentOfAccount } from '../../identity/web-documents/web-documents.ts'
import { adoptRepo, nextRev, repoHead, stageBlocks, stageRepo, syncEvent, type RepoHead } from '../repo/repo.ts'
import { ImportedRepo, type ImportedRecord } from './imported-repo.ts'

/**
 * Uploads that may arrive at the same time: in total, per network, and per account. An account has two places because
 * its broken upload may still be open; archives that this server fetches take one, too.
 */
const arrivingBounds = { inAll: 8, ofNetwork: 4, ofAccount: 2 }
/** Archives that may wait for a place to arrive, and for how long. */
const WAITING_ARCHIVES = 16
const WAIT_MILLIS = 10_000
const RETRY_AFTER_SECS = 30
/** Received archives that may be processed at the same time, and that may wait for it. */
const RUNNING_IMPORTS = 2
const WAITING_IMPORTS = 16
/**
 * Most references to blobs, a blob counted once for each record. One transaction stores all of them while other writes
 * wait, some ten microseconds for each.
 */
const MAX_REFERENCES = 500_000
/** Relays refuse revisions that are further in the future. */
const MAX_AHEAD_MICROS = 5 * 60 * 1_000_000

interface BlobUse {
  record: string
  cid: string
}

/** Receiving and processing have separate bounds, so that a slow upload does not delay an archive that has arrived. */
const places = perContext(() => ({
  arriving: new Places({ size: arrivingBounds.inAll, maxWaiting: WAITING_ARCHIVES, waitMillis: WAIT_MILLIS }),
  ofNetwork: new Shares(arrivingBounds.ofNetwork),
  ofAccount: new Shares(arrivingBounds.ofAccount),
  running: new Semaphore(RUNNING_IMPORTS, WAITING_IMPORTS),
}))

/**
 * Replace the account's repository by the one in an archive (`com.atproto.repo.importRepo`).
 *
 * Refuses with `InvalidRequest` an archive that is malformed or signed by another key, `Forbidden` another account's
 * repository, `PayloadTooLarge` one with more records than the quota or too many references to blobs, `Conflict` if the
 * repository changed meanwhile, `RequestTimeout` if the upload stalls, and `ServiceUnavailable` if too many imports
 * run, the disk has no room, or the key of the account is being replaced.
 */
export const importRepo = (by: By, did: Did, archive: AsyncIterable<Uint8Array>): Promise<void> =>
  importArriving(by, did, archive, { uploader: clientHere() })

/**
 * Like `importRepo`, for an archive that this server fetches. The caller bounds how many archives arrive at a time: an
 * archive that waits for its turn there is not refused because others arrive slowly. `before`: the head that the import
 * replaces, if the caller has read it before.
 */
export const importFetchedRepo = (
  by: By,
  did: Did,
  archive: AsyncIterable<Uint8Array>,
  before?: RepoHead | null,
): Promise<void> => importArriving(by, did, archive, { uploader: null, before })

interface Arrival {
  /** Null if this server fetches the archive. */
  uploader: Client | null
  before?: RepoHead | null | undefined
}

async function importArriving(by: By, did: Did, archive: AsyncIterable<Uint8Array>, arrival: Arrival): Promise<void> {
  const { uploader } = arrival
  const { ctx } = by
  const { ofAccount, ofNetwork } = places(ctx)
  const leaves = [ofAccount.enter(did), ...(uploader === null ? [] : [ofNetwork.enter(uploader.network)])]
  try {
    if (leaves.includes(null)) throw notNow('Too many of your imports are already running')
    await takeOver(by, did, archive, arrival)
    ctx.metrics.count('migration_imports_total', { outcome: 'ok' })
  } catch (error) {
    ctx.metrics.count('migration_imports_total', { outcome: error instanceof Refusal ? 'refused' : 'failed' })
    if (error instanceof SemaphoreFull || error instanceof NoPlace) throw notNow('Too many imports are already waiting')
    if (error instanceof Stalled) throw new Refusal(408, 'RequestTimeout', 'The upload has stalled')
    if (error instanceof NoRoom) throw notNow('The server has no room for this archive')
    throw error
  } finally {
    for (const leave of leaves) leave?.()
  }
}

const notNow = (message: string) => serviceUnavailable(message, RETRY_AFTER_SECS)

const tooManyReferences = () =>
  new Refusal(413, 'PayloadTooLarge', `The records refer to more than ${MAX_REFERENCES} blobs`)

async function takeOver(
  by: By,
  did: Did,
  archive: AsyncIterable<Uint8Array>,
  { uploader, before: known }: Arrival,
): Promise<void> {
  const { ctx } = by
  // If a new key is awaited, wait: it signs the present head too, which would then differ from `before`.
  if (await isSigningHeld(ctx.db, did)) await onceSettled(ctx, did, new SigningHeld())
  const before = known === undefined ? await repoHead(ctx.db, did) : known
  const { arriving, running } = places(ctx)
  const { dataDir } = ctx.config
  const receive = () => ImportedRepo.receive(did, whileRoom(steady(archive, uploadPace), dataDir), dataDir)
  const imported = await (uploader === null ? receive() : arriving.run(uploader, receive))
  try {
    await running.run(() => replaceBy(by, did, imported, before))
  } finally {
    imported.close()
  }
}

async function replaceBy(by: By, did: Did, imported: ImportedRepo, before: RepoHead | null): Promise<void> {
  const { ctx } = by
  const uses = new BatchFile<BlobUse>(ctx.config.dataDir)
  try {
    const { commit } = imported
    if (tidMicros(commit.rev) > ctx.clock.now() * 1000 + MAX_AHEAD_MICROS)
      throw invalidRequest('The revision of the commit is in the future')
    await checkSignature(ctx, did, commit)
    // Nothing to import: the stored tree is the same, and its commit is not older.
    if (before !== null && before.data.equals(commit.data) && before.rev >= commit.rev) return
    const quota = await quotaOf(ctx, ctx.db, did)
    const counts = { records: 0, nodes: 0 }
    let references = 0
    const rev = nextRev(ctx, before !== null && before.rev > commit.rev ? before.rev : commit.rev)
    let unchecked = 0
    await stageRepo(ctx, rev, async (id) => {
      for await (const page of imported.pages()) {
        unchecked += bytesOf(page.nodes) + bytesOf(page.records.map(({ value }) => ({ bytes: value })))
        if (unchecked >= CHECKED_BYTES) {
          unchecked = 0
          if (!(await hasRoomFor(ctx.config.dataDir, 0))) throw new NoRoom('the disk has only its reserve left')
        }
        counts.records += page.records.length
        counts.nodes += page.nodes.length
        refuseRecords(counts.records, quota.records)
        const used = page.records.flatMap(usesOf)
        references += used.length
        if (references > MAX_REFERENCES) throw tooManyReferences()
        await stageBlocks(ctx, id, rev, page)
        uses.add(used)
      }
      await adopt(by, did, { id, rev, commit, before, uses, counts })
    })
  } finally {
    uses.close()
  }
}

/**
 * Accepts a commit signed by the key of the DID document. Accepts any commit if that key is already ours, because the
 * old key is then unknown, or if the document names no readable key. Throws `SigningHeld` if the document may name a
 * key that the account does not have yet.
 */
async function checkSignature(ctx: Context, did: Did, commit: Commit): Promise<void> {
  const key = await statedKey(ctx, did)
  if (key !== null && verifyCommit(commit, key)) return
  const own = await settledKeyOf(ctx, ctx.db, did)
  if (key !== null && own !== null && formatDidKey(key) !== formatDidKey(own.publicKey)) {
    throw invalidRequest('The commit is not signed by the key of the DID document')
  }
  ctx.log.warn('imported a commit signed with an unknown earlier key', { did, rev: commit.rev })
}

/** The signing key that the current DID document names; null if there is none that can be read. */
async function statedKey(ctx: Context, did: Did): Promise<PublicKey | null> {
  const resolution = await documentOfAccount(ctx, did)
  const stated = resolution.ok ? publishedSigningKey(resolution.document) : null
  return stated === null ? null : parseDidKey(stated)
}

const bytesOf = (blocks: readonly Pick<Block, 'bytes'>[]): number =>
  blocks.reduce((sum, { bytes }) => sum + bytes.length, 0)

const usesOf = ({ path, blobs }: ImportedRecord): BlobUse[] => blobs.map((cid) => ({ record: path, cid }))

interface Adoption {
  id: number
  rev: Tid
  commit: Commit
  /** Head of the account's repository when the import began. */
  before: RepoHead | null
  uses: BatchFile<BlobUse>
  /** Number of records and nodes in the archive. */
  counts: { records: number; nodes: number }
}

async function adopt(by: By, did: Did, { id, rev, commit, before, uses, counts }: Adoption): Promise<void> {
  const { ctx } = by
  await settledTransaction(ctx, did, async (tx) => {
    await revalidate(by, tx)
    const status = await accountStatus(tx, did)
    refuseTakendown(status)
    const present = await repoHead(tx, did)
    if (present?.rev !== before?.rev) throw new Refusal(409, 'Conflict', 'The repository was changed during the import')
    refuseRecords(counts.records, (await quotaOf(ctx, tx, did)).records)
    const key = await settledKeyOf(ctx, tx, did)
    const head: Block = signCommit(unsignedCommit(did, rev, commit.data), key!)
    const now = ctx.clock.now()
    await replaceBlobReferences(tx, { did, rev, now, batches: uses.batches() })
    await adoptRepo(tx, did, id, { rev, head: head.cid, data: commit.data, commitBlock: head.bytes }, counts)
    // No #sync for an inactive account: activation will emit one.
    if (status === 'active') await sequenceEvents(ctx, tx, [syncEvent(did, rev, head)])
    await announceIn(tx, by, 'imported', did)
  })
}
