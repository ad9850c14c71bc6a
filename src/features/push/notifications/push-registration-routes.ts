/**
 * How devices register for pushes, and how they unregister. Registering needs a configured relay. Unregistering always
 * works, so that devices can clean up after the operator has switched pushes off.
 */
import { Type } from '@sinclair/typebox'
import type { RequestBody } from '../../../http/body.ts'
import { perAccount, route } from '../../../http/endpoint.ts'
import { forbidden, invalidRequest, methodNotImplemented } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { parsePushKey } from '../../../protocol/push/push-sealing.ts'
import { accountItself } from '../../access/auth/auth.ts'
import { isDevicePaired, operator } from '../../operations/operators/operators.ts'
import { registerDevice, registerOperatorDevice, removeRegistration, type PushDevice } from './push-registrations.ts'

const MAX_DEVICE_ID_CHARS = 128

function requireRelay({ notifications }: Pick<Config, 'notifications'>): void {
  if (notifications.relay === null) throw methodNotImplemented()
}

type Members = Readonly<Record<string, unknown>>

/** Returns the members of the body, unchecked. */
const membersOf = async (body: RequestBody): Promise<Members> =>
  (await readJson(body, Type.Record(Type.String(), Type.Unknown()))) as Members

/** Returns a text member if it passes the check. Throws `InvalidRequest`. */
function textMember(members: Members, name: string, rule: string, isValid: (text: string) => boolean): string {
  const value = members[name]
  if (typeof value !== 'string' || !isValid(value)) throw invalidRequest(`${name} must be ${rule}`)
  return value
}

function deviceIdIn(members: Members): string {
  return textMember(members, 'deviceUuid', `a text of 1 to ${MAX_DEVICE_ID_CHARS} characters`, (text) => {
    return text !== '' && text.length <= MAX_DEVICE_ID_CHARS
  })
}

/** Throws `InvalidRequest`, which names the member. */
function deviceIn(members: Members): Omit<PushDevice, 'deviceId'> {
  const publicKey = textMember(
    members,
    'notificationPublicKey',
    'the did:key of a P-256 key',
    (text) => parsePushKey(text) !== null,
  )
  const token = textMember(members, 'apnsToken', 'a text of 1 to 200 hexadecimal digits', (text) =>
    /^[0-9a-f]{1,200}$/i.test(text),
  )
  const topic = textMember(members, 'apnsTopic', 'a text of 1 to 200 letters, digits, dots and hyphens', (text) => {
    return /^[A-Za-z0-9.-]{1,200}$/.test(text)
  })
  const { ping = false } = members
  if (typeof ping !== 'boolean') throw invalidRequest('ping must be true or false')
  return { publicKey, token: token.toLowerCase(), topic, isPing: ping }
}

export const pushRegistrationRoutes = [
  route('POST', '/v1/notifications/register', {
    auth: accountItself,
    limit: perAccount('registerPush'),
    async handler(call) {
      const { ctx, caller, body } = call
      requireRelay(ctx.config)
      const members = await membersOf(body)
      await registerDevice(call, caller.did, { deviceId: deviceIdIn(members), ...deviceIn(members) })
      return { status: 'pending' }
    },
  }),

  route('DELETE', '/v1/notifications/register/:deviceUuid', {
    auth: accountItself,
    async handler({ ctx, caller, revalidate, path: { deviceUuid: deviceId = '' } }) {
      const isRemoved = await ctx.db.transaction(async (tx) => {
        await revalidate(tx)
        return removeRegistration(ctx, tx, { owner: caller.did, deviceId })
      })
      return { status: isRemoved ? 'deleted' : 'absent' }
    },
  }),

  route('POST', '/v1/admin/notifications/register', {
    auth: operator(),
    async handler({ ctx, caller, body }) {
      requireRelay(ctx.config)
      if (caller.kind !== 'device') throw invalidRequest('A request that a paired device signs is required')
      const { deviceId } = caller
      const device = { deviceId, ...deviceIn(await membersOf(body)) }
      if (!(await registerOperatorDevice(ctx, device, (tx) => isDevicePaired(tx, deviceId))))
        throw forbidden('This device has been revoked')
      return { status: 'pending' }
    },
  }),
]
