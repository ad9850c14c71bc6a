/** Lines that an operator adds to the configuration, in the form of the file that has the other values. */
import { configKeys } from '../platform/configuration/config-loading.ts'

/**
 * Returns the lines that set these keys. `isToml`: the configuration is a TOML file; otherwise it is a file of
 * variables, in which systemd ignores the lines of TOML.
 */
export function linesToSet(values: Readonly<Record<string, string | readonly string[]>>, isToml: boolean): string[] {
  return Object.entries(values).map(([name, value]) => {
    const variable = configKeys.find((key) => key.name === name)?.env[0]
    return isToml || variable === undefined
      ? `${name} = ${JSON.stringify(value)}`
      : `${variable}=${[value].flat().join(',')}`
  })
}
