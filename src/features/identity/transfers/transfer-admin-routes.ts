/** Transfers as operators see them. Their codes are in no response. */
import { route } from '../../../http/endpoint.ts'
import { notFound, Refusal } from '../../../http/errors.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { actorOf, operator } from '../../operations/operators/operators.ts'
import { listTransfers, type TransferPlace } from './transfer-store.ts'
import { cancelTransferAs } from './transferring.ts'

const transferPages: Pages<TransferPlace> = { cursor: byPair('createdAt', '|', 'id'), maxRows: 200, isStrict: true }

export const transferAdminRoutes = [
  route('GET', '/v1/admin/transfers', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, transferPages, (after, limit) =>
        listTransfers(ctx.db, after, ctx.clock.now(), limit),
      )
      return {
        transfers: rows.map(({ id, did, handle, status, createdAt, expiresAt, acceptedAt, platform }) => ({
          id,
          did,
          handle: handle ?? undefined,
          status,
          createdAt: wireTime(createdAt),
          expiresAt: wireTime(expiresAt),
          acceptedAt: wireTimeOrNull(acceptedAt) ?? undefined,
          acceptedDevicePlatform: platform ?? undefined,
        })),
        cursor,
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
