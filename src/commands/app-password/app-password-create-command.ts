import { DAY_MILLIS } from '../../base/durations.ts'
import { integerOption } from '../command.ts'
import { holderCommand, SIGNS_IN, type AppPasswordView } from './app-password-client.ts'

export const appPasswordCreateCommand = holderCommand({
  summary: 'Create an app password that is limited to scopes.',
  parameters: ['<handle or DID>', '<name>'],
  options: {
    presets: { value: 'NAMES', doc: 'What it may do, separated by commas: post, read, upload-images.' },
    scope: { value: 'SCOPES', doc: 'Further OAuth scopes, separated by spaces.' },
    days: { value: 'N', doc: 'Days until it expires. Default: it does not expire.' },
  },
  details: `${SIGNS_IN}
Prints the app password, which is not shown again. Without presets and scopes it may do what apps usually do, except
read and send direct messages.`,
  async run({ terminal, options, positionals: [, name] }, server) {
    const days = integerOption(options, 'days', 1)
    const { presets, scope } = options
    const made = await server.post<AppPasswordView & { password: string }>('/v1/app-passwords', {
      name,
      ...(presets !== undefined && { presets: presets.split(',') }),
      scope,
      ...(days !== undefined && { expiresAt: new Date(terminal.now() + days * DAY_MILLIS).toISOString() }),
    })
    return { value: made, text: made.password }
  },
})
