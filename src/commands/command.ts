/** What a command of `holdfast` is. `commands.ts` lists them all. */
import type { Sources } from '../platform/config.ts'

export const EXIT = { ok: 0, failed: 1, misused: 2, interrupted: 130 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The world outside a command. */
export interface Terminal extends Sources {
  out(text: string): void
  err(text: string): void
  /** Resolves once nobody reads the output any more, as when `head` has seen enough. */
  outputClosed(): Promise<void>
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
  /** What stands after the command's name, as many as `parameters` allows. */
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
  /** Names of the positional arguments; all may be left out. */
  parameters?: readonly string[]
  options?: Readonly<Record<string, Option>>
  run(invocation: Invocation): Promise<ExitCode>
}
