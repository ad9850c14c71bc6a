import { adminCommand } from '../admin-command.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRetireKeyCommand = adminCommand({
  summary: 'Stop sealing push notifications with a key.',
  parameters: ['<key>'],
  details:
    'Refuses to retire the active key, because none would be left. "push key rotate" creates a new one and retires this one.',
  async run({ server, positionals: [kid = ''] }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/${encodeURIComponent(kid)}/retire`)
    return senderKeyAnswer(answer, `Key ${kid} is retired.`)
  },
})
