/** Run the server until a signal stops it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, startApp } from '../../app.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { SOFTWARE } from '../../base/version.ts'
import type { Config, Mode } from '../../platform/configuration/config.ts'
import { HistoryContinued, HistoryLost } from '../../platform/database/database.ts'
import { loadConfig, type ValueOrigins } from '../../platform/configuration/config-loading.ts'
import { makeDataDirectory } from '../../platform/files/data-directory.ts'
import { type Log, processLog } from '../../platform/running/log.ts'
import { releaseStartPagesSoon } from '../../platform/running/start-pages.ts'
import { makeOwnToken } from '../../platform/secrets/own-admin-token.ts'
import { exitCodes, type ExitCode, type Terminal } from '../command.ts'
import { loadOrExplain } from '../configuration.ts'
import { stopSignals } from '../stop-signals.ts'

/** How often a server tries to restart, and the pause between tries. */
const MAX_TRIES = 30
const RETRY_MILLIS = 1000

/**
 * With `makesToken`, a server without an admin token generates one. `onListening` gets the configuration without it.
 */
export async function runServer(
  terminal: Terminal,
  mode: Mode,
  { makesToken, onListening }: { makesToken: boolean; onListening: (app: App, config: Config) => void },
): Promise<ExitCode> {
  const warnings: string[] = []
  const loaded = loadOrExplain(terminal, mode, (warning) => warnings.push(warning))
  if (loaded === null) {
    for (const warning of warnings) terminal.err(`warning: ${warning}`)
    // Only the required keys are missing.
    if (mode === 'serve' && loadConfig(terminal, 'dev').ok)
      terminal.err('"holdfast init" writes the configuration of a new server.')
    return exitCodes.failed
  }
  const { origins } = loaded
  const config = makesToken && loaded.config.adminToken === null ? withOwnToken(loaded.config) : loaded.config

  const log = processLog(config)
  for (const warning of warnings)
    if (config === loaded.config || !warning.startsWith('admin_token ')) log.warn('configuration', { warning })
  process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))

  const stopRequested = stopRequest(terminal, mode, log)
  for (let former: App | null = null; ;) {
    const started = new AbortController()
    const app: App | string = await Promise.race([
      start(config, { log, origins }, former),
      overdue(stopRequested, started.signal),
    ]).finally(() => started.abort())
    if (typeof app === 'string') {
      // The start may wait for another service forever. The next start resumes, as after a kill.
      log.info('stopped during the start', { reason: app })
      process.exit(exitCodes.ok)
    }
    log.info('listening', { software: SOFTWARE, url: app.url, publicUrl: config.publicUrl })
    onListening(app, loaded.config)
    if (former === null)
      releaseStartPagesSoon((error) => log.debug('could not release the memory of the startup code', { error }))

    const reason = await Promise.race([stopRequested, ending(app.ended)])
    if (typeof reason === 'string') {
      if (config.node.drainSecs > 0) log.info('draining', { reason, secs: config.node.drainSecs })
      await app.drain()
    }
    log.info('stopping', { reason: typeof reason === 'string' ? reason : reason.message })
    await app.stop()
    log.info('stopped')
    if (typeof reason === 'string') return exitCodes.ok
    if (isFinal(reason, config)) throw reason
    former = app
  }
}

/** How long a start may still take after a signal has arrived. */
const START_MILLIS = 3000

/** Resolves if the start takes longer. Rejects once the start has ended: a timer would keep the process from ending. */
async function overdue(stopRequested: Promise<string>, started: AbortSignal): Promise<string> {
  const reason = await stopRequested
  return sleep(START_MILLIS, reason, { signal: started })
}

function withOwnToken(config: Config): Config {
  makeDataDirectory(config)
  return { ...config, adminToken: makeOwnToken(config.dataDir) }
}

const ending = (ended: AbortSignal): Promise<OperatorError> =>
  new Promise((resolve) => {
    if (ended.aborted) resolve(ended.reason)
    else ended.addEventListener('abort', () => resolve(ended.reason), { once: true })
  })

/** Whether an operator has to decide. Otherwise the server restarts within the process, with fresh state. */
const isFinal = (reason: unknown, { database }: Config): boolean =>
  reason instanceof HistoryLost
    ? database.afterFailover === 'stop'
    : reason instanceof OperatorError && !(reason instanceof HistoryContinued)

/** A restarting server tries several times: the database has just changed, and may change again. */
async function start(config: Config, given: { log: Log; origins: ValueOrigins }, former: App | null): Promise<App> {
  for (let tries = 1; ; tries++) {
    try {
      return await startApp(config, { ...given, sent: former?.sent })
    } catch (error) {
      const isWorthIt =
        error instanceof HistoryContinued ||
        (former !== null && !(error instanceof HistoryLost && isFinal(error, config)))
      if (!isWorthIt || tries === MAX_TRIES) throw error
      given.log.warn('the server could not restart', { error })
      await Bun.sleep(RETRY_MILLIS)
    }
  }
}

/** On Ctrl-C, the terminal signals both processes and npm forwards its own. Signals within this time count as one. */
const ECHO_MILLIS = 100
const PARENT_CHECK_MILLIS = 500

/**
 * Resolves at the first signal with the reason for the stop. A second signal ends the process at once, unless it is
 * SIGHUP: when a terminal is closed, both the system and the shell send one.
 */
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
        if (signal === 'SIGHUP') return
        log.warn('stopped immediately by a second signal', { signal })
        process.exit(exitCodes.interrupted)
      }
      if (state === 'asked') return
      state = 'asked'
      if (isUnderNpm) setTimeout(stop, ECHO_MILLIS, signal)
      else stop(signal)
    }
    for (const signal of stopSignals()) process.on(signal, onSignal)
    if (mode === 'dev' && isUnderNpm) whenOrphaned(() => resolve('npm ended'))
  })
}

/** Call `act` when the parent process changes: a script runner that is killed sends its child no signal. */
function whenOrphaned(act: () => void): void {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && act(), PARENT_CHECK_MILLIS).unref()
}
