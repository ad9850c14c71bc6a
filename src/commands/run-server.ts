/** Run the server until a signal ends it. */
import { type App, startApp } from '../app.ts'
import { type Config, type Mode } from '../platform/config.ts'
import { type Log, processLog } from '../platform/log.ts'
import { SOFTWARE } from '../platform/version.ts'
import { EXIT, type ExitCode, type Terminal } from './command.ts'
import { loadOrExplain } from './configuration.ts'

export async function runServer(terminal: Terminal, mode: Mode, onListening: (app: App, config: Config) => void): Promise<ExitCode> {
  const warnings: string[] = []
  const config = loadOrExplain(terminal, mode, (warning) => warnings.push(warning))
  if (config === null) return EXIT.failed

  const log = processLog(config.telemetry)
  for (const warning of warnings) log.warn(`configuration: ${warning}`)
  process.on('unhandledRejection', (error) => log.error('a background task failed', { error }))

  const stopRequested = firstSignal(log)
  const app = await startApp(config, { log })
  log.info('listening', { software: SOFTWARE, url: app.url, publicUrl: config.publicUrl })
  onListening(app, config)

  log.info('stopping', { signal: await stopRequested })
  await app.stop()
  log.info('stopped')
  return EXIT.ok
}

/** Resolves at the first signal to stop; a second one ends the process, whatever it is doing. */
function firstSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopping) {
        log.warn('stopped at once by a second signal', { signal })
        process.exit(EXIT.interrupted)
      }
      stopping = true
      resolve(signal)
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
}
