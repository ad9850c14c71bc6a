import { type Config, type Mode, describeProblems, loadConfig } from '../platform/config.ts'
import type { Terminal } from './command.ts'

/** The configuration; or `null`, once its problems have been written to standard error. */
export function loadOrExplain(terminal: Terminal, mode: Mode, warn: (warning: string) => void): Config | null {
  const loaded = loadConfig(terminal, mode)
  for (const { subject, fault } of loaded.warnings) warn(`${subject}: ${fault}`)
  if (loaded.ok) return loaded.config
  terminal.err(describeProblems(loaded.problems))
  return null
}
