/**
 * Restores an account here from an archive: its blobs, its repository and its preferences, in this order, so that
 * nothing that people see changes before every file has been read. A restore may break off anywhere and be repeated:
 * blobs that the account already has are skipped, and the repository is replaced in one transaction.
 */
import { Places } from '../../../base/places.ts'
import { Semaphore, SemaphoreFull } from '../../../base/semaphore.ts'
import { Shares } from '../../../base/shares.ts'
import { Stalled, steady, uploadPace } from '../../../base/unstalled.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden, invalidRequest, Refusal, serviceUnavailable } from '../../../http/errors.ts'
import type { Upload } from '../../../http/uploaded-form.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { accountLock } from '../../../platform/database/database.ts'
import { hasRoomFor, NoRoom, whileRoom } from '../../../platform/files/free-space.ts'
import { Spool } from '../../../platform/files/spool.ts'
import { clientHere } from '../../../platform/running/request-scope.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { putPreferences, type Preference } from '../../../protocol/preference-rules.ts'
import { accountStatus, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { quotaOf } from '../../identity/quotas/quotas.ts'
import { knownBlobs } from '../blobs/blobs.ts'
import { storePreferences } from '../preferences/preferences.ts'
import { importRepo } from '../sync/sync.ts'
import { AccountArchive, type ArchivedBlob } from './archive-reading.ts'

/** Archives that may arrive at the same time, in total, per network and per account, and that may wait for a place. */
const arrivingBounds = { size: 8, ofNetwork: 2, maxWaiting: 16, waitMillis: 10_000 }
const OF_ACCOUNT = 1
/** Received archives that may be processed at the same time, and that may wait for it. */
const RUNNING_IMPORTS = 2
const WAITING_IMPORTS = 16
/** Most bytes of an archive in addition to the repository and the blobs: tables, lists, names, its directory. */
const FURTHER_BYTES = 1024 ** 3
/** The largest body that the server takes at all. */
const MAX_ARCHIVE_BYTES = 16 * 1024 ** 3

/** Receiving and processing have separate bounds: a slow upload must not delay an archive that has arrived. */
const places = perContext(() => ({
  arriving: new Places(arrivingBounds),
  ofAccount: new Shares(OF_ACCOUNT),
  running: new Semaphore(RUNNING_IMPORTS, WAITING_IMPORTS),
}))

/** What was restored. `present` counts blobs that the account had already. */
export interface Restored {
  did: Did
  blobs: { stored: number; present: number }
  hasRepo: boolean
  preferences: number
}

/**
 * Receive an archive, by default the body of the request, and restore the account from it. Refuses with
 * `InvalidRequest` a broken archive, with `Forbidden` the archive of another account, with `PayloadTooLarge` one that
 * exceeds the bounds of the account, and with `RequestTimeout` an upload that stalls.
 */
export async function importArchive(exchange: Exchange, did: Did, upload: Upload = exchange.body): Promise<Restored> {
  const { ctx } = exchange
  const { arriving, ofAccount, running } = places(ctx)
  const leave = ofAccount.enter(did)
  if (leave === null) throw serviceUnavailable('Another archive of this account is being imported')
  const spool = new Spool(ctx.config.dataDir)
  try {
    await arriving.run(clientHere(), () => receive(ctx, did, upload, spool))
    return await running.run(() => restore(exchange, did, spool))
  } catch (error) {
    if (error instanceof SemaphoreFull) throw serviceUnavailable('Too many imports are already waiting')
    if (error instanceof Stalled) throw new Refusal(408, 'RequestTimeout', 'The upload has stalled')
    if (error instanceof NoRoom) throw noRoom()
    throw error
  } finally {
    spool.close()
    leave()
  }
}

async function receive(ctx: Context, did: Did, upload: Upload, spool: Spool): Promise<void> {
  const { repos, dataDir } = ctx.config
  const { blobBytes } = await quotaOf(ctx, ctx.db, did)
  const most = Math.min(MAX_ARCHIVE_BYTES, repos.maxImportSize + (blobBytes || MAX_ARCHIVE_BYTES) + FURTHER_BYTES)
  // Twice its size, because its content is stored in addition to the archive itself.
  await requireRoom(dataDir, 2 * (upload.announcedBytes ?? 0))
  for await (const chunk of whileRoom(steady(upload.stream(most), uploadPace), dataDir)) spool.append(chunk)
}

const noRoom = () => serviceUnavailable('The server has no room for this archive')

/** Throws `ServiceUnavailable` if the disk would not have its reserve left. */
async function requireRoom(dataDir: string, bytes: number): Promise<void> {
  if (!(await hasRoomFor(dataDir, bytes))) throw noRoom()
}

async function restore(exchange: Exchange, did: Did, spool: Spool): Promise<Restored> {
  const { repos, blobs, dataDir } = exchange.ctx.config
  const archive = await AccountArchive.open(spool, { repoBytes: repos.maxImportSize, blobBytes: blobs.maxBlobSize })
  if (archive.did !== did) throw forbidden(`The archive belongs to ${archive.did}`)
  // Compressed, the blobs may have a thousandth of their size, so check for the unpacked size as well.
  await requireRoom(dataDir, archive.blobBytes)
  const given = await archive.preferences()
  const outcome = putPreferences([], given, { personalDetails: true })
  if (!outcome.ok) throw invalidRequest(outcome.message)
  const preferences = outcome.stored
  const restored: Restored = { did, blobs: { stored: 0, present: 0 }, hasRepo: false, preferences: preferences.length }
  for await (const blob of archive.blobs()) {
    const isNew = await restoreBlob(exchange, did, blob)
    restored.blobs[isNew ? 'stored' : 'present']++
  }
  const repo = archive.repo()
  if (repo !== null) {
    await importRepo(exchange, did, repo)
    restored.hasRepo = true
  }
  await restorePreferences(exchange, did, preferences)
  return restored
}

/** Returns false if the account has the blob already, taken down or not. */
async function restoreBlob({ ctx, revalidate }: Exchange, did: Did, blob: ArchivedBlob): Promise<boolean> {
  const { name, cid, mediaType } = blob
  // Renew its grace, so that it stays until the repository refers to it.
  if (await knownBlobs.renew(ctx.db, did, cid, ctx.clock.now())) return false
  const isRight = await knownBlobs.take(
    ctx,
    did,
    { cid, declaredType: mediaType, bytes: blob.bytes() },
    {
      permit: () => undefined,
      record: (tx) => revalidate(tx),
    },
  )
  if (!isRight) throw invalidRequest(`The archive is not usable: the content of ${name} does not match its name`)
  return true
}

/** Replaces the account's preferences, unless the archive has none. */
async function restorePreferences(
  { ctx, revalidate }: Exchange,
  did: Did,
  preferences: readonly Preference[],
): Promise<void> {
  if (preferences.length === 0) return
  await ctx.db.transactionOn(accountLock(did), async (tx) => {
    refuseTakendown(await accountStatus(tx, did))
    await revalidate(tx)
    await storePreferences(tx, did, preferences)
  })
}
