import type { Config } from '../../platform/configuration/config.ts'
import { configKeys } from '../../platform/configuration/config-loading.ts'
import { MAX_SHOWN_ITEMS, shownValue, toToml } from '../../platform/configuration/shown-values.ts'
import { exitCodes } from '../command.ts'
import { configured } from '../configuration.ts'

export const configCheckCommand = configured({
  summary: 'Check the configuration and print the resulting values.',
  details: `Reads the file named by SERVICE_CONFIG, ./pds.toml or ./holdfast.env, and the environment, as "serve" does, and prints
every key with its value as TOML, except very long lists. Secrets are printed as ***. If there are problems, reports all
of them at once and exits with 1. Opens no port and no database.`,
  async run({ terminal, config }) {
    terminal.out(describeConfig(config))
    return exitCodes.ok
  },
})

function describeConfig(config: Config): string {
  const lines = configKeys.map((key) => {
    const { name } = key
    const value = shownValue(key, config)
    if (value === null) return `# ${name} is not set`
    if (Array.isArray(value) && value.length > MAX_SHOWN_ITEMS) return `# ${name} has ${value.length} entries`
    return `${name} = ${toToml(value)}`
  })
  return lines.join('\n')
}
