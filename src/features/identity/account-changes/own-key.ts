/**
 * A key of the account holder's own, above that of this server: with it the account can move without the help of this
 * server, which cannot undo that. The holder has the secret key before the identity names the public one, and this
 * server stores neither, so no failure leaves an identity under a key that is lost.
 */
import { Type } from '@sinclair/typebox'
import { route, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey, parseDidKey } from '../../../protocol/keys.ts'
import { isPlcDid, MAX_ROTATION_KEYS, type PlcState } from '../../../protocol/plc.ts'
import { owner } from '../../access/auth/auth.ts'
import { identityTurns } from '../identity/identity.ts'
import { signNext } from './next-operation.ts'
import { submitAndTell } from './told-operation.ts'

/**
 * Add a public key, as a did:key, above all other rotation keys of the identity, with the code that was mailed to
 * change it. Throws `InvalidRequest` if the text is no such key, if the identity has it or has no room, and what
 * `signNext` and `submitAndTell` throw.
 */
export async function addOwnKey(
  exchange: Exchange,
  did: Did,
  { publicKey, code }: { publicKey: string; code: string },
): Promise<void> {
  if (!isPlcDid(did)) throw invalidRequest('Not a did:plc')
  const key = parseDidKey(publicKey)
  if (key === null) throw invalidRequest('The recovery key is not a did:key of a supported curve')
  const added = formatDidKey(key)
  // In turn, so that the directory does not refuse it, or drop it later, for another operation after the same one.
  await identityTurns(exchange.ctx).run(did, async () => {
    const operation = await signNext(exchange, did, code, ({ rotationKeys }) => ({
      rotationKeys: keysWith(rotationKeys, added),
    }))
    await submitAndTell(exchange, did, operation, 'ownKeyAdded')
  })
}

function keysWith(keys: PlcState['rotationKeys'], added: string): string[] {
  if (keys.includes(added)) throw invalidRequest('The identity already has this key')
  if (keys.length >= MAX_ROTATION_KEYS) throw invalidRequest(`An identity may have at most ${MAX_ROTATION_KEYS} keys`)
  return [added, ...keys]
}

export const ownKeyRoutes = [
  /** The code is that of `com.atproto.identity.requestPlcOperationSignature`. */
  route('POST', '/v1/rotation-keys', {
    auth: owner,
    limit: { name: 'updateHandle', key: ({ caller }) => caller.did },
    async handler(call) {
      const given = await readJson(call.body, Type.Object({ publicKey: Type.String(), code: Type.String() }))
      await addOwnKey(call, call.caller.did, given)
      return { publicKey: given.publicKey }
    },
  }),
]
