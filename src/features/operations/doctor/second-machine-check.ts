/** Checks which machine may continue the continuous backup, and whether its lease is renewed. */
import { leaseSeenFrom, openArchive } from '../backup/backup.ts'
import { fault, ok, warning, type Check, type Finding, type Patient } from './finding.ts'

export const secondMachineCheck: Check = { name: 'second-machine', run: checkLease }

/** A lease that is older than this many times its duration is not being renewed. */
const MAX_TIMES = 2

async function checkLease({ config, now }: Patient): Promise<Finding> {
  const { continuous, takeoverSecs } = config.backup
  if (continuous === null)
    return ok('there is no continuous backup (backup.continuous) that a second machine could follow')
  const lease = await leaseSeenFrom(config, openArchive(continuous, config))
  if (lease === null) return ok('no server has used the continuous backup yet')
  const { isOwn, name, epoch, ttlMillis, at } = lease
  const since = `lease renewed at ${new Date(at).toISOString()}`
  if (!isOwn) return fault(`another machine, ${name}, continues this server (${since})`, 'run "holdfast follow" here')
  const takeovers = `this machine, ${name}, serves; takeovers so far: ${epoch - 1}`
  if (ttlMillis !== takeoverSecs * 1000)
    return warning(
      `${takeovers}; the server runs with another value of backup.takeover_secs`,
      'restart the server, and give both machines the same configuration',
    )
  if (ttlMillis > 0 && now() - at > MAX_TIMES * ttlMillis)
    return warning(`${takeovers}; ${since}`, 'start the server, and see that it reaches backup.continuous')
  return ok(ttlMillis === 0 ? `${takeovers}; the next one is made with "holdfast promote"` : `${takeovers}; ${since}`)
}
