import { exitCodes } from '../command.ts'
import { table } from '../report.ts'
import { holderCommand, SIGNS_IN, type AppPasswordView } from './app-password-client.ts'

const dayOf = (instant: string | undefined, otherwise: string): string => instant?.slice(0, 10) ?? otherwise

export const appPasswordListCommand = holderCommand({
  summary: 'List the app passwords of an account.',
  parameters: ['<handle or DID>'],
  details: SIGNS_IN,
  async run({ terminal, flags }, server) {
    const { appPasswords } = await server.get<{ appPasswords: AppPasswordView[] }>('/v1/app-passwords')
    if (flags.has('json')) terminal.out(JSON.stringify(appPasswords, null, 2))
    else
      terminal.out(
        table(
          ['NAME', 'CREATED', 'LAST USED', 'ENDS', 'SCOPE'],
          appPasswords.map(({ name, createdAt, lastUsedAt, expiresAt, scope }) => [
            name,
            dayOf(createdAt, ''),
            dayOf(lastUsedAt, 'not yet'),
            dayOf(expiresAt, 'no end'),
            scope ?? '',
          ]),
        ),
      )
    return exitCodes.ok
  },
})
