/** Checks which machine may continue the continuous backup, and whether its lease is renewed. */
import { leaseSeenFrom, openArchive } from '../backup/backup.ts'
import { fault, type Follower, followerHere, ok, warning, type Check, type Finding, type Patient } from './finding.ts'

export const secondMachineCheck: Check = { name: 'second-machine', run: checkLease }

/** A lease that is older than this many times its duration is not being renewed. */
const MAX_TIMES = 2

async function checkLease(patient: Patient): Promise<Finding> {
  const { config, now } = patient
  const { continuous, takeoverSecs } = config.backup
  if (continuous === null)
    return ok('there is no continuous backup (backup.continuous) that a second machine could follow')
  const lease = await leaseSeenFrom(config, openArchive(continuous, config))
  if (lease === null) return ok('no server has used the continuous backup yet')
  const { isOwn, name, epoch, ttlMillis, at } = lease
  const since = `lease renewed at ${new Date(at).toISOString()}`
  if (!isOwn)
    return checkCopy(`another machine, ${name}, continues this server (${since})`, await followerHere(patient))
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

/** `serving` says which machine serves. */
function checkCopy(serving: string, follower: Follower | null): Finding {
  if (follower === null) return fault(serving, 'run "holdfast follow" here')
  const { behindMillis, fault: reason } = follower
  if (behindMillis === null || reason !== null)
    return warning(
      `${serving}; the copy here is not up to date: ${reason ?? 'it is being made'}`,
      'see that this machine reaches backup.continuous; docs/second-machine.md explains the messages',
    )
  return ok(`${serving}; this one follows it, ${Math.ceil(behindMillis / 1000)} s behind`)
}
