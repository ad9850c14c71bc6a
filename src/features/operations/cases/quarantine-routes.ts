/** Endpoints for blobs in quarantine. */
import { Type } from '@sinclair/typebox'
import { DAY_SECS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { parseDid, wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { endQuarantine, listQuarantines, quarantineBlob } from '../../data/blobs/blobs.ts'
import { actorOf, operator, recordAudit } from '../operators/operators.ts'

export const MAX_QUARANTINE_SECS = 365 * DAY_SECS

/** What happens at the end of a quarantine: everyone can read the blob again, or it is taken down. */
const quarantineEnds = { release: null, takedown: 'quarantine ended' } as const

const place = { did: Type.String(), cid: Type.String({ maxLength: 200 }) }
const quarantinePages: Pages<{ endsAt: Millis; cid: string }> = { cursor: byPair('endsAt', '|', 'cid'), maxRows: 100 }

function didOf(text: string): Did {
  const did = parseDid(text)
  if (did === null) throw invalidRequest('did must be a DID')
  return did
}

const noBlob = () => notFound('No such blob, or it is taken down')

export const quarantineRoutes = [
  route('GET', '/v1/admin/blobs/quarantine', {
    auth: operator('moderate'),
    async handler({ ctx, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, quarantinePages, (after, limit) =>
        listQuarantines(ctx.db, after, limit),
      )
      const blobs = rows.map(({ placedAt, endsAt, thenRef, ...blob }) => ({
        ...blob,
        placedAt: wireTime(placedAt),
        endsAt: wireTime(endsAt),
        atEnd: thenRef === null ? 'release' : 'takedown',
      }))
      return { blobs, cursor }
    },
  }),

  /** `secs`: counted from now, also for a blob that is already in quarantine. */
  route('POST', '/v1/admin/blobs/quarantine', {
    auth: operator('moderate'),
    async handler(call) {
      const { ctx, caller, body } = call
      const given = await readJson(
        body,
        Type.Object({
          ...place,
          secs: Type.Integer({ minimum: 60, maximum: MAX_QUARANTINE_SECS }),
          atEnd: Type.Optional(Type.Union([Type.Literal('release'), Type.Literal('takedown')])),
        }),
      )
      const { cid, secs, atEnd = 'release' } = given
      const did = didOf(given.did)
      const now = ctx.clock.now()
      const endsAt = now + secs * 1000
      await ctx.db.transaction(async (tx) => {
        if (!(await quarantineBlob(tx, { did, cid, endsAt, thenRef: quarantineEnds[atEnd] }, now))) throw noBlob()
        const detail = `${did} until ${wireTime(endsAt)}, then ${atEnd}`
        await recordAudit(call, tx, {
          actor: actorOf(caller),
          action: 'blob_quarantined',
          subject: cid,
          account: did,
          detail,
        })
      })
      return { did, cid, endsAt: wireTime(endsAt), atEnd }
    },
  }),

  route('POST', '/v1/admin/blobs/release', {
    auth: operator('moderate'),
    async handler(call) {
      const { cid, did: given } = await readJson(call.body, Type.Object(place))
      const did = didOf(given)
      await call.ctx.db.transaction(async (tx) => {
        if (!(await endQuarantine(tx, did, cid, null))) throw notFound('The blob is not in quarantine')
        const actor = actorOf(call.caller)
        await recordAudit(call, tx, { actor, action: 'blob_released', subject: cid, account: did, detail: did })
      })
      return { did, cid }
    },
  }),
]
