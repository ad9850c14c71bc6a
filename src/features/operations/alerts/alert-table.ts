/**
 * All alerts. To add one, add a row, and a section with its name to docs/alerts.md. Each alert reads a fact from the
 * part of the server that knows it.
 */
import { DAY_SECS, HOUR_MILLIS, HOUR_SECS, MINUTE_SECS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { freeBytesOf } from '../../../platform/files/free-space.ts'
import { differenceWords } from '../../../platform/network/clock-comparison.ts'
import type { PassUnderWay } from '../../../platform/running/sweep-state.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { RECOVERY_WINDOW_MILLIS } from '../../../protocol/plc.ts'
import { changedWords } from '../../identity/account-events/account-events.ts'
import { continuousState } from '../backup/backup.ts'
import { countWaiting } from '../cases/cases.ts'
import { changesSince, misfits, misfitWords } from '../../identity/identity-watch/identity-watch.ts'
import { crawlersFor } from '../../data/firehose/firehose.ts'
import { certificateTerm, examineOne, termWords, type Finding } from '../doctor/doctor.ts'
import { certificateFaults, isNearEnd } from '../certificates/certificates.ts'
import { damagedRepos } from '../integrity/integrity.ts'
import { relayLink } from '../reach/reach.ts'
import type { Alert, Sighting } from './alert.ts'
import { countAccountsSince } from './alert-store.ts'
import { refusalsInLastHour } from './refusal-count.ts'

/** Consecutive failed passes of a sweep. A single failure may be a service that restarts. */
const FAILED_PASSES = 3
const GIB = 1024 ** 3
/** A large first copy of the database, or a restart of the bucket, puts the backup behind for a while. */
const MAX_BACKUP_LAG_MILLIS = 60_000
/** Most accounts that one alert names. */
const MAX_ACCOUNTS = 20

const gibibytes = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`

/** Run one check of the doctor inside the server. */
const findingOf = ({ config, resolver, upstream, mailer, clock }: Context, check: string): Promise<Finding> =>
  examineOne(check, { config, resolver, upstream, mailer, now: () => clock.now() })

/** Only a fault begins the alert, and only a good result ends it. Other findings decide nothing. */
const ofFault = ({ state, text }: Finding): Sighting[] | null =>
  state === 'fault' ? [{ text }] : state === 'ok' ? [] : null

const stuckWords = ({ name, since }: PassUnderWay): string =>
  `a pass of ${name} has been under way since ${wireTime(since)}`

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
  {
    name: 'sweep-stuck',
    title: 'a sweep does not finish',
    remedy: 'restart the server if the sweep makes no progress, and report it with the log lines from that time',
    ofNode: true,
    everySecs: 5 * MINUTE_SECS,
    // If the machine was suspended, the pass ends soon.
    holdsForSecs: 10 * MINUTE_SECS,
    async look({ sweeps }) {
      const stuck = sweeps.underWay().filter(({ isStuck }) => isStuck)
      return stuck.length === 0 ? [] : [{ text: stuck.map(stuckWords).join('; ') }]
    },
  },
  {
    name: 'backup-late',
    title: 'the newest backup is too old',
    remedy: 'run "holdfast backup" and read its output',
    everySecs: HOUR_SECS,
    holdsForSecs: 0,
    async look(ctx) {
      if (ctx.config.backup.destination === null) return []
      const finding = await findingOf(ctx, 'backups')
      // Without an interval, something else has to make the backups, and the check only warns.
      const isUnscheduled = finding.state === 'warning' && ctx.config.backup.intervalSecs === 0
      return isUnscheduled ? [{ text: finding.text }] : ofFault(finding)
    },
  },
  {
    name: 'continuous-backup-behind',
    title: 'the continuous backup is behind',
    remedy:
      'make its destination (backup.continuous) work again; until then, segments are stored in the data directory',
    ofNode: true,
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look(ctx) {
      const state = continuousState(ctx)
      if (state === null || state.lagMillis < MAX_BACKUP_LAG_MILLIS) return []
      const since = `a restore would lack commits of the last ${Math.round(state.lagMillis / 1000)} seconds`
      return [{ text: state.fault === null ? since : `${since}: ${state.fault}` }]
    },
  },
  {
    name: 'rehearsal-failed',
    title: 'the last rehearsed restore failed',
    remedy:
      'run "holdfast restore --rehearse" again and read its output; the alert ends with the first rehearsal that succeeds',
    everySecs: HOUR_SECS,
    holdsForSecs: 0,
    look: async (ctx) => ofFault(await findingOf(ctx, 'rehearsal')),
  },
  {
    name: 'certificate-ends',
    title: 'the certificate has not been renewed in time',
    remedy: 'find out why it is not being renewed: without a valid certificate, neither apps nor relays connect',
    everySecs: HOUR_SECS,
    holdsForSecs: 0,
    async look(ctx) {
      const { config, clock } = ctx
      if (config.tls.mode !== 'off')
        return (await certificateFaults(ctx)).map(({ names, text }) => ({ subject: names, text }))
      const { protocol, hostname } = new URL(config.publicUrl)
      if (protocol !== 'https:') return []
      // From inside, the public address may be unreachable, which says nothing about the certificate.
      const term = await certificateTerm(config, { mayBeInvalid: true })
      if (term === null || term instanceof Error) return null
      const now = clock.now()
      return isNearEnd(term, now) ? [{ text: termWords(hostname, term, now) }] : []
    },
  },
  {
    name: 'relay-silent',
    title: 'a relay does not follow this server',
    remedy: 'run "holdfast network", which says what to do: posts made here do not reach the network',
    everySecs: HOUR_SECS,
    holdsForSecs: DAY_SECS,
    async look(ctx) {
      const urls = crawlersFor(ctx.config)
      const links = await Promise.all(urls.map((url) => relayLink(ctx, url)))
      return links.flatMap(({ state, text }, i) => (state === 'ok' ? [] : [{ subject: new URL(urls[i]!).host, text }]))
    },
  },
  {
    name: 'directory-silent',
    title: 'the PLC directory does not respond',
    remedy: 'see whether its status page or other operators report an outage, and check that outgoing https is allowed',
    everySecs: 5 * MINUTE_SECS,
    holdsForSecs: 10 * MINUTE_SECS,
    async look(ctx) {
      const { state, text } = await findingOf(ctx, 'plc')
      return state === 'ok' ? [] : [{ text }]
    },
  },
  {
    name: 'repository-damaged',
    title: 'a repository is damaged',
    remedy:
      'keep a copy of the database before anything else; "holdfast integrity" lists what is wrong, and "holdfast repair" shows what can be rebuilt',
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ db }) {
      return (await damagedRepos(db, MAX_ACCOUNTS)).map(({ did, handle, faults: [first, ...others] }) => ({
        subject: handle ?? did,
        text: others.length === 0 ? first! : `${first}, and ${others.length} more`,
      }))
    },
  },
  {
    name: 'identity-changed',
    title: 'an identity was changed elsewhere',
    remedy:
      'its holder has been mailed; if many identities change at once, or the key of this server signed, assume that the key is stolen',
    everySecs: 5 * MINUTE_SECS,
    holdsForSecs: 0,
    async look({ db, clock }) {
      const changes = await changesSince(db, clock.now() - RECOVERY_WINDOW_MILLIS, MAX_ACCOUNTS)
      return changes.map(({ did, handle, change }) => ({
        subject: handle ?? did,
        text: `an operation that this server did not send changed: ${changedWords(change)}`,
      }))
    },
  },
  {
    name: 'identity-misfit',
    title: 'identities do not match their accounts',
    remedy: 'run "holdfast network --account" with each of them: it says what the holder has to do',
    everySecs: HOUR_SECS,
    holdsForSecs: DAY_SECS,
    async look({ db }) {
      return (await misfits(db, MAX_ACCOUNTS)).map(({ did, handle, misfit }) => ({
        subject: handle ?? did,
        text: misfitWords[misfit],
      }))
    },
  },
  {
    name: 'clock-off',
    title: 'the clock is wrong',
    remedy: 'turn on time synchronisation: apps cannot sign in, and relays refuse posts that are dated in the future',
    ofNode: true,
    everySecs: 15 * MINUTE_SECS,
    holdsForSecs: 0,
    async look(ctx) {
      const error = ctx.db.cluster?.clockError ?? 0
      if (error === 0) return ofFault(await findingOf(ctx, 'clock'))
      const words = differenceWords(error / 1000, 'most clocks of the cluster')
      return [{ text: `${words}: this node uses their time` }]
    },
  },
  {
    name: 'sign-ups-burst',
    title: 'many accounts are being created',
    remedy:
      'look at them with "holdfast account sign-ups", and undo them with "holdfast account undo-sign-ups"; set invite_code_required if they are unwanted',
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ config, db, clock }) {
      const { signUpsPerHour: limit } = config.alerts
      if (limit === 0) return []
      const count = await countAccountsSince(db, clock.now() - HOUR_MILLIS)
      return count >= limit
        ? [{ text: `${count} accounts were created within an hour; the limit (alerts.sign_ups_per_hour) is ${limit}` }]
        : []
    },
  },
  {
    name: 'cases-late',
    title: 'cases are not decided in time',
    remedy: 'decide them: "holdfast case list" lists them, "holdfast case show" says what was reported',
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look({ db, clock }) {
      const { overdue } = await countWaiting(db, clock.now())
      return overdue === 0 ? [] : [{ text: `${overdue} cases have passed their deadline (cases.deadline_secs)` }]
    },
  },
  {
    name: 'refusals-burst',
    title: 'many requests are being refused',
    remedy: 'find the addresses in the log; if they belong to a proxy, add it to trusted_proxies',
    ofNode: true,
    everySecs: MINUTE_SECS,
    holdsForSecs: 0,
    async look(ctx) {
      const { refusalsPerHour: limit } = ctx.config.alerts
      const count = refusalsInLastHour(ctx)
      return limit > 0 && count >= limit
        ? [{ text: `rate limits refused ${count} requests within an hour; alerts.refusals_per_hour is ${limit}` }]
        : []
    },
  },
]
