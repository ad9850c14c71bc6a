import { adminCommand } from '../admin-command.ts'
import { table } from '../report.ts'

interface ConfigurationKey {
  name: string
  value: string | null
  from: string
  variable: string | null
  replacedBy: string | null
}

/** Longer values are cut off; --json prints them whole. */
const MAX_VALUE_CHARS = 60

export const configShowCommand = adminCommand({
  summary: 'Print the configuration that a running server uses.',
  details: `Prints each key with its value, its origin (default, file, environment, command line or run time), and the command that
replaces it without a restart, if there is one. Secrets are ***. "config check" prints what a server would use if it
started now.`,
  options: { changed: { doc: 'Only keys whose value is not the default.' } },
  async run({ server, flags }) {
    const { keys } = await server.get<{ keys: ConfigurationKey[] }>('/v1/admin/configuration')
    const shown = flags.has('changed') ? keys.filter(({ from }) => from !== 'default') : keys
    const rows = shown.map(({ name, value, from, variable, replacedBy }) => [
      name,
      value === null ? 'not set' : cut(value),
      variable === null ? from : `${from}, ${variable}`,
      replacedBy ?? 'restart',
    ])
    return { value: shown, text: table(['KEY', 'VALUE', 'FROM', 'CHANGED BY'], rows) }
  },
})

const cut = (text: string): string => (text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS - 1)}…` : text)
