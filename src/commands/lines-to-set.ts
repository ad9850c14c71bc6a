/** Lines that an operator adds to the configuration, in the form of the file that has the other values. */
import { OperatorError } from '../base/operator-error.ts'
import type { Setting } from '../features/operations/reference-import/reference-import.ts'
import { configKeys } from '../platform/configuration/config-loading.ts'

const variableOf = (key: string): string | undefined => configKeys.find(({ name }) => name === key)?.env[0]

/** Returns the name that the configuration has for a key. `isToml`: see `linesToSet`. */
export const nameToSet = (key: string, isToml: boolean): string => (isToml ? key : (variableOf(key) ?? key))

/**
 * Returns the lines that set these keys. `isToml`: the configuration is a TOML file; otherwise it is a file of
 * variables, in which systemd ignores the lines of TOML.
 */
export const linesToSet = (values: Readonly<Record<string, Setting>>, isToml: boolean): string[] =>
  Object.entries(values).map(([key, value]) => {
    const name = nameToSet(key, isToml)
    return name === key ? `${key} = ${JSON.stringify(value)}` : variableLine(name, [value].flat().join(','))
  })

/** Characters that mean themselves to systemd, Docker and shells alike. */
const plain = /^[\w./:@%+,=-]*$/

/**
 * Returns the line of a file of variables that sets one of them, quoted if need be. Throws `OperatorError` if the
 * readers of such files would not agree on the value.
 */
export function variableLine(name: string, value: string): string {
  if (plain.test(value)) return `${name}=${value}`
  if (!/['\n\r]/.test(value)) return `${name}='${value}'`
  if (!/["\\$`\n\r]/.test(value)) return `${name}="${value}"`
  throw new OperatorError(
    `${name} has characters that systemd and shells read differently: choose a value without ', or without ", \\, $ and line breaks`,
  )
}
