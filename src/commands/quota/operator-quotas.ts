/** What the quota commands share. */
import { facts, bytes } from '../report.ts'
import { findAccount, nameOf } from '../account/operator-accounts.ts'
import type { Server } from '../operator-server.ts'

export interface QuotaView {
  /** The quota in force. 0: no limit. */
  quota: { records: number; blobBytes: number }
  /** What was set for the account, or for all accounts; null if nothing was. */
  own: { records: number | null; blobBytes: number | null }
  /** Present for an account only. */
  used?: { records: number; blobBytes: number }
}

export const OF_WHOM = `Without an account: the quotas of all accounts that have none of their own. Until they are set here,
repos.max_records_per_account and blobs.max_storage_per_account apply.`

/** The path of the quotas of an account, or of all, and the name to show. */
export async function quotaTarget(server: Server, name: string | undefined): Promise<{ path: string; whose: string }> {
  if (name === undefined) return { path: '/v1/admin/quota', whose: 'all accounts without their own' }
  const account = await findAccount(server, name)
  return { path: `/v1/admin/accounts/${encodeURIComponent(account.did)}/quota`, whose: nameOf(account) }
}

export const quotaText = (whose: string, { quota, own, used }: QuotaView): string =>
  facts({
    'quota of': whose,
    records: line(String, quota.records, own.records, used?.records),
    blobs: line(bytes, quota.blobBytes, own.blobBytes, used?.blobBytes),
  })

function line(inWords: (count: number) => string, limit: number, own: number | null, used: number | undefined): string {
  const allowed = limit === 0 ? 'no limit' : inWords(limit)
  const usage = used === undefined ? allowed : `${inWords(used)} of ${allowed}`
  return own === null ? `${usage} (default)` : usage
}
