/**
 * A rotation key of the account holder's own, ranked above the key of this server. With it, the holder can move the
 * account without the help of this server, and this server cannot undo the move. The holder has the secret key before
 * the identity names the public one, and this server stores neither, so no failure leaves an identity under a lost key.
 */
import { Type } from '@sinclair/typebox'
import { perAccount, route, type Exchange } from '../../../http/endpoint.ts'
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
 * Add a public key, as a did:key, above all other rotation keys of the identity, with the code that was mailed for the
 * change. Throws `InvalidRequest` if the text is no such key, if the identity already names the key or has no room for
 * another, and what `signNext` and `submitAndTell` throw.
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
  // Within the turn of the identity: otherwise the directory could refuse or later drop this operation, because another
  // one follows the same `prev`.
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
  /** Takes the code that `com.atproto.identity.requestPlcOperationSignature` mails. */
  route('POST', '/v1/rotation-keys', {
    auth: owner,
    limit: perAccount('updateHandle'),
    async handler(call) {
      const given = await readJson(call.body, Type.Object({ publicKey: Type.String(), code: Type.String() }))
      await addOwnKey(call, call.caller.did, given)
      return { publicKey: given.publicKey }
    },
  }),
]
