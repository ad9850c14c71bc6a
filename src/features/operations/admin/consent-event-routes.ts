/**
 * What happened to authorization requests that wallets decide, for operators: who was asked, by which app, and what
 * came of it.
 */
import { route } from '../../../http/endpoint.ts'
import { beforeCursor, clamp, integerParam } from '../../../http/json-input.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { listConsentEvents, type ConsentEvent } from '../../access/oauth/oauth.ts'
import { operator } from '../operators/operators.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50

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
      const limit = clamp(integerParam(searchParams, 'limit', DEFAULT_PAGE), 1, MAX_PAGE)
      const filter = { accountDid: searchParams.get('subject'), beforeSeq: beforeCursor(searchParams) }
      const events = await listConsentEvents(ctx.db, filter, limit)
      return { events: events.map(eventView), cursor: events.length === limit ? String(events.at(-1)!.seq) : undefined }
    },
  }),
]
