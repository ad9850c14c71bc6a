import { adminCommand } from '../admin-command.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRotateKeyCommand = adminCommand({
  summary: 'Seal push notifications with a new key.',
  details: `Retires the current key: devices still accept what it sealed. Revoke it at once if it may be compromised, or else after
an hour, when no message that it sealed is still in transit.`,
  async run({ server }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/rotate`)
    return senderKeyAnswer(answer, `Key ${answer.keys[0]!.kid} now seals push notifications.`)
  },
})
