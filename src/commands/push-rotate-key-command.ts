import { operated } from './operated.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushRotateKeyCommand = operated({
  name: 'push rotate-key',
  summary: 'Seal push notifications with a new key from now on.',
  details: `The key before it is retired: devices still believe what it sealed. Revoke it if somebody else may have it, or once
nothing that it sealed is on its way, which takes an hour.`,
  async run({ server }) {
    const answer = await server.post<SenderKeys>(`${SENDER_KEYS_PATH}/rotate`)
    return senderKeyAnswer(answer, `Key ${answer.keys[0]!.kid} seals push notifications from now on.`)
  },
})
