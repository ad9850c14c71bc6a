/** Transfers as operators see them. Their codes are in no response. */
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { integerParam } from '../../../http/json-input.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { actorOf, operator } from '../../operations/operators/operators.ts'
import { listTransfers, type TransferPlace } from './transfer-store.ts'
import { cancelTransferAs } from './transferring.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50

function parseCursor(text: string | null): TransferPlace | null {
  if (text === null || text === '') return null
  const [createdAt = '', id = ''] = text.split('|')
  if (!/^\d{1,15}$/.test(createdAt) || id === '') throw invalidRequest('Malformed cursor')
  return { createdAt: Number(createdAt), id }
}

export const transferAdminRoutes = [
  route('GET', '/v1/admin/transfers', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const limit = integerParam(searchParams, 'limit', DEFAULT_PAGE)
      if (limit < 1 || limit > MAX_PAGE) throw invalidRequest(`limit must be from 1 to ${MAX_PAGE}`)
      const rows = await listTransfers(ctx.db, parseCursor(searchParams.get('cursor')), ctx.clock.now(), limit)
      const last = rows.at(-1)
      return {
        transfers: rows.map(({ id, did, handle, status, createdAt, expiresAt, acceptedAt, platform }) => ({
          id,
          did,
          handle: handle ?? undefined,
          status,
          createdAt: wireTime(createdAt),
          expiresAt: wireTime(expiresAt),
          acceptedAt: acceptedAt === null ? undefined : wireTime(acceptedAt),
          acceptedDevicePlatform: platform ?? undefined,
        })),
        cursor: last && rows.length === limit ? `${last.createdAt}|${last.id}` : undefined,
      }
    },
  }),

  route('POST', '/v1/admin/transfers/:id/cancel', {
    auth: operator(),
    async handler(call) {
      const { id = '' } = call.path
      const outcome = await cancelTransferAs(call, actorOf(call.caller), id)
      if (outcome === null) throw notFound('No such transfer')
      if (!outcome.ok) throw new Refusal(409, 'Conflict', `The transfer is ${outcome.status}`)
      return { id, status: 'cancelled', revokedDeviceCredential: outcome.revokedDevice }
    },
  }),
]
