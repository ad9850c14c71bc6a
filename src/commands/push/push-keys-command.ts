import { adminCommand } from '../admin-command.ts'
import { SENDER_KEYS_PATH, senderKeyAnswer, type SenderKeys } from './push-sender-keys.ts'

export const pushKeysCommand = adminCommand({
  summary: 'List the keys that seal push notifications.',
  details: `Newest first. The active key seals new notifications, devices still accept what a retired key sealed, and reject what a
revoked key sealed. The first key is created when it is needed.`,
  run: async ({ server }) => senderKeyAnswer(await server.get<SenderKeys>(`${SENDER_KEYS_PATH}/all`)),
})
