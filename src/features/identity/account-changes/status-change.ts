/** The limit on status and identity events that an account can send to the whole network. */
import type { CallLimit } from '../../../http/endpoint.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export const statusChange: CallLimit<{ caller: { did: Did } }> = {
  name: 'statusChange',
  key: ({ caller }) => caller.did,
}
