/**
 * `holdfast init`, step by step. First everything is checked; then the files are written, each of them atomically; then
 * the service and the invite follow, which reuse what an earlier run has made. So the command can be killed anywhere
 * and run again.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { withContext } from '../../app.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { examineAll, type Examined, type Finding, type Patient } from '../../features/operations/doctor/doctor.ts'
import { usableOperatorCode } from '../../features/identity/invites/invites.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { SERVICE_SETTINGS, CONFIG_VARIABLE } from '../../platform/configuration/config-files.ts'
import { describeProblems, loadConfig } from '../../platform/configuration/config-loading.ts'
import { ownUrl } from '../../platform/configuration/own-url.ts'
import { createMailer } from '../../platform/network/mailer.ts'
import { createOutbound } from '../../platform/network/outbound.ts'
import { type Resolver, systemResolver } from '../../platform/network/resolver.ts'
import { createLog } from '../../platform/running/log.ts'
import { isIpAddress } from '../../protocol/ip-address.ts'
import { type Invocation, Misuse, type Terminal } from '../command.ts'
import { allInvites } from '../invite/operator-invites.ts'
import { serverOf } from '../operator-server.ts'
import { table } from '../report.ts'
import { awaitHealth } from '../server-health.ts'
import { type Answers, collectAnswers, isConfiguration } from './answers.ts'
import {
  type DnsRecord,
  lookForRecords,
  nameServers,
  type NameServers,
  openResponder,
  ownAddresses,
  recordsOf,
} from './dns-records.ts'
import { encryptionHere, isServerRunning, checkMachine, checkReach } from './machine-checks.ts'
import { canInstallService, installService, requirePlaces, serviceFolders, startService, UNIT } from './service.ts'
import {
  type FileKeys,
  fileKeysText,
  keysFileBeside,
  readSettings,
  settingsText,
  type Variables,
  writeSettings,
} from './settings-file.ts'

const START_MILLIS = 120_000
const MAX_PAUSE_MILLIS = 10_000
const FIRST_PAUSE_MILLIS = 1000
const SETTINGS_HERE = './holdfast.env'

export interface SetUp {
  invocation: Invocation
  /** Whether to ask no questions. */
  isUnattended: boolean
  dnsWaitSecs: number
}

type CheckedPart = { name: string } & Finding

interface SetUpReport {
  publicUrl: string
  /** The file of variables. */
  configuration: string
  /** `none`: a check failed, so nothing was written. */
  outcome: 'none' | 'kept' | 'written'
  /** Path of the former configuration's copy; null if the configuration was not replaced. */
  copy: string | null
  checks: CheckedPart[]
  records: DnsRecord[]
  /** Variables of the reference that have no counterpart, with the reason. */
  dropped: Readonly<Record<string, string>>
  service: string | null
  invite: string | null
  signUpUrl: string
  /** Null if the server does not run. */
  doctor: CheckedPart[] | null
  /** What is left to do, in sentences. */
  next: string[]
}

/** Returns whether all is done. Throws `OperatorError` if a step fails, and `Misuse` if an option is wrong. */
export async function setUp(given: SetUp): Promise<boolean> {
  const { invocation } = given
  const { terminal, flags } = invocation
  const say = flags.has('json') ? terminal.err : terminal.out
  const isService = await wantsService(given)
  const settings = settingsPath(invocation, isService)
  const former = readSettings(terminal, settings)
  const answers = await collectAnswers({
    invocation,
    isUnattended: given.isUnattended,
    former,
    addresses: addressesHere(invocation),
    folders: settings === SERVICE_SETTINGS ? serviceFolders : { data: './data', backups: './backups' },
    encryption: (known) => encryptionHere(known, isService),
  })
  const isKept = isConfiguration(former) && !(await mayChange(given, settings, answers))
  const variables = isKept ? former : withFileKeys(answers, settings)
  const config = configOf(terminal, variables, isKept ? null : answers.fileKeys)
  if (isService) await requirePlaces({ settings, config })
  const report: SetUpReport = {
    publicUrl: config.publicUrl,
    configuration: settings,
    outcome: 'none',
    copy: null,
    checks: [],
    records: [],
    dropped: answers.dropped,
    service: null,
    invite: null,
    signUpUrl: `${config.publicUrl}/account/sign-up`,
    doctor: null,
    next: [],
  }
  const isDone = await perform({
    ...given,
    say,
    isService,
    isKept,
    settings,
    former,
    variables,
    config,
    answers,
    report,
  })
  if (flags.has('json')) terminal.out(JSON.stringify(report, null, 2))
  else for (const line of report.next) terminal.out(line)
  return isDone
}

interface Run extends SetUp {
  say(text: string): void
  isService: boolean
  isKept: boolean
  settings: string
  /** What the file contained when the command began; null without a file. */
  former: Variables | null
  variables: Variables
  config: Config
  answers: Answers
  report: SetUpReport
}

async function perform(run: Run): Promise<boolean> {
  const { invocation, say, config, report, isService } = run
  const isMoving = invocation.options['from-reference'] !== undefined
  for (const [name, why] of Object.entries(report.dropped)) say(`${name} has no counterpart: ${why}`)
  const servers = addressList(invocation, 'name-server', isServer)
  const names = nameServers(servers)
  const patient = patientOf(config, systemResolver({ asksSystem: true }))
  /** The server as other machines find it. */
  const outside = servers === undefined ? patient : patientOf(config, names.resolver)
  for await (const checked of checkMachine(patient, { mayBindAll: isService, hasFormer: isMoving }))
    note(run, report.checks, checked)
  if (report.checks.some(({ state }) => state === 'fault')) return stopped(run)

  report.records = recordsOf(config, addressesHere(invocation))
  if (!invocation.flags.has('skip-dns')) {
    const responder = await openResponder(config)
    const outcome = await awaitRecords(run, names, responder !== null).finally(() => responder?.close())
    if (outcome === 'missing') return stopped(run)
    if (outcome === 'seen') note(run, report.checks, { name: 'reach', finding: await checkReach(outside) })
  }

  write(run)
  if (isService) await runService(run, { isStarted: !isMoving })
  const isRunning = await isServerRunning(config)
  if (run.answers.signUp === 'invite' && !isMoving && (isRunning || !isService))
    report.invite = await firstInvite(run, isRunning)
  if (report.invite !== null) report.signUpUrl += `?${new URLSearchParams({ invite_code: report.invite })}`
  if (isRunning) await examine(run, outside)
  report.next.push(...nextSteps(run, { isRunning, isMoving }))
  return !isService || isMoving || isRunning
}

function stopped({ report, settings }: Run): false {
  report.next.push(`Nothing was written to ${settings}. Correct what is wrong, and run the same command again.`)
  return false
}

const marks = { ok: 'ok   ', warning: 'warn ', fault: 'FAULT', skipped: '-    ' } as const
const NAME_WIDTH = 'client-address'.length

function note({ say }: Run, list: CheckedPart[], { name, finding }: Examined): void {
  list.push({ name, ...finding })
  say(`${marks[finding.state]} ${name.padEnd(NAME_WIDTH)}  ${finding.text}`)
  if ('remedy' in finding) say(`${' '.repeat(NAME_WIDTH + 8)}→ ${finding.remedy}`)
}

async function wantsService({ invocation: { flags, terminal }, isUnattended }: SetUp): Promise<boolean> {
  if (flags.has('service')) {
    if (!canInstallService()) throw new OperatorError('--service needs Linux with systemd, and root')
    return true
  }
  if (isUnattended || !canInstallService() || !isSystemdRunning()) return false
  return isYes(await terminal.ask('Install a systemd service that runs the server? (Y/n): '), true)
}

const isSystemdRunning = (): boolean => existsSync('/run/systemd/system')

const isYes = (answer: string, standard: boolean): boolean =>
  answer.trim() === '' ? standard : /^y/i.test(answer.trim())

function settingsPath(invocation: Invocation, isService: boolean): string {
  const named = invocation.options['config']
  if (named !== undefined && !named.endsWith('.env')) throw new Misuse('--config takes a name that ends in .env')
  return resolve(named ?? (isService ? SERVICE_SETTINGS : SETTINGS_HERE))
}

/** Whether the existing configuration may be changed. Throws `OperatorError` if it has to change and may not. */
async function mayChange(
  { invocation, isUnattended }: SetUp,
  settings: string,
  { changed }: Answers,
): Promise<boolean> {
  const { flags, terminal } = invocation
  if (flags.has('force')) return true
  if (changed.length === 0) return false
  const what = `${settings} has other values of ${changed.join(', ')}`
  if (!isUnattended && isYes(await terminal.ask(`${what}. Change them, and keep a copy? (y/N): `), false)) return true
  throw new OperatorError(`${what}: leave the options out, or add --force, which keeps a copy`)
}

/** Put keys that have no variable into a file of their own. */
function withFileKeys({ variables, fileKeys }: Answers, settings: string): Variables {
  if (Object.keys(fileKeys).length === 0 || variables[CONFIG_VARIABLE] !== undefined) return variables
  return { ...variables, [CONFIG_VARIABLE]: keysFileBeside(settings) }
}

/** Returns the configuration as the server will read it. Throws all problems at once. `newKeys` are not written yet. */
function configOf(terminal: Terminal, variables: Variables, newKeys: FileKeys | null): Config {
  const named = variables[CONFIG_VARIABLE]
  const keysToBe = newKeys === null ? null : fileKeysText(newKeys)
  const readFile = (path: string) => (path === named ? (terminal.readFile(path) ?? keysToBe) : null)
  const loaded = loadConfig({ env: variables, readFile }, 'serve')
  if (!loaded.ok) throw new OperatorError(describeProblems(loaded.problems))
  return loaded.config
}

const warningsTo = (terminal: Terminal) =>
  createLog({ format: 'text', level: 'warn', now: terminal.now, write: (line) => terminal.err(line.trimEnd()) })

function patientOf(config: Config, resolver: Resolver): Patient {
  const upstream = createOutbound({ resolver, reach: 'anywhere' })
  const silent = createLog({ format: 'text', level: 'error', now: Date.now, write: () => {} })
  return { config, resolver, upstream, mailer: createMailer(config, { upstream, log: silent }), now: Date.now }
}

/** `address`, or `address:port` with brackets around IPv6. */
const isServer = (text: string): boolean =>
  isIpAddress(text) || isIpAddress(/^\[?(.*?)\]?:\d{1,5}$/.exec(text)?.[1] ?? '')

function addressList(
  invocation: Invocation,
  name: string,
  isValid: (text: string) => boolean = isIpAddress,
): string[] | undefined {
  const list = invocation.options[name]?.split(',').map((each) => each.trim())
  if (list !== undefined && !list.every(isValid)) throw new Misuse(`--${name} takes IP addresses, separated by commas`)
  return list
}

const addressesHere = (invocation: Invocation): string[] => addressList(invocation, 'address') ?? ownAddresses()

/** Show the records, and look them up until they are found, for at most the given time. */
async function awaitRecords(
  run: Run,
  names: NameServers,
  isAnswering: boolean,
): Promise<'seen' | 'skipped' | 'missing'> {
  const { invocation, config, report, say, dnsWaitSecs, isUnattended } = run
  const { terminal } = invocation
  const tell = (finding: Finding) => note(run, report.checks, { name: 'dns', finding })
  say('DNS needs these records:')
  say(
    table(
      ['NAME', 'TYPE', 'VALUE'],
      report.records.map(({ name, type, value }) => [
        `${name}.`,
        type,
        value ?? '(the public address of this machine)',
      ]),
    ),
  )
  const stated = addressList(invocation, 'address')
  // With a proxy in front, names may lead to the proxy's address. So require a certain address only if the operator has
  // stated it, or if the server encrypts connections itself.
  const expected = stated ?? (config.tls.mode === 'off' ? [] : ownAddresses())
  let endsAt = terminal.now() + dnsWaitSecs * 1000
  let told = ''
  for (let pause = FIRST_PAUSE_MILLIS; ; pause = Math.min(2 * pause, MAX_PAUSE_MILLIS)) {
    const allowsPrivate = config.development
    const { missing, remarks } = await lookForRecords(config, names, { expected, allowsPrivate, isAnswering })
    if (missing.length === 0) {
      tell({ state: 'ok', text: ['all records are there', ...remarks].join('; ') })
      return 'seen'
    }
    const text = [...missing, ...remarks].join('; ')
    if (!isUnattended && told === '') {
      const answer = await terminal.ask(`${text}\nSet them, and press Enter to wait for them; or s to skip this: `)
      if (/^s/i.test(answer.trim())) {
        tell({ state: 'skipped', text })
        return 'skipped'
      }
      endsAt = terminal.now() + dnsWaitSecs * 1000
    } else if (terminal.now() >= endsAt) {
      const remedy = 'set the records and run the same command again, or add --skip-dns'
      tell({ state: 'fault', text, remedy })
      return 'missing'
    } else if (text !== told) say(`waiting: ${text}`)
    told = text
    await terminal.pause(Math.min(pause, Math.max(0, endsAt - terminal.now())))
  }
}

/** Throws `OperatorError` if another process has written the configuration since this one began. */
function write({ invocation: { terminal }, settings, former, variables, answers, isKept, report, say }: Run): void {
  if (isKept) {
    report.outcome = 'kept'
    return say(`${settings} stays as it is`)
  }
  if (!isDeepStrictEqual(readSettings(terminal, settings), former))
    throw new OperatorError(
      `${settings} has been written by another process since this command began, and stays as it is now: run the same command again, which continues with it`,
    )
  const text = settingsText(variables)
  const keys = variables[CONFIG_VARIABLE]
  // Write the file of keys first, because the other file names it.
  if (Object.keys(answers.fileKeys).length > 0 && keys !== undefined)
    writeSettings(terminal, { path: keys, text: fileKeysText(answers.fileKeys), isSecret: false })
  report.copy = writeSettings(terminal, { path: settings, text, isSecret: true })
  report.outcome = 'written'
  say(`${settings} is written${report.copy === null ? '' : `; the former one is ${report.copy}`}`)
}

async function runService(
  { invocation: { terminal }, config, settings, report, say }: Run,
  { isStarted }: { isStarted: boolean },
): Promise<void> {
  const isChanged = await installService({ settings, config, onStep: say })
  report.service = UNIT
  if (!isStarted) return
  const isUpToDate = report.outcome === 'kept' && !isChanged && (await isServerRunning(config))
  if (!isUpToDate) await startService(say)
  const { state, reason } = await awaitHealth(ownUrl(config), { withinMillis: START_MILLIS }, terminal.pause)
  if (state !== 'healthy')
    throw new OperatorError(
      `the server does not work (${reason}): "journalctl -u ${UNIT}" says why. Then run the same command again`,
    )
  say(`the server runs at ${ownUrl(config)}`)
}

/** Returns an unused invite, from the running server or from the database, which is created if there is none. */
async function firstInvite(
  { invocation: { terminal }, config, report, say }: Run,
  isRunning: boolean,
): Promise<string | null> {
  if (!isRunning)
    return withContext(config, (ctx) => ctx.db.transaction((tx) => usableOperatorCode(ctx, tx)), {
      mayBeNew: true,
      log: warningsTo(terminal),
    })
  if (config.adminToken === null) {
    say('no invite: the configuration has no admin token')
    return report.invite
  }
  const server = serverOf(config, config.adminToken.reveal())
  const open = (await allInvites(server)).find(
    ({ disabled, uses, available, forAccount }) => !disabled && uses.length < available && forAccount === 'admin',
  )
  if (open !== undefined) return open.code
  return (await server.post<{ code: string }>('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })).code
}

async function examine(run: Run, patient: Patient): Promise<void> {
  const doctor: CheckedPart[] = []
  run.report.doctor = doctor
  run.say('The doctor says:')
  for await (const examined of examineAll(patient)) note(run, doctor, examined)
}

function* nextSteps(
  { invocation, settings, config, isService, report, answers }: Run,
  { isRunning, isMoving }: { isRunning: boolean; isMoving: boolean },
): Iterable<string> {
  const { self } = invocation.terminal
  const command = isService ? 'pds' : settings === resolve(SETTINGS_HERE) ? self : `SERVICE_CONFIG=${settings} ${self}`
  if (report.outcome === 'written' && config.signingKeyMasterKey !== null)
    yield `Copy the master key in ${settings} to a safe place: backups are of no use without it.`
  if (isMoving)
    yield `Move the accounts in: ${command} import-reference <data folder of the reference> (docs/moving-in.md)`
  if (!isRunning) yield `Start the server: ${isService ? `systemctl enable --now ${UNIT}` : `${command} serve`}`
  const isReached = report.doctor?.some(({ name, state }) => name === 'proxy' && state === 'ok') ?? false
  if (config.tls.mode === 'off' && !isReached)
    yield `Let a reverse proxy lead to ${ownUrl(config)}: docs/behind-a-proxy.md`
  if (report.doctor?.some(({ state }) => state === 'fault'))
    yield `Correct the faults, and examine it again: ${command} doctor`
  if (answers.signUp === 'closed') yield `Make accounts: ${command} account create NAME ADDRESS`
  else yield `Sign up: ${report.signUpUrl}`
}
