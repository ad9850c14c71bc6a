/** Run the server until a signal stops it. */
import { type App, startApp } from '../app.ts'
import type { Config, Mode } from '../platform/configuration/config.ts'
import { type Log, processLog } from '../platform/running/log.ts'
import { SOFTWARE } from '../base/version.ts'
import { exitCodes, type ExitCode, type Terminal } from './command.ts'
import { loadOrExplain } from './configuration.ts'

export async function runServer(terminal: Terminal, mode: Mode, onListening: (app: App, config: Config) => void): Promise<ExitCode> {
  const warnings: string[] = []
  const config = loadOrExplain(terminal, mode, (warning) => warnings.push(warning))
  if (config === null) return exitCodes.failed

  const log = processLog(config)
  for (const warning of warnings) log.warn('configuration', { warning })
  process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))

  const stopRequested = stopRequest(terminal, mode, log)
  const app = await startApp(config, { log })
  log.info('listening', { software: SOFTWARE, url: app.url, publicUrl: config.publicUrl })
  onListening(app, config)

  const reason = await stopRequested
  if (config.node.drainSecs > 0) log.info('draining', { reason, secs: config.node.drainSecs })
  await app.drain()
  log.info('stopping', { reason })
  await app.stop()
  log.info('stopped')
  return exitCodes.ok
}

/** On Ctrl-C, the terminal signals both processes and npm forwards its own. Signals within this time count as one. */
const ECHO_MILLIS = 100
const PARENT_CHECK_MILLIS = 500

/** Resolves at the first signal with the reason for the stop. A second signal ends the process immediately. */
function stopRequest({ env }: Terminal, mode: Mode, log: Log): Promise<string> {
  const isUnderNpm = env['npm_lifecycle_event'] !== undefined
  return new Promise((resolve) => {
    let state: 'running' | 'asked' | 'stopping' = 'running'
    const stop = (signal: NodeJS.Signals) => {
      state = 'stopping'
      resolve(signal)
    }
    const onSignal = (signal: NodeJS.Signals) => {
      if (state === 'stopping') {
        log.warn('stopped immediately by a second signal', { signal })
        process.exit(exitCodes.interrupted)
      }
      if (state === 'asked') return
      state = 'asked'
      if (isUnderNpm) setTimeout(stop, ECHO_MILLIS, signal)
      else stop(signal)
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
    if (mode === 'dev' && isUnderNpm) whenOrphaned(() => resolve('npm ended'))
  })
}

/** Call `act` when the parent process changes: a script runner that is killed sends its child no signal. */
function whenOrphaned(act: () => void): void {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && act(), PARENT_CHECK_MILLIS).unref()
}
