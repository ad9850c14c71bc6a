/** What operators see of pending accounts: how far they are and how old, and no key. */
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { clamp, integerParam } from '../../../http/json-input.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { operator } from '../../operations/operators/operators.ts'
import { stateOfCeremony } from './ceremony-state.ts'
import { listCeremonies, type Ceremony, type CeremonyPlace } from './ceremony-store.ts'

const MAX_PAGE = 100
const DEFAULT_PAGE = 50

const formatPlace = ({ createdAt, id }: CeremonyPlace): string => `${createdAt}|${id}`

function parsePlace(text: string | null): CeremonyPlace | null {
  if (text === null || text === '') return null
  const [, createdAt, id] = text.match(/^(\d{1,15})\|(.+)$/) ?? []
  if (createdAt === undefined || id === undefined) throw invalidRequest('Malformed cursor')
  return { createdAt: Number(createdAt), id }
}

const ceremonyView = (ceremony: Ceremony & { hasCode: boolean }, now: Millis) => {
  const { id, handle, tier, key, did, registeredAt, createdAt, sessionExpiresAt, hasCode } = ceremony
  return {
    accountId: id,
    handle,
    tier,
    did,
    state: stateOfCeremony({ hasKey: key !== null, hasDid: did !== null, isRegistered: registeredAt !== null }),
    createdAt: wireTime(createdAt),
    ageSecs: Math.max(0, Math.floor((now - createdAt) / 1000)),
    /** Whether the code of the account is still unredeemed. */
    hasCode,
    /** Whether a wallet can continue without showing the code again. */
    hasSession: sessionExpiresAt !== null && sessionExpiresAt > now,
  }
}

export const ceremonyAdminRoutes = [
  route('GET', '/v1/admin/ceremonies', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const limit = clamp(integerParam(searchParams, 'limit', DEFAULT_PAGE), 1, MAX_PAGE)
      const rows = await listCeremonies(ctx.db, parsePlace(searchParams.get('cursor')), limit)
      const now = ctx.clock.now()
      return {
        ceremonies: rows.map((row) => ceremonyView(row, now)),
        ...(rows.length === limit ? { cursor: formatPlace(rows.at(-1)!) } : {}),
      }
    },
  }),
]
