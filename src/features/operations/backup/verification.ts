/** Check that all stored data is consistent. `holdfast verify` and `holdfast restore` use this. */
import { existsSync } from 'node:fs'
import { concurrently } from '../../../base/concurrently.ts'
import { inWords } from '../../../base/operator-error.ts'
import { unthrottled } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'
import { inPages, sql } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { isStorageOutage } from '../../../http/errors.ts'
import { misfits } from '../../../platform/database/catalog.ts'
import { explainDatabase } from '../../../platform/database/database-words.ts'
import { explain } from '../../../platform/files/system-faults.ts'
import { BucketUnavailable } from '../../../platform/network/bucket-faults.ts'
import { blobBytes, hasBlobs, storedBlobs, type BlobStorage, type StoredBlob } from '../../data/blobs/blobs.ts'
import { repoChecks, repoHead, repoHeads } from '../../data/repo/repo.ts'
import { spaceFaults } from '../../data/spaces/spaces.ts'

const PAGE = 500
/** A bucket answers slowly, but serves many requests at once. */
const BUCKET_READS_AT_ONCE = 8

export interface VerifyReport {
  repos: number
  blobs: number
  faults: number
  /** What can be done about the faults, in words. */
  remedies: string[]
}

export interface VerifyOptions {
  /** Receives a description of each fault, including the DID or CID if it concerns one. */
  onFault(fault: string): void
  /** CIDs of blobs that are known to be missing. Their absence is not reported as a fault. */
  lostBlobs?: ReadonlySet<string>
  /** Skip the second, independent verification of each repository, which takes ten times as long as the first. */
  quick?: boolean
}

/** Check the database, all repositories and all blobs. Faults are reported, not thrown. */
export async function verifyEverything(
  ctx: Context,
  { onFault, lostBlobs = new Set(), quick = false }: VerifyOptions,
): Promise<VerifyReport> {
  const faults = { data: 0, blobs: 0 }
  const blameOn = (kind: keyof typeof faults) => (fault: string) => {
    faults[kind]++
    onFault(fault)
  }
  await verifyDatabase(ctx, blameOn('data'))
  const repos = await verifyRepos(ctx, quick, blameOn('data'))
  const blobs = await verifyBlobs(ctx, lostBlobs, blameOn('blobs'))
  const remedies = [faults.data > 0 && dataRemedy(ctx), faults.blobs > 0 && blobRemedy(ctx)].filter(
    (remedy) => remedy !== false,
  )
  return { repos, blobs, faults: faults.data + faults.blobs, remedies }
}

const dataRemedy = ({ db }: Context): string =>
  `Keep a copy of the damaged database elsewhere. "holdfast repair" shows what can be rebuilt of a repository. If that is not enough, restore a backup with "holdfast restore"${db.dialect.name === 'sqlite' ? '' : ", or one of PostgreSQL's own"}.`

function blobRemedy(ctx: Context): string {
  if (blobBytes.storage(ctx).isShared)
    return 'Bring the objects back from older versions that the bucket keeps, or from a copy of it.'
  if (ctx.config.blobMirror.bucket !== null)
    return 'Start the server, and run "holdfast sweep blob-scrub-full": it fetches missing and damaged blobs from the mirror.'
  return 'Put the files back from a backup. Without one, a blob comes back when its owner uploads it again.'
}

type Blame = VerifyOptions['onFault']

async function verifyDatabase({ db }: Context, blame: Blame): Promise<void> {
  for (const fault of [...(await db.integrityFaults()), ...(await misfits(db))]) blame(`database: ${fault}`)
  const bare = await db.all<{ did: Did }>(
    sql`SELECT did FROM account WHERE NOT EXISTS (SELECT 1 FROM repo WHERE repo.did = account.did)`,
  )
  for (const { did } of bare) blame(`${did}: the account has no repository`)
}

/** Returns how many repositories there are. */
async function verifyRepos(ctx: Context, quick: boolean, blame: Blame): Promise<number> {
  const start: { did: Did | null } = { did: null }
  let count = 0
  for await (const page of inPages(PAGE, start, ({ did }, limit) => repoHeads(ctx.db, did, limit))) {
    for (const { did } of page) {
      const faults = await faultsOf(ctx, did, quick).catch((error: unknown) => [unreadable(ctx, error)])
      const inSpaces = await faultsInSpaces(ctx, did).catch((error: unknown) => [unreadable(ctx, error)])
      for (const fault of [...faults, ...inSpaces]) blame(`${did}: ${fault}`)
    }
    count += page.length
  }
  return count
}

/** A read that fails because of damage is a fault of this item alone. Errors that concern everything are thrown. */
function unreadable({ config }: Context, error: unknown): string {
  const isDamage = String((error as { code?: unknown }).code) === 'SQLITE_CORRUPT'
  if (isStorageOutage(error) || error instanceof BucketUnavailable) throw error
  if (!isDamage && explainDatabase(error, config.databaseUrl) !== null) throw error
  const { message, path } = error as NodeJS.ErrnoException
  const words = path !== undefined && existsSync(path) ? explain(error, { path, folder: config.dataDir }) : null
  return words === null ? `cannot be read (${message})` : `cannot be read: ${inWords(words).message}`
}

async function faultsOf(ctx: Context, did: Did, quick: boolean): Promise<string[]> {
  const account = await accountOf(ctx.db, did)
  const key = account && (await signingKeyOf(ctx, ctx.db, did))
  if (key === null) return ['the repository belongs to no account']
  return ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return []
    const { faults } = await repoChecks.faults(reader, repo, key.publicKey)
    if (quick || faults.length > 0) return faults
    return (await repoChecks.secondOpinion(reader, repo, formatDidKey(key.publicKey))).map(
      (fault) => `independent verification: ${fault}`,
    )
  })
}

async function faultsInSpaces(ctx: Context, did: Did): Promise<string[]> {
  const whole = { throttled: unthrottled, after: '', isDue: () => false }
  return (await ctx.db.snapshot((reader) => spaceFaults(reader, did, whole))).faults
}

/** Check that every blob row has a file with the right bytes. Returns how many blobs there are. */
async function verifyBlobs(ctx: Context, lost: ReadonlySet<string>, blame: Blame): Promise<number> {
  const storage = blobBytes.storage(ctx)
  const isGone = lost.size === 0 && (await hasBlobs(ctx.db)) && !(await storage.isThere())
  if (isGone) blame(`blobs: the database lists some, but ${storage.place} is ${storage.isShared ? 'empty' : 'missing'}`)
  let count = 0
  for await (const page of storedBlobs(ctx.db, PAGE)) {
    count += page.length
    if (isGone) continue
    await concurrently(page, storage.isShared ? BUCKET_READS_AT_ONCE : 1, async (blob) => {
      const fault = await blobFault(storage, blob, lost).catch(
        (error: unknown) => `${storage.placeOf(blob.cid)} ${unreadable(ctx, error)}`,
      )
      if (fault !== null) blame(`blob ${blob.cid}: ${fault}`)
    })
  }
  return count
}

async function blobFault(
  storage: BlobStorage,
  { cid, size }: StoredBlob,
  lost: ReadonlySet<string>,
): Promise<string | null> {
  const content = await storage.digest(cid)
  if (content === null) return lost.has(cid) ? null : `${storage.placeOf(cid)} is missing`
  if (content.cid !== cid) return `${storage.placeOf(cid)} has other content`
  return content.size === size ? null : `the row says ${size} bytes, ${storage.placeOf(cid)} has ${content.size}`
}
