import { adminCommand } from '../admin-command.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRevokeKeyCommand = adminCommand({
  summary: 'Permanently revoke a key that seals push notifications.',
  parameters: ['<key>'],
  details: `Deletes its secret. Devices reject messages sealed with it after they next fetch the keys, which they do whenever they
contact the server. If it was the active key, a new one is created when it is needed.`,
  async run({ server, positionals: [kid = ''] }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/${encodeURIComponent(kid)}/revoke`)
    return senderKeyAnswer(answer, `Key ${kid} is revoked.`)
  },
})
