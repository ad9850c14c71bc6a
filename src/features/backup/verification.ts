/** Walking everything that is stored and checking that it holds together: `holdfast verify`, and the end of a restore. */
import type { Context } from '../../platform/context.ts'
import { sql } from '../../platform/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountOf, signingKeyOf } from '../accounts/accounts.ts'
import { BlobFiles, blobDir } from '../blobs/blob-files.ts'
import { repoFaults, repoHead, repoHeads } from '../repo/repo.ts'

const PAGE = 500

export interface VerifyReport {
  repos: number
  blobs: number
  faults: number
}

/** `onFault` hears each fault in words, with the DID or CID it is about. */
export async function verifyEverything(ctx: Context, onFault: (fault: string) => void): Promise<VerifyReport> {
  const report: VerifyReport = { repos: 0, blobs: 0, faults: 0 }
  const blame = (fault: string) => {
    report.faults++
    onFault(fault)
  }
  await verifyDatabase(ctx, blame)
  await verifyRepos(ctx, report, blame)
  await verifyBlobs(ctx, report, blame)
  return report
}

async function verifyDatabase({ db }: Context, blame: (fault: string) => void): Promise<void> {
  for (const row of await db.all<{ integrity_check: string }>(sql`PRAGMA integrity_check`)) if (row.integrity_check !== 'ok') blame(`database: ${row.integrity_check}`)
  const [ahead] = await db.all<{ count: number }>(sql`SELECT count(*) AS count FROM account WHERE NOT EXISTS (SELECT 1 FROM repo WHERE repo.did = account.did)`)
  if (ahead!.count > 0) blame(`${ahead!.count} accounts have no repository`)
}

async function verifyRepos(ctx: Context, report: VerifyReport, blame: (fault: string) => void): Promise<void> {
  for (let after: Did | null = null; ; ) {
    const page = await repoHeads(ctx.db, after, PAGE)
    for (const { did } of page) {
      report.repos++
      const account = await accountOf(ctx.db, did)
      const key = account && (await signingKeyOf(ctx, ctx.db, did))
      if (key === null) {
        blame(`${did}: a repository without an account`)
        continue
      }
      const faults = await ctx.db.snapshot(async (reader) => {
        const repo = await repoHead(reader, did)
        if (repo === null) return []
        return repoFaults(reader, repo, key.publicKey)
      })
      for (const fault of faults) blame(`${did}: ${fault}`)
    }
    if (page.length < PAGE) return
    after = page.at(-1)!.did
  }
}

/** Every blob with a row has its file, and the file has its bytes. */
async function verifyBlobs({ db, config }: Context, report: VerifyReport, blame: (fault: string) => void): Promise<void> {
  const files = new BlobFiles(blobDir(config))
  for (let after = ''; ; ) {
    const page = await db.all<{ cid: string; size: number }>(sql`
      SELECT cid, max(size) AS size FROM blob WHERE cid > ${after} GROUP BY cid ORDER BY cid LIMIT ${PAGE}`)
    for (const { cid, size } of page) {
      report.blobs++
      const content = await files.contentOf(cid)
      if (content === null) blame(`blob ${cid}: the file is missing`)
      else if (content.cid !== cid) blame(`blob ${cid}: the file has other bytes`)
      else if (content.size !== size) blame(`blob ${cid}: the row says ${size} bytes, the file has ${content.size}`)
    }
    if (page.length < PAGE) return
    after = page.at(-1)!.cid
  }
}
