/** Commands that work with a configuration: each can be told to use that of `dev` instead of that of `serve`. */
import { type Config, type Mode, describeProblems, loadConfig } from '../platform/config.ts'
import { type Command, EXIT, type ExitCode, type Invocation, type Terminal } from './command.ts'

interface ConfiguredCommand extends Omit<Command, 'run'> {
  run(invocation: Invocation & { config: Config }): Promise<ExitCode>
}

/** The command with `--dev` added. It runs when there is a whole configuration, and fails otherwise. */
export function configured({ options, run, ...command }: ConfiguredCommand): Command {
  return {
    ...command,
    options: { ...options, dev: { doc: 'Use the configuration of "dev" instead of "serve".' } },
    async run(invocation) {
      const { terminal } = invocation
      const mode = invocation.options['dev'] === true ? 'dev' : 'serve'
      const config = loadOrExplain(terminal, mode, (warning) => terminal.err(`warning: ${warning}`))
      if (config !== null) return run({ ...invocation, config })
      if (mode === 'serve' && loadConfig(terminal, 'dev').ok) terminal.err('It will do for "dev": add --dev to work with what that has made.')
      return EXIT.failed
    },
  }
}

/** The configuration; or `null`, once its problems have been written to standard error. */
export function loadOrExplain(terminal: Terminal, mode: Mode, warn: (warning: string) => void): Config | null {
  const loaded = loadConfig(terminal, mode)
  for (const { subject, fault } of loaded.warnings) warn(`${subject}: ${fault}`)
  if (loaded.ok) return loaded.config
  terminal.err(describeProblems(loaded.problems))
  return null
}
