import { adminCommand } from '../admin-command.ts'
import { Misuse } from '../command.ts'

export const configSetCommand = adminCommand({
  summary: 'Replace a value of the configuration while the server runs.',
  parameters: ['<key>', '[value]'],
  details: `The value is written as in an environment variable: entries of a list with commas in between. It applies on every node at
once, and after a restart, whatever the file and the environment say, until --default takes it back. "config show" says
which keys can be replaced: sign-up, the domains of handles, and others with "holdfast config set" in the last column.`,
  options: { default: { doc: 'Take back what was set.' } },
  async run({ server, positionals: [name = '', value], options }) {
    const takesBack = options['default'] === true
    if (takesBack === (value !== undefined)) throw new Misuse('give a value, or --default')
    const set = await server.post<{ name: string; value: string | null }>('/v1/admin/configuration', {
      name,
      value: value ?? null,
    })
    return { value: set, text: `${set.name} = ${set.value ?? 'not set'}` }
  },
})
