/** Account reports for operators: the list, the lookup, storage and usage. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { pageOf, type Pages } from '../../../http/paged-list.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { eventPage } from '../../identity/account-events/account-events.ts'
import { accountNamed, furtherHandlesOf } from '../../identity/accounts/accounts.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { familyOf } from '../../agents/children/children.ts'
import { effectiveQuota, findDefaultQuota, quotaOf } from '../../identity/quotas/quotas.ts'
import { escrowState } from '../../identity/escrow/escrow.ts'
import { hostingStateOf } from '../../identity/web-documents/web-documents.ts'
import { countFlaggedAccounts, findFlags, type Flag } from '../../data/labels/labels.ts'
import { namedAccount, operator } from '../operators/operators.ts'
import {
  listAccounts,
  statuses,
  storageOf,
  usageOf,
  type AccountFilter,
  type ReportedStatus,
} from './account-report-store.ts'

/** Returns the used share of the quota in percent, with one decimal; 0 without a quota. */
const percent = (bytes: number, quota: number) => (quota === 0 ? 0 : Math.round((bytes / quota) * 1000) / 10)

const accountPages: Pages<NonNullable<AccountFilter['after']>> = {
  cursor: {
    write: ({ flagged, did }) => `${flagged}:${did}`,
    // A malformed cursor is the start of the list.
    read(text) {
      const match = /^([01]):(did:.+)$/.exec(text)
      return match && { flagged: match[1] === '1' ? 1 : 0, did: match[2]! }
    },
  },
  maxRows: 100,
}

function parseStatus(text: string | null): ReportedStatus | null {
  if (text === null || text === '') return null
  const status = statuses.find((known) => known === text)
  if (status === undefined) throw invalidRequest(`status must be one of ${statuses.join(', ')}`)
  return status
}

const flagView = ({ val, labeler, labelledAt }: Flag) => ({ val, labelerDid: labeler, cts: wireTime(labelledAt) })

export const accountReportRoutes = [
  route('GET', '/v1/admin/accounts', {
    auth: operator('readAccounts'),
    async handler({ ctx: { db, clock, config }, url: { searchParams } }) {
      const now = clock.now()
      const filter = { status: parseStatus(searchParams.get('status')), text: searchParams.get('q') || null }
      const { rows, cursor } = await pageOf(searchParams, accountPages, (after, limit) =>
        listAccounts(db, { ...filter, after }, now, limit),
      )
      const flags = await findFlags(
        db,
        rows.map(({ did }) => did),
        now,
      )
      const flagsOf = Map.groupBy(flags, ({ did }) => did)
      const set = await findDefaultQuota(db)
      const limitOf = (blobBytes: number | null) => effectiveQuota(config, { records: null, blobBytes }).blobBytes
      return {
        accounts: rows.map((row) => ({
          did: row.did,
          handle: row.handle,
          createdAt: wireTime(row.createdAt),
          status: statusOf(row),
          totalBytes: row.totalBytes,
          quotaUsedPct: percent(row.totalBytes, limitOf(row.maxBlobBytes)),
          didWebHosting: row.isHosted === 1,
          flags: (flagsOf.get(row.did) ?? []).map(flagView),
        })),
        quotaBytes: limitOf(set.blobBytes),
        flaggedTotal: await countFlaggedAccounts(db, now),
        cursor,
      }
    },
  }),

  // The DID, handle or email address is sent in the body, because paths end up in logs.
  route('POST', '/v1/admin/accounts/lookup', {
    auth: operator('readAccounts'),
    async handler({ ctx, body }) {
      const { db, clock } = ctx
      const { account: name } = await readJson(body, Type.Object({ account: Type.String() }))
      const account = await accountNamed(db, name)
      if (account === null) throw notFound('No such account')
      const {
        did,
        handle,
        email,
        emailConfirmedAt,
        createdAt,
        deactivatedAt,
        takedownRef,
        hasPassword,
        invitesDisabled,
      } = account
      return {
        did,
        handle,
        email,
        emailConfirmedAt: wireTimeOrNull(emailConfirmedAt),
        createdAt: wireTime(createdAt),
        status: statusOf(account),
        deactivatedAt: wireTimeOrNull(deactivatedAt),
        takedownRef,
        hasPassword,
        furtherHandles: await furtherHandlesOf(db, did),
        escrow: (await escrowState(ctx, db, did)).state,
        didWebHosting: (await hostingStateOf(db, did)).isHosted,
        invitesDisabled,
        flags: (await findFlags(db, [did], clock.now())).map(flagView),
        ...(await familyOf(db, did)),
      }
    },
  }),

  // The events name the networks from which a person signs in, as the list of sessions does.
  route('GET', '/v1/admin/accounts/:did/events', {
    auth: operator('readAccounts'),
    async handler({ ctx, path, url }) {
      const { did } = await namedAccount(ctx.db, path)
      return { did, ...(await eventPage(ctx, did, url.searchParams)) }
    },
  }),

  route('GET', '/v1/accounts/:did/usage', {
    auth: operator('readAccounts'),
    async handler({ ctx: { db }, path }) {
      const { did } = await namedAccount(db, path)
      const usage = await usageOf(db, did)
      return { ...usage, lastActive: wireTimeOrNull(usage.lastActive) }
    },
  }),

  route('GET', '/v1/accounts/:did/storage', {
    auth: operator('readAccounts'),
    async handler({ ctx, path }) {
      const { db } = ctx
      const { did } = await namedAccount(db, path)
      const { blobCount, totalBytes, largestCid, largestSize } = await storageOf(db, did)
      const quotaBytes = (await quotaOf(ctx, db, did)).blobBytes
      return {
        blobCount,
        totalBytes,
        uploadedBlobCount: blobCount,
        uploadedBlobBytes: totalBytes,
        quotaBytes,
        quotaUsedPct: percent(totalBytes, quotaBytes),
        largestBlob: largestCid === null ? null : { cid: largestCid, size: largestSize },
      }
    },
  }),
]
