/** Pending accounts as operators see them: their progress and age, but no keys. */
import { route } from '../../../http/endpoint.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { operator } from '../../operations/operators/operators.ts'
import { listCeremonies, type CeremonyPlace, type ListedCeremony } from './ceremony-store.ts'

const ceremonyPages: Pages<CeremonyPlace> = { cursor: byPair('createdAt', '|', 'id'), maxRows: 100 }

const ceremonyView = (
  { id, handle, tier, did, state, createdAt, sessionExpiresAt, hasCode }: ListedCeremony,
  now: Millis,
) => ({
  accountId: id,
  handle,
  tier,
  did,
  state,
  createdAt: wireTime(createdAt),
  ageSecs: Math.max(0, Math.floor((now - createdAt) / 1000)),
  /** Whether the code of the account is still unredeemed. */
  hasCode,
  /** Whether a wallet can continue without showing the code again. */
  hasSession: sessionExpiresAt !== null && sessionExpiresAt > now,
})

export const ceremonyAdminRoutes = [
  route('GET', '/v1/admin/ceremonies', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, ceremonyPages, (after, limit) =>
        listCeremonies(ctx.db, after, limit),
      )
      const now = ctx.clock.now()
      return { ceremonies: rows.map((row) => ceremonyView(row, now)), cursor }
    },
  }),
]
