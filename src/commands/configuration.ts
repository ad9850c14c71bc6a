/** Commands that need a configuration. They use the one of `serve`, or the one of `dev` if `--dev` is given. */
import { existsSync } from 'node:fs'
import { ENV_PREFIX } from '../platform/configuration/config-fields.ts'
import { SERVICE_SETTINGS } from '../platform/configuration/config-files.ts'
import type { Config, Mode } from '../platform/configuration/config.ts'
import { describeProblems, loadConfig, type ValueOrigins } from '../platform/configuration/config-loading.ts'
import type { Secret } from '../base/secret.ts'
import { createLog, processLog, type Log } from '../platform/running/log.ts'
import { findOwnToken } from '../platform/secrets/own-admin-token.ts'
import { type Command, exitCodes, type ExitCode, type Invocation, type Terminal } from './command.ts'

interface ConfiguredCommand extends Omit<Command, 'run'> {
  run(invocation: Invocation & { config: Config }): Promise<ExitCode>
}

/** Add `--dev` to a command. If the configuration is invalid, the command does not run and its exit status is 1. */
export function configured({ options, run, ...command }: ConfiguredCommand): Command {
  return {
    ...command,
    options: { ...options, ...devOption },
    async run(invocation) {
      const config = configurationOf(invocation, (warning) => invocation.terminal.err(`warning: ${warning}`))
      return config === null ? exitCodes.failed : run({ ...invocation, config })
    },
  }
}

/** Returns the log of a command. With `--json` it goes to standard error: standard output carries the result. */
export function commandLog({ terminal, flags }: Pick<Invocation, 'terminal' | 'flags'>, config: Config): Log {
  if (!flags.has('json')) return processLog(config)
  const { logFormat: format, logLevel: level } = config.telemetry
  return createLog({ format, level, now: terminal.now, write: terminal.err })
}

export const devOption = {
  dev: { doc: 'Use the configuration of "dev" instead of "serve".' },
} as const satisfies Command['options']

/** Returns the configuration that the options select, or null after writing its problems to standard error. */
export function configurationOf({ terminal, flags }: Invocation, warn: (warning: string) => void): Config | null {
  const mode = flags.has('dev') ? 'dev' : 'serve'
  const config = loadOrExplain(terminal, mode, warn)?.config ?? null
  if (config === null && mode === 'serve') {
    // `pds` gives the variables of the service: then, one of them is faulty.
    if (existsSync(SERVICE_SETTINGS) && !Object.keys(terminal.env).some((name) => name.startsWith(ENV_PREFIX)))
      terminal.err(
        `The service of this machine has its configuration in ${SERVICE_SETTINGS}: as root, run "pds" instead of "holdfast".`,
      )
    else if (loadConfig(terminal, 'dev').ok)
      terminal.err('It is valid for "dev": add --dev to use the data of the development server.')
  }
  return config
}

/** Whether the configuration is a TOML file, and not variables. */
export function isToml({ terminal, flags }: Pick<Invocation, 'terminal' | 'flags'>): boolean {
  const loaded = loadConfig(terminal, flags.has('dev') ? 'dev' : 'serve')
  const origin = loaded.ok ? loaded.origins.get('public_url') : undefined
  return origin?.from === 'file' && !('variable' in origin)
}

/**
 * Returns the operator's credential: the configured one, or with `--dev` the one that the development server has
 * generated.
 */
export const adminTokenFor = ({ flags }: Invocation, { adminToken, dataDir }: Config): Secret<string> | null =>
  adminToken ?? (flags.has('dev') ? findOwnToken(dataDir) : null)

/** Returns a mode's configuration and the origins of its values; null after writing problems to standard error. */
export function loadOrExplain(
  terminal: Terminal,
  mode: Mode,
  warn: (warning: string) => void,
): { config: Config; origins: ValueOrigins } | null {
  const loaded = loadConfig(terminal, mode)
  for (const { subject, fault } of loaded.warnings) warn(`${subject}: ${fault}`)
  if (loaded.ok) return loaded
  terminal.err(describeProblems(loaded.problems))
  return null
}
