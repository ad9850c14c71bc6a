import { adminCommand } from '../admin-command.ts'
import { Misuse } from '../command.ts'

export const configSetCommand = adminCommand({
  summary: 'Change a value of the configuration while the server runs.',
  parameters: ['<key>', '[value]'],
  details: `Write the value as in an environment variable: lists separated by commas. It applies on all nodes at once and overrides
file and environment, also after a restart, until --default resets it. Keys that can be set have "holdfast config set"
in the last column of "config show"; they concern sign-up and handles.`,
  options: { default: { doc: 'Reset the key to the value of the file, the environment or the default.' } },
  async run({ server, positionals: [name = '', value], flags }) {
    const takesBack = flags.has('default')
    if (takesBack === (value !== undefined)) throw new Misuse('give a value, or --default')
    const set = await server.post<{ name: string; value: string | null }>('/v1/admin/configuration', {
      name,
      value: value ?? null,
    })
    return { value: set, text: `${set.name} = ${set.value ?? 'not set'}` }
  },
})
