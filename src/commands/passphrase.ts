/** The passphrase of a file: from an environment variable, or typed at the terminal. */
import { Misuse, type Terminal } from './command.ts'

/** The cost of deriving a key from a passphrase. Throws `Misuse` if the variable is not a number in the bounds. */
export async function workFactorFrom({ env }: Terminal, variable: string): Promise<number> {
  const { DEFAULT_WORK_FACTOR, MIN_WORK_FACTOR, MAX_WORK_FACTOR } = await import('../base/sealed-file.ts')
  const text = env[variable]
  if (text === undefined) return DEFAULT_WORK_FACTOR
  const factor = Number(text)
  if (!Number.isInteger(factor) || factor < MIN_WORK_FACTOR || factor > MAX_WORK_FACTOR)
    throw new Misuse(`${variable} takes a whole number from ${MIN_WORK_FACTOR} to ${MAX_WORK_FACTOR}`)
  return factor
}

export async function askPassphrase(
  terminal: Terminal,
  variable: string,
  { isNew, name = 'Passphrase' }: { isNew: boolean; name?: string },
): Promise<string> {
  const given = terminal.env[variable]
  if (given !== undefined) return given
  if (!terminal.isInteractive) throw new Misuse(`there is no terminal to prompt for the passphrase: set ${variable}`)
  const passphrase = await terminal.ask(`${name}: `, { hidden: true })
  if (isNew && passphrase !== (await terminal.ask('Once more: ', { hidden: true })))
    throw new Misuse('the two passphrases differ')
  return passphrase
}
