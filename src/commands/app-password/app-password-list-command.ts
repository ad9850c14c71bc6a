import { table } from '../report.ts'
import { holderCommand, SIGNS_IN, type AppPasswordView } from './app-password-client.ts'

const dayOf = (instant: string | undefined, otherwise: string): string => instant?.slice(0, 10) ?? otherwise

export const appPasswordListCommand = holderCommand({
  summary: 'List the app passwords of an account.',
  parameters: ['<handle or DID>'],
  details: SIGNS_IN,
  async run(_, server) {
    const { appPasswords } = await server.get<{ appPasswords: AppPasswordView[] }>('/v1/app-passwords')
    const rows = appPasswords.map(({ name, createdAt, lastUsedAt, expiresAt, scope }) => [
      name,
      dayOf(createdAt, ''),
      dayOf(lastUsedAt, 'not yet'),
      dayOf(expiresAt, 'no end'),
      scope ?? '',
    ])
    return { value: appPasswords, text: table(['NAME', 'CREATED', 'LAST USED', 'ENDS', 'SCOPE'], rows) }
  },
})
