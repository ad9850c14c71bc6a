/**
 * All alerts. To add one, add a row, and a section of its name to docs/alerts.md. Each reads a fact from the part that
 * knows it.
 */
import { MINUTE_SECS } from '../../../base/durations.ts'
import { freeBytesOf } from '../doctor/doctor.ts'
import type { Alert } from './alert.ts'

/** Passes of a sweep that fail one after another. A single one may be a service that restarts. */
const FAILED_PASSES = 3
const GIB = 1024 ** 3

const gibibytes = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`

export const alerts: readonly Alert[] = [
  {
    name: 'disk-nearly-full',
    title: 'the disk is nearly full',
    remedy: 'free some space, or enlarge the disk: nothing can be written once it is full',
    ofNode: true,
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ config: { dataDir, alerts } }) {
      const free = await freeBytesOf(dataDir)
      const limits = `the limit (alerts.disk_free_bytes) is ${gibibytes(alerts.diskFreeBytes)}`
      return free < alerts.diskFreeBytes ? [{ text: `${gibibytes(free)} are free at ${dataDir}; ${limits}` }] : []
    },
  },
  {
    name: 'backup-failed',
    title: 'the last backup failed',
    remedy: 'fix what the message says, then run "holdfast backup"',
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ sweeps }) {
      const failure = (await sweeps.failures()).get('backup')
      return failure === undefined ? [] : [{ text: failure.error }]
    },
  },
  {
    name: 'sweep-failing',
    title: 'a sweep keeps failing',
    remedy: 'fix what the message says; "holdfast sweep" with its name runs it now, and prints the error',
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ sweeps }) {
      return Array.from(await sweeps.failures())
        .filter(([name, { count }]) => name !== 'backup' && count >= FAILED_PASSES)
        .map(([subject, { count, error }]) => ({
          subject,
          text: `${subject} has failed ${count} times in a row: ${error}`,
        }))
    },
  },
]
