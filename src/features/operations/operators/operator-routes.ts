/** Endpoints for pairing operator devices, and for the audit log. */
import { createHash, randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { endOperatorDevice } from '../../../http/hooks.ts'
import { readJson } from '../../../http/json-input.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { isSignedBy, registrationText } from '../../../protocol/admin-request.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { auditActions, listAudit } from './audit-store.ts'
import {
  findOperatorDevice,
  insertOperatorDevice,
  insertPairingCode,
  listOperatorDevices,
  revokeOperatorDevice,
  usePairingCode,
  type OperatorDevice,
} from './operator-device-store.ts'
import { actorOf, guess, operator, recordAudit, requireStanding, unauthorized } from './operators.ts'

const PAIRING_CODE_BYTES = 16
const DEFAULT_PAIRING_MINUTES = 5
/** Maximum length of labels and platform names, in characters. */
const MAX_NAME_LENGTH = 100
const MAX_PAGE_ROWS = 100

const hashOf = (code: string) => createHash('sha256').update(code).digest('hex')

const deviceView = ({ id, label, publicKey, platform, createdAt, lastSeenAt, revokedAt }: OperatorDevice) => ({
  id,
  label,
  publicKey,
  platform,
  scopes: 'full',
  status: revokedAt === null ? 'active' : 'revoked',
  createdAt: wireTime(createdAt),
  lastSeenAt: wireTimeOrNull(lastSeenAt),
  revokedAt: wireTimeOrNull(revokedAt),
})

const name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: '\\S' })

export const operatorRoutes = [
  route('POST', '/v1/admin/pairing-codes', {
    auth: operator('master'),
    async handler(call) {
      const { ctx, caller, body } = call
      const empty = body.announcedBytes === 0 || !body.isAnnounced
      const { expiresInMinutes = DEFAULT_PAIRING_MINUTES } = empty
        ? {}
        : await readJson(
            body,
            Type.Object({ expiresInMinutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 60 })) }),
          )
      const pairingCode = randomBytes(PAIRING_CODE_BYTES).toString('base64url')
      const now = ctx.clock.now()
      const expiresAt = now + expiresInMinutes * MINUTE_MILLIS
      await ctx.db.transaction(async (tx) => {
        await insertPairingCode(tx, { codeHash: hashOf(pairingCode), expiresAt })
        await recordAudit(call, tx, { actor: actorOf(caller), action: 'pairing_code_minted' })
      })
      return { pairingCode, expiresAt: wireTime(expiresAt) }
    },
  }),

  route('POST', '/v1/admin/devices', {
    async handler(call) {
      const { ctx, body } = call
      const given = await readJson(
        body,
        Type.Object({
          pairingCode: Type.String(),
          label: name,
          publicKey: Type.String(),
          platform: name,
          timestamp: Type.Integer(),
          signature: Type.String(),
        }),
      )
      const { pairingCode, label, publicKey, platform, timestamp, signature } = given
      const now = ctx.clock.now()
      const deviceId = await guess(call, async () => {
        if (!isSignedBy(publicKey, registrationText(pairingCode, publicKey, timestamp), signature)) return null
        // One transaction: a wrong code registers nothing, and two devices cannot use the same code.
        return ctx.db.transaction(async (tx) => {
          if (!(await usePairingCode(tx, hashOf(pairingCode), now))) return null
          const id = crypto.randomUUID()
          await insertOperatorDevice(tx, { id, label, publicKey, platform, createdAt: now })
          await recordAudit(call, tx, { actor: 'pairing-code', action: 'device_registered', subject: id })
          return id
        })
      })
      if (deviceId === null) throw unauthorized()
      return { deviceId }
    },
  }),

  route('GET', '/v1/admin/devices', {
    auth: operator(),
    handler: async ({ ctx }) => ({ devices: (await listOperatorDevices(ctx.db)).map(deviceView) }),
  }),

  route('POST', '/v1/admin/devices/:id/revoke', {
    auth: operator('manageRoles'),
    async handler(call) {
      const { ctx, caller, path } = call
      const { id = '' } = path
      const now = ctx.clock.now()
      const device = await ctx.db.transaction(async (tx) => {
        const entry = { actor: actorOf(caller), action: 'device_revoked', subject: id } as const
        // First, because a device may revoke itself.
        await requireStanding(call, tx, entry)
        if (await revokeOperatorDevice(tx, id, now)) {
          await endOperatorDevice(ctx, tx, id)
          await recordAudit(call, tx, { ...entry, isDone: true })
        }
        return findOperatorDevice(tx, id)
      })
      if (device === null) throw notFound('No such device')
      return { device: deviceView(device) }
    },
  }),

  route('GET', '/v1/admin/audit', {
    auth: operator('readAudit'),
    async handler({ ctx, url: { searchParams } }) {
      const action = searchParams.get('action')
      if (action !== null && !(auditActions as readonly string[]).includes(action))
        throw invalidRequest('unknown action')
      const filter = { action, actor: searchParams.get('actor'), subject: searchParams.get('subject') }
      const { rows, cursor } = await pageOf(searchParams, { cursor: bySeq, maxRows: MAX_PAGE_ROWS }, (before, limit) =>
        listAudit(ctx.db, { ...filter, beforeSeq: before?.seq ?? null }, limit),
      )
      return {
        events: rows.map(({ id, actor, action: did, subject, outcome, detail, reason, createdAt }) => ({
          id,
          actor,
          action: did,
          subject: subject ?? undefined,
          outcome,
          detail: detail ?? undefined,
          reason: reason ?? undefined,
          createdAt: wireTime(createdAt),
        })),
        cursor,
      }
    },
  }),
]
