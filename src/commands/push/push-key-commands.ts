/** The keys that seal push notifications. Each command prints all of them. */
import { type Answer, adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'

const PATH = '/v1/admin/notifications/sender-keys'

interface SenderKeys {
  keys: { kid: number; state: string; publicKey?: string; createdAt: string; changedAt: string }[]
}

export const pushKeysCommand = adminCommand({
  summary: 'List the keys that seal push notifications.',
  details: `Newest first. The active key seals new notifications, devices still accept what a retired key sealed, and reject what a
revoked key sealed. The first key is created when it is needed.`,
  run: async ({ server }) => answerOf(await server.get<SenderKeys>(`${PATH}/all`)),
})

export const pushRotateKeyCommand = adminCommand({
  summary: 'Seal push notifications with a new key.',
  details: `Retires the current key: devices still accept what it sealed. Revoke it at once if it may be compromised, or else after
an hour, when no message that it sealed is still in transit.`,
  async run({ server }) {
    const made = await server.post<SenderKeys>(`${PATH}/rotate`)
    return answerOf(made, `Key ${made.keys[0]!.kid} now seals push notifications.`)
  },
})

export const pushRetireKeyCommand = adminCommand({
  summary: 'Stop sealing push notifications with a key.',
  parameters: ['<key>'],
  details:
    'Refuses to retire the active key, because none would be left. "push key rotate" creates a new one and retires this one.',
  async run({ server, positionals: [kid = ''] }) {
    return answerOf(await server.post(`${PATH}/${encodeURIComponent(kid)}/retire`), `Key ${kid} is retired.`)
  },
})

export const pushRevokeKeyCommand = adminCommand({
  summary: 'Permanently revoke a key that seals push notifications.',
  parameters: ['<key>'],
  details: `Deletes its secret. Devices reject messages sealed with it after they next fetch the keys, which they do whenever they
contact the server. If it was the active key, a new one is created when it is needed.`,
  async run({ server, positionals: [kid = ''] }) {
    return answerOf(await server.post(`${PATH}/${encodeURIComponent(kid)}/revoke`), `Key ${kid} is revoked.`)
  },
})

const publicKeyOf = ({ state, publicKey }: SenderKeys['keys'][number]) =>
  publicKey ?? (state === 'revoked' ? '-' : 'does not open')

/** Returns a table of the keys, below a sentence if there is one. */
function answerOf({ keys }: SenderKeys, sentence?: string): Answer {
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
