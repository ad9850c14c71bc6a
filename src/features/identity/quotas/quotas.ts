/**
 * The door of quotas: how many records, and how many bytes of blobs, an account may store.
 *
 * An operator may give an account quotas of its own, and replace the configured quotas of all other accounts. A write
 * reads its quotas with rows that it reads anyway, so a change applies to the next write on every node.
 */
import { Refusal } from '../../../http/errors.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { findQuota, type SetQuota } from './quota-store.ts'

export {
  findDefaultQuota,
  findOwnQuota,
  maxBlobBytesColumn,
  maxBlobBytesOf,
  maxRecordsColumn,
  updateDefaultQuota,
  updateOwnQuota,
  type SetQuota,
} from './quota-store.ts'
export { reachesShare, warnOfQuota, type Usage } from './quota-warning.ts'

/** What an account may store. 0: no limit. */
export interface Quota {
  records: number
  blobBytes: number
}

/** Completes the quotas that operators have set with those of the configuration. */
export const effectiveQuota = ({ repos, blobs }: Config, { records, blobBytes }: SetQuota): Quota => ({
  records: records ?? repos.maxRecordsPerAccount,
  blobBytes: blobBytes ?? blobs.maxStoragePerAccount,
})

/** What the account may store. */
export const quotaOf = async ({ config }: Pick<Context, 'config'>, reader: Reader, did: Did): Promise<Quota> =>
  effectiveQuota(config, await findQuota(reader, did))

/** Refuses with `PayloadTooLarge` if the account would have more records than its quota. */
export function refuseRecords(count: number, quota: number): void {
  if (quota > 0 && count > quota)
    throw new Refusal(413, 'PayloadTooLarge', `The account has a quota of ${quota} records`)
}

/** Refuses with `PayloadTooLarge` if the account would have more bytes of blobs than its quota. */
export function refuseBlobBytes(bytes: number, quota: number): void {
  if (quota > 0 && bytes > quota)
    throw new Refusal(413, 'PayloadTooLarge', `The account has a quota of ${quota} bytes of blobs`)
}
