/** Receives a blob: bytes first, then row. A crash in between leaves unowned bytes, never a row without bytes. */
import { Refusal } from '../../../http/errors.ts'
import type { RequestBody } from '../../../http/body.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountStatus, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { refuseBlobBytes, warnOfQuota, type Usage } from '../../identity/quotas/quotas.ts'
import type { IncomingBlob } from './blob-storage.ts'
import { reportBlob } from '../../../http/hooks.ts'
import type { Verdict } from './blob-hook.ts'
import { mirrorAtOnce } from './blob-mirror.ts'
import { QUARANTINE, quarantineBlob } from './blob-quarantine.ts'
import { keepBlob } from './blob-removal.ts'
import { blobTakedown, ownsSize, upsertUpload, type BlobRow } from './blob-store.ts'
import { noteUsage, usageWith } from './blob-usage.ts'
import { mimeTypeOf } from './mime-type.ts'
import { blobStorage } from './open-storage.ts'
import { UnfinishedUpload } from './unfinished-uploads.ts'

/** Checks of an upload beyond the bounds of its account. */
interface Admission {
  /**
   * Quarantine a blob that the hook refuses instead of failing: a refused blob must not stop the move of an account.
   */
  keepsRefused?: true
  /** Gets the detected type. Throws if the caller may not upload it. */
  permit(mimeType: string): void
  /** Runs in the transaction that makes the blob part of the account. If it throws, the upload has not happened. */
  record(tx: Tx, blob: BlobRow): Promise<void>
}

/**
 * Receive a blob, and make it part of the account.
 *
 * Refuses with `PayloadTooLarge` above the maximum size of a blob or the storage of the account, and with
 * `ServiceUnavailable` if the account is sending too many bytes at a time. An upload that breaks off leaves nothing.
 */
export async function uploadBlob(
  ctx: Context,
  did: Did,
  body: RequestBody,
  { permit, record }: Admission,
): Promise<BlobRow> {
  if (body.length !== null) await admitLength(ctx, did, body.length)
  using unfinished = new UnfinishedUpload(ctx, did)
  await using incoming = await blobStorage(ctx).receive(unfinished.counted(body.stream(ctx.config.blobs.maxBlobSize)))
  // Await here, because the received bytes are deleted when this function returns.
  return await keepUpload(ctx, did, incoming, body.contentType, { permit, record })
}

interface NamedUpload {
  cid: string
  declaredType: string | null
  bytes: AsyncIterable<Uint8Array>
}

/**
 * Receive a blob whose CID is known, and make it part of the account as an upload. If the bytes have another CID,
 * stores nothing and returns false. Refuses as `uploadBlob` does.
 */
export async function takeBlob(
  ctx: Context,
  did: Did,
  { cid, declaredType, bytes }: NamedUpload,
  admission: Admission,
): Promise<boolean> {
  await using incoming = await blobStorage(ctx).receive(bytes)
  if (incoming.cid !== cid) return false
  await keepUpload(ctx, did, incoming, declaredType, { ...admission, keepsRefused: true })
  return true
}

async function keepUpload(
  ctx: Context,
  did: Did,
  incoming: IncomingBlob,
  declaredType: string | null,
  { permit, record, keepsRefused = undefined }: Admission,
): Promise<BlobRow> {
  const { cid, size } = incoming
  const blob: BlobRow = { did, cid, size, mimeType: await mimeTypeOf(incoming.head, declaredType) }
  permit(blob.mimeType)
  const isNew = (await admitBlob(ctx, ctx.db, blob)) !== null
  const verdict = isNew && ctx.config.blobHook.url !== null ? await verdictOn(ctx, blob, incoming) : null
  if (verdict?.decision === 'refuse' && !keepsRefused)
    throw new Refusal(400, 'BlobRefused', 'This file is not accepted')
  await keepBlob(ctx, incoming, accountLock(did), async (tx) => {
    // An upload may take long; its account may have been deleted in the meantime.
    refuseTakendown(await accountStatus(tx, did))
    const used = await admitBlob(ctx, tx, blob)
    await upsertUpload(ctx, tx, blob, ctx.clock.now())
    if (used !== null) {
      noteUsage(ctx, did, used)
      await warnOfQuota(ctx, tx, did, { what: 'blobs', ...used })
    }
    if (verdict !== null && verdict.decision !== 'allow') await setAside(ctx, tx, blob, verdict)
    await record(tx, blob)
  })
  await mirrorAtOnce(ctx, blob)
  return blob
}

async function verdictOn(ctx: Context, blob: BlobRow, incoming: IncomingBlob): Promise<Verdict> {
  const verdict = await (await import('./blob-hook.ts')).askBlobHook(ctx, blob, incoming)
  const { did, cid } = blob
  if (verdict.decision !== 'allow')
    ctx.log.info('blob not accepted by the hook', { did, cid, reason: verdict.decision })
  return verdict
}

/**
 * Quarantine the blob and report it. If moderators do not decide before the end of the quarantine, the blob is taken
 * down.
 */
async function setAside(ctx: Context, tx: Tx, { did, cid }: BlobRow, { reason }: Verdict): Promise<void> {
  const now = ctx.clock.now()
  const endsAt = now + ctx.config.cases.quarantineSecs * 1000
  await quarantineBlob(tx, { did, cid, endsAt, thenRef: 'quarantine ended' }, now)
  await reportBlob(ctx, tx, { did, cid, reason })
}

/**
 * Refuse an upload beyond the quota before it is sent. If the account owns a blob of the same length, let it be sent:
 * only its bytes show whether it is the same blob.
 */
async function admitLength(ctx: Context, did: Did, length: number): Promise<void> {
  const { after, quota } = await usageWith(ctx, ctx.db, did, length)
  if (quota === 0 || after <= quota || (await ownsSize(ctx.db, did, length))) return
  refuseBlobBytes(after, quota)
}

/** Returns null for a blob that the account already owns, which does not count again. */
async function admitBlob(ctx: Context, reader: Reader, { did, cid, size }: BlobRow): Promise<Usage | null> {
  const owned = await blobTakedown(reader, did, cid)
  if (owned !== null) {
    if (owned.ref === QUARANTINE) throw new Refusal(400, 'InvalidRequest', 'Blob is in quarantine, cannot re-upload')
    if (owned.ref !== null) throw new Refusal(400, 'InvalidRequest', 'Blob has been takendown, cannot re-upload')
    return null
  }
  const usage = await usageWith(ctx, reader, did, size)
  refuseBlobBytes(usage.after, usage.quota)
  return usage
}
