/**
 * What happened to authorization requests that wallets decide, for operators: who was asked, by which app, and what
 * came of it.
 */
import { route } from '../../../http/endpoint.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { listConsentEvents, type ConsentEvent } from '../../access/oauth/oauth.ts'
import { operator } from '../operators/operators.ts'

const MAX_PAGE_ROWS = 200

const eventView = ({ id, requestHash, action, accountDid, clientId, detail, createdAt }: ConsentEvent) => ({
  id,
  request: requestHash,
  action,
  subject: accountDid ?? undefined,
  clientId,
  detail,
  createdAt: wireTime(createdAt),
})

export const consentEventRoutes = [
  route('GET', '/v1/admin/consents', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const accountDid = searchParams.get('subject')
      const { rows, cursor } = await pageOf(searchParams, { cursor: bySeq, maxRows: MAX_PAGE_ROWS }, (before, limit) =>
        listConsentEvents(ctx.db, { accountDid, beforeSeq: before?.seq ?? null }, limit),
      )
      return { events: rows.map(eventView), cursor }
    },
  }),
]
