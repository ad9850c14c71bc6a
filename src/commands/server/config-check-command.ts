import type { Config } from '../../platform/configuration/config.ts'
import { configKeys } from '../../platform/configuration/config-loading.ts'
import { withoutPassword } from '../../platform/database/database-url.ts'
import { Secret } from '../../base/secret.ts'
import { exitCodes } from '../command.ts'
import { configured } from '../configuration.ts'

export const configCheckCommand = configured({
  summary: 'Check the configuration and print the resulting values.',
  details: `Reads the file named by SERVICE_CONFIG, ./pds.toml or ./holdfast.env, and the environment, as "serve" does, and prints
every key with its value as TOML, except very long lists. Secrets are printed as ***. If there are problems, reports all of
them at once and exits with 1. Opens no port and no database.`,
  async run({ terminal, config }) {
    terminal.out(describeConfig(config))
    return exitCodes.ok
  },
})

/** A longer list fills the screen and hides the rest. */
const MAX_SHOWN_ITEMS = 100

function describeConfig(config: Config): string {
  const lines = configKeys.map(({ name, path }) => {
    const kept = path.reduce<unknown>((under, step) => (under as Record<string, unknown>)[step], config)
    const value = name === 'database_url' ? withoutPassword(kept as string) : kept
    if (value === null) return `# ${name} is not set`
    if (Array.isArray(value) && value.length > MAX_SHOWN_ITEMS) return `# ${name} has ${value.length} entries`
    return `${name} = ${toToml(value)}`
  })
  return lines.join('\n')
}

function toToml(value: unknown): string {
  if (value instanceof Secret) return '"***"'
  if (Array.isArray(value)) return `[${value.map(toToml).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${name} = ${toToml(member)}`)
    .join(', ')} }`
}
