/** Checks of the services that this server needs. */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { ownUrl } from '../../../platform/configuration/own-url.ts'
import { mailRemedy } from '../../../platform/network/mail-remedies.ts'
import { askRelay } from '../../data/firehose/firehose.ts'
import { CERTIFICATES_PATH, type CertificatesView } from '../certificates/certificates.ts'
import type { IrohStatus } from '../../push/iroh/iroh.ts'
import {
  fault,
  ok,
  skipped,
  TIMEOUT_MILLIS,
  warning,
  wordsOf,
  type Check,
  type Finding,
  type Patient,
} from './finding.ts'

/** Length of a stall of the event loop at which to warn. */
const stallWarningSecs = { computing: 1, waiting: 5 }
/** Age of a pending step at which to warn: a restart of the remote service cannot explain a longer delay. */
const STEP_WARNING_MINUTES = 60

export const serviceChecks: readonly Check[] = [
  { name: 'mail', run: checkMail },
  { name: 'plc', run: checkPlc },
  { name: 'relay', run: checkRelay },
  { name: 'certificates', needs: 'server', run: checkCertificates },
  { name: 'steps', needs: 'server', run: checkSteps },
  { name: 'sweeps', needs: 'server', run: checkSweeps },
  { name: 'event-loop', needs: 'server', run: checkLoop },
  { name: 'quic', needs: 'server', run: checkQuic },
  { name: 'pushes', needs: 'server', run: checkPushes },
]

async function checkMail({ config, mailer }: Patient): Promise<Finding> {
  if (config.email.provider === 'log')
    return warning(
      'mail is written to the log',
      'set email.provider: without mail, users cannot reset a password, delete an account or move to another server',
    )
  const refusal = await mailer.check()
  return refusal === null
    ? ok(`${config.email.provider} accepts our login`)
    : fault(`${config.email.provider}: ${refusal}`, mailRemedy(refusal))
}

async function checkPlc({ config, upstream }: Patient): Promise<Finding> {
  if (config.plcDirectoryUrl === null) return ok('runs inside this process')
  const { host } = new URL(config.plcDirectoryUrl)
  const response = await upstream
    .fetch(`${config.plcDirectoryUrl}/_health`, { headersTimeoutMillis: TIMEOUT_MILLIS })
    .catch((error: unknown) => wordsOf(error))
  if (typeof response === 'string')
    return fault(
      `${host} cannot be reached: ${response}`,
      'allow outgoing https: accounts cannot be created without the directory',
    )
  await response.body?.cancel()
  return response.ok
    ? ok(`${host} answers`)
    : warning(`${host} returns ${response.status}`, 'try again later; if it persists, check plc_directory_url')
}

async function checkRelay(patient: Patient): Promise<Finding> {
  const { config } = patient
  const [relay] = config.crawlers.urls
  if (relay === undefined)
    return warning(
      'no relay is configured',
      'set crawlers.urls: without a relay, the network does not see posts made here',
    )
  const { host } = new URL(config.publicUrl)
  const { host: relayHost } = new URL(relay)
  const answer = await askRelay(patient, relay)
  if (answer.kind === 'unreachable')
    return fault(`${relayHost} cannot be reached: ${answer.detail}`, 'allow outgoing https')
  if (answer.kind === 'not-crawled')
    return warning(
      `${relayHost} has not crawled ${host}`,
      'start the server, which requests a crawl, or run "holdfast relay request-crawl"',
    )
  if (answer.kind === 'failed') return warning(`${relayHost} returns ${answer.httpStatus}`, 'try again later')
  return answer.status === 'active'
    ? ok(`${relayHost} follows this server`)
    : warning(
        `${relayHost} reports the status "${answer.status}" for this server`,
        'if it persists, request a crawl again ("holdfast relay request-crawl"), then ask the operator of the relay',
      )
}

interface StepKindView {
  kind: string
  waiting: number
  failed: number
  oldestAt: string | null
  lastError: string | null
}

/** Ask the running server as the operator. Returns the reason if that is not possible. */
async function askAsOperator<T>({ config, upstream }: Patient, path: string): Promise<T | string> {
  if (config.adminToken === null) return 'needs the admin token'
  const response = await upstream.fetch(ownUrl(config) + path, {
    headers: { authorization: `Bearer ${config.adminToken.reveal()}` },
    headersTimeoutMillis: TIMEOUT_MILLIS,
    bodyTimeoutMillis: TIMEOUT_MILLIS,
  })
  const answer = parsedJson(await response.text())
  return response.ok && typeof answer === 'object' && answer !== null
    ? (answer as T)
    : `the running server returns ${response.status}`
}

/** Check what the running server says about its certificates. */
async function checkCertificates(patient: Patient): Promise<Finding> {
  const { tls } = patient.config
  if (tls.mode === 'off') return ok('tls.mode is off: a reverse proxy has them')
  const answer = await askAsOperator<CertificatesView>(patient, CERTIFICATES_PATH)
  if (typeof answer === 'string') return skipped(answer)
  const { served, earliestEndsAt, faults, waiting } = answer
  if (faults.length > 0)
    return warning(
      faults.map(({ text }) => text).join('; '),
      tls.mode === 'files'
        ? 'let the user of the server read the files of tls.certificate_files and tls.key_files, and have them renewed; docs/certificates.md says how'
        : 'fix what the messages say, then run "holdfast sweep certificates"; docs/certificates.md says what is needed',
    )
  const ends = earliestEndsAt === null ? '' : `, the first of which ends at ${earliestEndsAt}`
  return ok(`certificates served: ${served}${ends}; on order: ${waiting}`)
}

/** Check the running server for durable steps that have failed or are overdue. */
async function checkSteps(patient: Patient): Promise<Finding> {
  const { now } = patient
  const answer = await askAsOperator<{ kinds: StepKindView[] }>(patient, '/v1/admin/steps?limit=1')
  if (typeof answer === 'string') return skipped(answer)
  const minutesOf = ({ oldestAt }: StepKindView) =>
    oldestAt === null ? 0 : Math.floor((now() - Date.parse(oldestAt)) / MINUTE_MILLIS)
  const late = answer.kinds.filter((kind) => kind.failed > 0 || minutesOf(kind) >= STEP_WARNING_MINUTES)
  if (late.length === 0) return ok('no step has failed or is overdue')
  const told = late.map((kind) => {
    const failed = kind.failed > 0 ? [`${kind.failed} failed`] : []
    const waiting =
      minutesOf(kind) >= STEP_WARNING_MINUTES
        ? [`${kind.waiting} waiting, for up to ${Math.floor(minutesOf(kind) / 60)} hours`]
        : []
    return `${kind.kind}: ${[...failed, ...waiting].join(', ')}${kind.lastError === null ? '' : ` (${kind.lastError})`}`
  })
  return warning(
    told.join('; '),
    'fix what the messages say, then run "holdfast step retry" or "holdfast step drop" with the kind',
  )
}

interface SweepsView {
  sweepsUnderWay?: { name: string; since: string; isStuck: boolean }[]
}

/** Check for a pass of a sweep that takes so long in the running server that it may never end. */
async function checkSweeps(patient: Patient): Promise<Finding> {
  const answer = await askAsOperator<SweepsView>(patient, '/v1/admin/health')
  if (typeof answer === 'string') return skipped(answer)
  const { sweepsUnderWay } = answer
  if (sweepsUnderWay === undefined) return skipped('the running server is older, and does not report it')
  const stuck = sweepsUnderWay.filter(({ isStuck }) => isStuck)
  if (stuck.length === 0) return ok(`no sweep is stuck; passes under way: ${sweepsUnderWay.length}`)
  return warning(
    stuck.map(({ name, since }) => `a pass of ${name} has been under way since ${since}`).join('; '),
    'restart the server if the sweep makes no progress, and report it with the log lines from that time',
  )
}

interface LoopView {
  longestStall: { seconds: number; cause: 'computing' | 'waiting'; route: string | null; at: string } | null
}

/** What helps against a stall of the event loop, by what held it up. */
const stallRemedies = {
  computing: 'update the server; if it is the newest, report this with the lines "event loop stalled" of its log',
  waiting: 'check for slow disks, swapping, and other programs that use the processors',
}

/** Whether the event loop of the running server has stalled. */
async function checkLoop(patient: Patient): Promise<Finding> {
  const answer = await askAsOperator<{ eventLoop?: LoopView }>(patient, '/v1/admin/health')
  if (typeof answer === 'string') return skipped(answer)
  if (answer.eventLoop === undefined) return skipped('the running server is older, and does not report it')
  const { longestStall: stall } = answer.eventLoop
  if (stall === null) return ok('the event loop has not stalled since the start')
  const by = stall.route === null ? '' : ` in ${stall.route}`
  const text = `the event loop stalled for up to ${stall.seconds.toFixed(1)} s since the start (${stall.cause}${by}, at ${stall.at})`
  return stall.seconds < stallWarningSecs[stall.cause] ? ok(text) : warning(text, stallRemedies[stall.cause])
}

interface PushesView {
  connected: boolean
  lastAnswerAt: string | null
  failingSince: string | null
  lastError: string | null
  queue: { depth: number }
}

/** Ask the running server about its push relay. */
async function checkPushes(patient: Patient): Promise<Finding> {
  if (patient.config.notifications.relay === null) return ok('no push relay is configured')
  const answer = await askAsOperator<{ notifications: PushesView | null }>(patient, '/v1/admin/health')
  if (typeof answer === 'string') return skipped(answer)
  const { notifications } = answer
  if (notifications === null)
    return warning('the running server has no push relay', 'restart it, so that it reads its configuration again')
  const { queue, lastAnswerAt, failingSince, lastError } = notifications
  const waiting = queue.depth === 0 ? 'its queue is empty' : `${queue.depth} pushes or registrations are queued`
  if (failingSince !== null)
    return warning(
      `since ${failingSince}: ${lastError}; ${waiting}`,
      'run "holdfast push test" with an account that has a device, to see which step fails; check notifications.* in the configuration',
    )
  return ok(
    lastAnswerAt === null
      ? `the push relay has not been contacted since the start; ${waiting}`
      : `the push relay responds; ${waiting}`,
  )
}

/** Whether the endpoint is open. Whether others can reach it from outside cannot be checked from here. */
async function checkQuic(patient: Patient): Promise<Finding> {
  const { iroh, signingKeyMasterKey } = patient.config
  if (!iroh.enabled) return ok('iroh.enabled is false')
  const answer = await askAsOperator<{ iroh: IrohStatus | null }>(patient, '/v1/admin/health')
  if (typeof answer === 'string') return skipped(answer)
  if (answer.iroh === null)
    return fault(
      'the running server has no endpoint for QUIC',
      'restart it: iroh.enabled has been set since it started',
    )
  const { nodeId, isHere, sockets, openConnections, echoesServed } = answer.iroh
  const text = isHere
    ? `node ${nodeId} at ${sockets.join(', ')}: ${openConnections} connections open, ${echoesServed} echoes served`
    : `node ${nodeId}: the endpoint is at another server of the cluster ("holdfast cluster status" says which)`
  return signingKeyMasterKey === null
    ? warning(text, 'set signing_key_master_key: without it the node id changes with every start')
    : ok(text)
}
