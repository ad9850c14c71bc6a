import { openFollowerPort, openFollowerReads } from '../../follower-port.ts'
import { Following, mayServe, type Followed } from '../../features/operations/backup/backup.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { lockDirectory } from '../../platform/files/directory-lock.ts'
import { makeDataDirectory } from '../../platform/files/data-directory.ts'
import { BucketRefusal } from '../../platform/network/bucket-faults.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { processLog } from '../../platform/running/log.ts'
import { exitCodes, type Command, type ExitCode, type Terminal } from '../command.ts'
import { devOption, loadOrExplain } from '../configuration.ts'
import { stopSignals } from '../stop-signals.ts'
import { runServer } from './run-server.ts'

/** Pause before reading the lease again. */
const LOOK_AGAIN_MILLIS = 1000
/** The lease is renewed this many times while it is valid. */
const RENEWALS = 3

export const followCommand: Command = {
  summary: "Keep a copy of another machine's server, and take over from it.",
  details: `Runs with the configuration of the other machine, and a data directory of its own. Copies the database from the
continuous backup (backup.continuous, or --from), and applies what the other machine sends there.

Takes over on "holdfast promote". With backup.takeover_secs it also takes over if the other machine has not renewed its
lease for one and a quarter times that long. It then runs the server, as "holdfast serve" does. The other machine
acknowledges nothing from then on, and stops as soon as it notices.

If this machine is the one that serves, the command starts the server at once. Both machines can therefore run it, and a
machine that was replaced follows once it is back. Its former database is renamed to a name that ends in .superseded.

While it follows, all requests are answered with 503, and /readyz says how far the copy is behind. With --answer-reads
it answers public reads from the copy, and the Age header of a response says how many seconds old it may be.`,
  options: {
    from: { value: 'PLACE', doc: 'A folder, or s3://bucket/prefix. Default: backup.continuous.' },
    'answer-reads': { doc: 'Answer public reads from the copy.' },
    ...devOption,
  },
  async run({ terminal, options, flags }) {
    const mode = flags.has('dev') ? 'dev' : 'serve'
    const place = options['from']
    const given: Terminal =
      place !== undefined ? { ...terminal, env: { ...terminal.env, SERVICE_BACKUP_CONTINUOUS: place } } : terminal
    const loaded = loadOrExplain(given, mode, () => {})
    if (loaded === null) return exitCodes.failed
    const { config } = loaded
    const taken = (await untilKnown(config)) ? null : await follow(config, flags.has('answer-reads'))
    if (taken === 'stopped') return exitCodes.ok
    return serve(given, mode, taken)
  },
}

/** Returns whether this machine serves. Waits until the destination can be read. */
async function untilKnown(config: Config): Promise<boolean> {
  makeDataDirectory(config)
  // Lock the data directory before asking: a server that runs here may not know yet that another machine has replaced
  // it, and `mayServe` would rename its database.
  const unlock = lockDirectory(config.dataDir)
  try {
    return await onceThere(config)
  } finally {
    unlock()
  }
}

async function onceThere(config: Config): Promise<boolean> {
  for (let isTold = false; ; isTold = true)
    try {
      return await mayServe(config)
    } catch (error) {
      if (error instanceof OperatorError || (error instanceof BucketRefusal && !error.isPassing)) throw error
      if (!isTold) processLog(config).warn('could not read the continuous backup; will retry', { error })
      await Bun.sleep(LOOK_AGAIN_MILLIS)
    }
}

/** Resolves once this machine has taken over, or has to stop. */
async function follow(config: Config, answersReads: boolean): Promise<Followed | 'stopped'> {
  const unlock = lockDirectory(config.dataDir)
  const log = processLog(config)
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  const signals = stopSignals()
  // A second signal ends the process at once. Except SIGHUP, because closing a terminal may send two.
  for (const signal of signals) process[signal === 'SIGHUP' ? 'on' : 'once'](signal, stop)
  const parts = { clock: systemClock, log }
  const reads = answersReads ? openFollowerReads(config, parts) : null
  const following = new Following({ config, ...parts, ...(reads && { reading: reads.reading }) })
  const port = openFollowerPort(config, parts, following, reads)
  try {
    const taken = await following.run(stopping.signal)
    return taken ?? 'stopped'
  } finally {
    for (const signal of signals) process.off(signal, stop)
    // Close the port before the server opens it.
    await port.close()
    unlock()
  }
}

async function serve(terminal: Terminal, mode: 'serve' | 'dev', taken: Followed | null): Promise<ExitCode> {
  // The start may take longer than the lease is valid, so renew the lease meanwhile.
  const lease = taken?.lease
  const millis = (lease?.record.ttlMillis ?? 0) / RENEWALS
  const renewals =
    lease !== undefined && millis > 0 ? setInterval(() => void lease.renew().catch(() => false), millis) : null
  const end = () => {
    if (renewals !== null) clearInterval(renewals)
  }
  try {
    return await runServer(terminal, mode, { makesToken: mode === 'dev', onListening: end })
  } finally {
    end()
  }
}
