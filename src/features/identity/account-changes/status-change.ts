/** The limit on what an account has the whole network told, of its status or its identity. */
import type { CallLimit } from '../../../http/endpoint.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export const statusChange: CallLimit<{ caller: { did: Did } }> = {
  name: 'statusChange',
  key: ({ caller }) => caller.did,
}
