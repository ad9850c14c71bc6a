/** Endpoints with which a wallet adds handles to its account and removes them. */
import { Type } from '@sinclair/typebox'
import { perAccount, route } from '../../../http/endpoint.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { wallet } from '../../access/auth/auth.ts'
import { addHandle, removeHandle } from './further-handles.ts'

/** Shares the limit of handle changes, because each change is an event for the whole network. */
const changesOf = perAccount('updateHandle')

export const furtherHandleRoutes = [
  route('POST', '/v1/handles', {
    auth: wallet,
    limit: changesOf,
    async handler(call) {
      const { caller, body } = call
      const { accountId, handle } = await readJson(
        body,
        Type.Object({ accountId: Type.String(), handle: Type.String() }),
      )
      if (accountId !== caller.did) throw authenticationRequired('The session belongs to another account')
      // This server itself answers for its domains, so no DNS provider has to propagate the handle.
      return { handle: await addHandle(call, caller.did, handle), dns_status: 'not_configured', did: caller.did }
    },
  }),
  route('DELETE', '/v1/handles/:handle', {
    auth: wallet,
    limit: changesOf,
    async handler(call) {
      await removeHandle(call, call.caller.did, call.path.handle ?? '')
      return new Response(null, { status: 204 })
    },
  }),
]
