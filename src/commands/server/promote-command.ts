import { basename } from 'node:path'
import { Following, leaseSeenFrom, mayServe, openArchive } from '../../features/operations/backup/backup.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { DirectoryInUse, lockDirectory, type LockHolder } from '../../platform/files/directory-lock.ts'
import { makeDataDirectory } from '../../platform/files/data-directory.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { exitCodes } from '../command.ts'
import { commandLog, configured } from '../configuration.ts'

const SERVES = 'this machine is the one that serves'

export const promoteCommand = configured({
  summary: 'Take over from the machine that this one follows.',
  details: `Run it on the machine that runs "holdfast follow". That machine takes over within seconds, and starts serving.

If "holdfast follow" is not running, this command brings the copy up to date and takes over itself. Then start the
server, with "holdfast follow" or "holdfast serve".

Whether the other machine is running or not, it acknowledges no write from then on. With backup.continuous_promise =
"sync", no write that it has acknowledged is lost. With "async", writes that it had not sent yet are lost.`,
  async run({ config, terminal, flags }) {
    makeDataDirectory(config)
    let unlock: () => void
    try {
      unlock = lockDirectory(config.dataDir)
    } catch (error) {
      if (!(error instanceof DirectoryInUse)) throw error
      const { continuous } = config.backup
      if (continuous !== null && (await leaseSeenFrom(config, openArchive(continuous, config)))?.isOwn === true) {
        terminal.out(SERVES)
        return exitCodes.ok
      }
      // If another program than a follower uses the directory, make no request: the next follower would obey it.
      const holder = continuous === null ? null : error.holder()
      if (holder !== null && !holder.words.includes('follow')) throw notByFollower(config, holder)
      await Following.ask(config)
      terminal.out('requested: the running "holdfast follow" takes over now')
      return exitCodes.ok
    }
    try {
      if (await mayServe(config)) {
        terminal.out(SERVES)
        return exitCodes.ok
      }
      const log = commandLog({ terminal, flags }, config)
      await new Following({ config, clock: systemClock, log }).promote()
      terminal.out('this machine has taken over: start the server')
      return exitCodes.ok
    } finally {
      unlock()
    }
  },
})

const notByFollower = ({ dataDir }: Config, { pid, words }: LockHolder): OperatorError => {
  const [program = '', ...others] = words
  const used = `${dataDir} is in use by "${[basename(program), ...others].join(' ')}" (process ${pid})`
  return new OperatorError(`${used}, not by "holdfast follow": once that has ended, repeat this command`)
}
