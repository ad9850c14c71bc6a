/** The shape of a `holdfast` command. `commands.ts` lists all commands, by the words that call them. */
import type { Sources } from '../platform/configuration/config-files.ts'
import { OperatorError } from '../base/operator-error.ts'

export const exitCodes = { ok: 0, failed: 1, misused: 2, interrupted: 130 } as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/**
 * Invalid arguments that the general parser cannot detect; the command throws this error itself. The exit status is 2.
 */
export class Misuse extends OperatorError {}

/** The user pressed Ctrl-C at a prompt, or closed the input. The exit status is 130. */
export class Interrupted extends Error {}

/** What a command needs from its process: environment, files, input and output. */
export interface Terminal extends Sources {
  out(text: string): void
  err(text: string): void
  /** Resolves when the reader of standard output closes it, for example when `head` has its lines. */
  outputClosed(): Promise<void>
  /** True if a person is at the terminal and can be asked questions. */
  isInteractive: boolean
  /** Ask for one line on standard error. The input is not echoed if `hidden` is set. Throws `Interrupted`. */
  ask(question: string, how?: { hidden: boolean }): Promise<string>
  /**
   * Returns the next line of standard input, or null after the last. It is for secrets, which must not be arguments.
   */
  nextLine(): Promise<string | null>
  /** The current time in milliseconds since the epoch, for what is signed. */
  now(): number
  /** Wait, between requests to a server. */
  pause(millis: number): Promise<void>
  /** The command line that starts this program, for use in examples. */
  self: string
}

/** `value` is the placeholder of the option's value in the usage; an option without one is a flag. */
export interface Option {
  value?: string
  doc: string
}

export interface Invocation {
  terminal: Terminal
  /** The arguments after the command's name: all required ones, and no more than `parameters` lists. */
  positionals: readonly string[]
  /** The values of the options that were given, by name. */
  options: Readonly<Record<string, string | undefined>>
  /** The names of the flags that were given. */
  flags: ReadonlySet<string>
}

/** A command, without the words that call it. */
export interface Command {
  summary: string
  /** The text that `--help` prints after the options. */
  details: string
  /** The arguments as the usage shows them: `<account>` is required, `[URL]` is optional. Required ones come first. */
  parameters?: readonly string[]
  options?: Readonly<Record<string, Option>>
  run(invocation: Invocation): Promise<ExitCode>
}

/**
 * Returns the integer value of an option, or undefined if it was not given. Throws `Misuse` if it is less than `least`
 * or no integer.
 */
export function integerOption(options: Invocation['options'], name: string, least: number): number | undefined {
  const text = options[name]
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text) || Number(text) < least)
    throw new Misuse(`--${name} takes a whole number of at least ${least}`)
  return Number(text)
}

/** Returns which of several mutually exclusive flags was given, if any. Throws `Misuse` if more than one was. */
export function chosenFlag<Name extends string>(flags: Invocation['flags'], names: readonly Name[]): Name | undefined {
  const [chosen, other] = names.filter((name) => flags.has(name))
  if (other !== undefined) throw new Misuse(`--${chosen} and --${other} cannot be used together`)
  return chosen
}
