/** The keys that seal push notifications, as the commands for managing them print them. */
import type { Answer } from '../admin-command.ts'
import { minute, table } from '../report.ts'

export const SENDER_KEYS_PATH = '/v1/admin/notifications/sender-keys'

export interface SenderKeys {
  keys: { kid: number; state: string; publicKey?: string; createdAt: string; changedAt: string }[]
}

const publicKeyOf = ({ state, publicKey }: SenderKeys['keys'][number]) =>
  publicKey ?? (state === 'revoked' ? '-' : 'does not open')

/** Returns the result of a command, with a sentence above the table. */
export function senderKeyAnswer({ keys }: SenderKeys, sentence?: string): Answer {
  const rows = keys.map((key) => [
    String(key.kid),
    key.state,
    minute(key.createdAt)!,
    minute(key.changedAt)!,
    publicKeyOf(key),
  ])
  const list = table(['KEY', 'STATE', 'CREATED', 'CHANGED', 'PUBLIC KEY'], rows)
  return { value: keys, text: sentence === undefined ? list : `${sentence}\n\n${list}` }
}
