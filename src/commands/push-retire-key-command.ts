import { operated } from './operated.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRetireKeyCommand = operated({
  name: 'push retire-key',
  summary: 'Make sure that a key no longer seals push notifications.',
  parameters: ['<key>'],
  details: 'The key that seals now is refused, because there would be none: "push rotate-key" makes another and retires it.',
  async run({ server, positionals: [kid = ''] }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/${encodeURIComponent(kid)}/retire`)
    return senderKeyAnswer(answer, `Key ${kid} is retired.`)
  },
})
