import { operated } from './operated.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushKeysCommand = operated({
  name: 'push keys',
  summary: 'List the keys that seal push notifications.',
  details: `The newest first. An active key seals, a retired one only verifies what it sealed, and a revoked one does neither.
The first key is made when it is needed.`,
  run: async ({ server }) => senderKeyAnswer(await server.get<SenderKeys>(`${SENDER_KEYS_PATH}/all`)),
})
