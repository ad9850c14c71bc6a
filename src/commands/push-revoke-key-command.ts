import { operated } from './operated.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRevokeKeyCommand = operated({
  name: 'push revoke-key',
  summary: 'Revoke a key that seals push notifications, for good.',
  parameters: ['<key>'],
  details: `Its secret is deleted. Devices believe nothing that it sealed once they have fetched the keys again, which they do
whenever they contact the server. If it was the key that seals, another is made when it is needed.`,
  async run({ server, positionals: [kid = ''] }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/${encodeURIComponent(kid)}/revoke`)
    return senderKeyAnswer(answer, `Key ${kid} is revoked.`)
  },
})
