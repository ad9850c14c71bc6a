/** Moving an account away, for clients. The new server needs only standard methods. */
import { Type } from '@sinclair/typebox'
import { perAccount, route, type Endpoint } from '../../../http/endpoint.ts'
import { readJson } from '../../../http/json-input.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import type { Context } from '../../../platform/context.ts'
import { owner } from '../../access/auth/auth.ts'
import { leaveAccount, leavingOf } from './moving-away.ts'

async function shown(ctx: Context, did: Did) {
  const { deleteAfter, ...leaving } = await leavingOf(ctx, did)
  return { ...leaving, deleteAfter: deleteAfter === null ? null : wireTime(deleteAfter) }
}

export const moveOutRoutes: readonly Endpoint[] = [
  route('GET', '/v1/move-out', {
    auth: owner,
    handler: ({ ctx, caller }) => shown(ctx, caller.did),
  }),

  route('POST', '/v1/move-out/leave', {
    auth: owner,
    limit: perAccount('answerMove'),
    async handler(call) {
      const { ctx, caller, body } = call
      const { deleteAfterDays = null } = await readJson(
        body,
        Type.Object({ deleteAfterDays: Type.Optional(Type.Integer()) }),
      )
      await leaveAccount(call, caller.did, deleteAfterDays)
      return shown(ctx, caller.did)
    },
  }),
]
