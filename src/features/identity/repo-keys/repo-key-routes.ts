/** The two endpoints with which a wallet replaces the key of a repository. */
import { Type } from '@sinclair/typebox'
import { perAccount, route, type Guard } from '../../../http/endpoint.ts'
import { readJson } from '../../../http/json-input.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import { owner, type OwnerCaller } from '../../access/auth/auth.ts'
import { completeRotation, stageKey } from './key-rotation.ts'

const rotations = perAccount('rotateRepoKey')

/** Requires a configured master key, because keys that identities name are stored only under such a key. */
const ownerWithMasterKey: Guard<OwnerCaller> = {
  ...owner,
  async check(exchange) {
    const caller = await owner.check(exchange)
    requireMasterKey(exchange.ctx)
    return caller
  },
}

export const repoKeyRoutes = [
  route('POST', '/v1/repo-keys/rotation', {
    auth: ownerWithMasterKey,
    limit: rotations,
    handler: async (call) => ({ signingKey: await stageKey(call, call.caller.did) }),
  }),

  route('POST', '/v1/repo-keys/rotation/complete', {
    auth: ownerWithMasterKey,
    limit: rotations,
    async handler(call) {
      const { operation } = await readJson(call.body, Type.Object({ operation: Type.Object({}) }))
      return { signingKey: await completeRotation(call, call.caller.did, operation) }
    },
  }),
]
