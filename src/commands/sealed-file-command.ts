/**
 * Commands that open an encrypted file of their user. They share the path of the file and its passphrase, which comes
 * from an environment variable or is typed at the terminal. The code that seals and opens files is loaded on use.
 */
import { resolve } from 'node:path'
import {
  type Command,
  exitCodes,
  type ExitCode,
  type Invocation,
  Misuse,
  type Option,
  type Terminal,
} from './command.ts'
import { askTwice } from './prompts.ts'

/** A kind of file, and what its commands have in common. */
export interface SealedFileKind {
  /** Name of the file in the user's data folder. `--file` names another path. */
  fileName: string
  /** Prefix of the names of its environment variables. */
  variables: string
  options: Readonly<Record<string, Option>>
  /** The end of each command's help. */
  howItOpens: string
}

interface FileCommand extends Omit<Command, 'run'> {
  run(invocation: Invocation): Promise<void>
}

export const sealedFileCommand =
  (kind: SealedFileKind) =>
  ({ details, options, run, ...command }: FileCommand): Command => ({
    ...command,
    details: `${details}\n\n${kind.howItOpens}`,
    options: { ...options, ...kind.options },
    async run(invocation): Promise<ExitCode> {
      await run(invocation)
      return exitCodes.ok
    },
  })

export async function sealedFilePath(
  { fileName }: SealedFileKind,
  { terminal, options: { file } }: Invocation,
): Promise<string> {
  const { userDataPath } = await import('../base/sealed-file.ts')
  return file === undefined ? userDataPath(terminal.env, fileName) : resolve(file)
}

export const passphraseVariable = ({ variables }: Pick<SealedFileKind, 'variables'>): string =>
  `${variables}_PASSPHRASE`

/** Returns the cost of deriving a key from the passphrase. Throws `Misuse` if the variable is out of bounds. */
export async function workFactorOf({ variables }: SealedFileKind, { env }: Terminal): Promise<number> {
  const { DEFAULT_WORK_FACTOR, MIN_WORK_FACTOR, MAX_WORK_FACTOR } = await import('../base/sealed-file.ts')
  const variable = `${variables}_WORK_FACTOR`
  const text = env[variable]
  if (text === undefined) return DEFAULT_WORK_FACTOR
  const factor = Number(text)
  if (!Number.isInteger(factor) || factor < MIN_WORK_FACTOR || factor > MAX_WORK_FACTOR)
    throw new Misuse(`${variable} takes a whole number from ${MIN_WORK_FACTOR} to ${MAX_WORK_FACTOR}`)
  return factor
}

/** Throws `Misuse` without the variable or a terminal, or if the two entries of a new passphrase differ. */
export async function passphraseOf(
  kind: SealedFileKind,
  terminal: Terminal,
  { isNew, name = 'Passphrase' }: { isNew: boolean; name?: string },
): Promise<string> {
  const variable = passphraseVariable(kind)
  const given = terminal.env[variable]
  if (given !== undefined) return given
  if (!terminal.isInteractive) throw new Misuse(`there is no terminal to prompt for the passphrase: set ${variable}`)
  return isNew ? askTwice(terminal, name, 'passphrases') : terminal.ask(`${name}: `, { hidden: true })
}
