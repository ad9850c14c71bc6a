/** What a command of `holdfast` is. `commands.ts` lists them all. */
import type { Sources } from '../platform/configuration/config-loading.ts'
import { OperatorError } from '../base/operator-error.ts'

export const exitCodes = { ok: 0, failed: 1, misused: 2, interrupted: 130 } as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** The words do not make sense, which only the command itself can tell. */
export class Misuse extends OperatorError {}

/** Whoever was asked pressed Ctrl-C, or closed the input. */
export class Interrupted extends Error {}

/** The world outside a command. */
export interface Terminal extends Sources {
  out(text: string): void
  err(text: string): void
  /** Resolves once nobody reads the output any more, as when `head` has seen enough. */
  outputClosed(): Promise<void>
  /** Whether somebody sits there who can be asked. */
  isInteractive: boolean
  /** Ask in one line, away from the output. What is typed to a `hidden` question does not show. Throws `Interrupted`. */
  ask(question: string, how?: { hidden: boolean }): Promise<string>
  /** The next line of standard input, for what must not stand on the command line; null after the last. */
  nextLine(): Promise<string | null>
  /** How the reader starts this program, to be shown in examples. */
  self: string
}

/** An option that takes a value carries the value's name. */
export interface Option {
  value?: string
  doc: string
}

export interface Invocation {
  terminal: Terminal
  /** What stands after the command's name, as many as `parameters` allows, and at least those that are needed. */
  positionals: readonly string[]
  /** By option name: the value, or `true`. */
  options: Readonly<Record<string, string | boolean | undefined>>
}

export interface Command {
  /** One word or two: `config check`. */
  name: string
  summary: string
  /** What `--help` says below the summary. */
  details: string
  /** What stands after the name, as the usage shows it: `<account>` is needed, `[URL]` may be left out. Those that are needed come first. */
  parameters?: readonly string[]
  options?: Readonly<Record<string, Option>>
  run(invocation: Invocation): Promise<ExitCode>
}

/** The whole number that an option carries; undefined when it was not given. */
export function integerOption(options: Invocation['options'], name: string, least: number): number | undefined {
  const text = options[name]
  if (text === undefined) return undefined
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text) || Number(text) < least)
    throw new Misuse(`--${name} takes a whole number of at least ${least}`)
  return Number(text)
}

/** The one that was given of options that exclude each other. */
export function chosenOption<Name extends string>(options: Invocation['options'], names: readonly Name[]): Name | undefined {
  const [chosen, other] = names.filter((name) => options[name] === true)
  if (other !== undefined) throw new Misuse(`--${chosen} and --${other} exclude each other`)
  return chosen
}
