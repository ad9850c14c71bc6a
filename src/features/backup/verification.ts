/** Check that all stored data is consistent. `holdfast verify` and `holdfast restore` use this. */
import { concurrently } from '../../base/concurrently.ts'
import type { Context } from '../../platform/context.ts'
import { inPages, sql } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { formatDidKey } from '../../protocol/keys.ts'
import { accountOf, signingKeyOf } from '../accounts/accounts.ts'
import { blobStorage, storedBlobs } from '../blobs/blobs.ts'
import { repoFaults, repoHead, repoHeads, secondOpinion } from '../repo/repo.ts'

const PAGE = 500
/** A bucket answers late, but many at once. */
const BUCKET_READS_AT_ONCE = 8

export interface VerifyReport {
  repos: number
  blobs: number
  faults: number
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
  let faults = 0
  const blame = (fault: string) => {
    faults++
    onFault(fault)
  }
  await verifyDatabase(ctx, blame)
  const repos = await verifyRepos(ctx, quick, blame)
  const blobs = await verifyBlobs(ctx, lostBlobs, blame)
  return { repos, blobs, faults }
}

type Blame = VerifyOptions['onFault']

async function verifyDatabase({ db }: Context, blame: Blame): Promise<void> {
  for (const fault of await db.integrityFaults()) blame(`database: ${fault}`)
  const ahead = await db.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM account WHERE NOT EXISTS (SELECT 1 FROM repo WHERE repo.did = account.did)`,
  )
  if (ahead!.count > 0) blame(`${ahead!.count} accounts have no repository`)
}

/** Returns how many repositories there are. */
async function verifyRepos(ctx: Context, quick: boolean, blame: Blame): Promise<number> {
  const start: { did: Did | null } = { did: null }
  let count = 0
  for await (const page of inPages(PAGE, start, ({ did }, limit) => repoHeads(ctx.db, did, limit))) {
    for (const { did } of page) for (const fault of await faultsOf(ctx, did, quick)) blame(`${did}: ${fault}`)
    count += page.length
  }
  return count
}

async function faultsOf(ctx: Context, did: Did, quick: boolean): Promise<string[]> {
  const account = await accountOf(ctx.db, did)
  const key = account && (await signingKeyOf(ctx, ctx.db, did))
  if (key === null) return ['the repository belongs to no account']
  return ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return []
    const faults = await repoFaults(reader, repo, key.publicKey)
    if (quick || faults.length > 0) return faults
    return (await secondOpinion(reader, repo, formatDidKey(key.publicKey))).map((fault) => `independent verification: ${fault}`)
  })
}

/** Check that every blob row has a file with the right bytes. Returns how many blobs there are. */
async function verifyBlobs(ctx: Context, lost: ReadonlySet<string>, blame: Blame): Promise<number> {
  const storage = blobStorage(ctx)
  let count = 0
  for await (const page of storedBlobs(ctx.db, PAGE)) {
    await concurrently(each(page), storage.isShared ? BUCKET_READS_AT_ONCE : 1, async ({ cid, size }) => {
      const content = await storage.digest(cid)
      if (content === null && !lost.has(cid)) blame(`blob ${cid}: the file is missing`)
      else if (content !== null && content.cid !== cid) blame(`blob ${cid}: the file does not match the CID`)
      else if (content !== null && content.size !== size) blame(`blob ${cid}: the row says ${size} bytes, the file has ${content.size}`)
    })
    count += page.length
  }
  return count
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items
}
