import { accountCommand, nameOf } from './operator-accounts.ts'
import { bytes, facts, minute } from '../report.ts'

interface Usage {
  recordsCount: number
  commitsCount: number
  lastActive: string | null
}

interface Storage {
  blobCount: number
  totalBytes: number
  /** 0: no limit. */
  quotaBytes: number
  quotaUsedPct: number
  largestBlob: { cid: string; size: number } | null
}

export const accountUsageCommand = accountCommand({
  summary: 'Show how much an account stores.',
  details: '',
  async run({ server, account }) {
    const about = `/v1/accounts/${encodeURIComponent(account.did)}`
    const [usage, storage] = await Promise.all([
      server.get<Usage>(`${about}/usage`),
      server.get<Storage>(`${about}/storage`),
    ])
    const text = facts({
      account: nameOf(account),
      records: usage.recordsCount,
      'commits in the log': usage.commitsCount,
      blobs: storage.blobCount,
      storage:
        storage.quotaBytes === 0
          ? bytes(storage.totalBytes)
          : `${bytes(storage.totalBytes)} of ${bytes(storage.quotaBytes)} (${storage.quotaUsedPct} %)`,
      'largest blob': storage.largestBlob && `${bytes(storage.largestBlob.size)} ${storage.largestBlob.cid}`,
      'last record': minute(usage.lastActive) ?? 'none',
    })
    return { value: { did: account.did, handle: account.handle, ...usage, ...storage }, text }
  },
})
