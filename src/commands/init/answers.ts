/**
 * What `holdfast init` has to know, as variables. They come, in this order, from its options, from variables of its own
 * environment, from the existing file, from the environment of a reference PDS, and from the person at the terminal.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DAY_SECS } from '../../base/durations.ts'
import { placeFault } from '../../base/bucket-place.ts'
import { OperatorError } from '../../base/operator-error.ts'
import {
  mailServer,
  parseReferenceEnv,
  translateReferenceEnv,
  type Setting,
} from '../../features/operations/reference-import/reference-import.ts'
import { configKeys } from '../../platform/configuration/config-loading.ts'
import { masterKeyFile } from '../../platform/secrets/vault.ts'
import { type Invocation, Misuse, type Terminal } from '../command.ts'
import { parseServiceDomain, requireServiceDomain } from '../service-domain.ts'
import type { FileKeys, Variables } from './settings-file.ts'

const SECRET_BYTES = 32
const MAX_TRIES = 5
const NONE = 'none'

const signUps = ['invite', 'open', 'closed'] as const
export type SignUp = (typeof signUps)[number]

export interface Answers {
  variables: Variables
  fileKeys: FileKeys
  signUp: SignUp
  /** Variables of the reference that have no counterpart, with the reason. */
  dropped: Readonly<Record<string, string>>
  /** Names of variables to which options or the environment give another value than the existing file does. */
  changed: readonly string[]
}

export interface Situation {
  invocation: Invocation
  /** Whether there is no person to ask. */
  isUnattended: boolean
  /** The existing file; null if there is none. */
  former: Variables | null
  /** The public addresses of this machine. */
  addresses: readonly string[]
  /** Where data and backups go by default. */
  folders: { data: string; backups: string }
  /** Returns, as variables, who is to encrypt connections, and how names are proven. */
  encryption(known: Variables): Promise<Variables>
}

/** Whether a file says which server this is. The file of a package does not. */
export const isConfiguration = (
  variables: Variables | null,
): variables is Variables & Record<'SERVICE_PUBLIC_URL', string> => variables?.['SERVICE_PUBLIC_URL'] !== undefined

export async function collectAnswers(situation: Situation): Promise<Answers> {
  const { invocation, former, isUnattended } = situation
  const reference = referenceOf(invocation)
  const explicit = absolute({ ...environmentOf(invocation.terminal), ...(await optionsOf(invocation)) })
  const known = { ...reference.variables, ...keptOf(former, explicit), ...explicit }
  if (known['SERVICE_PUBLIC_URL'] === undefined && isUnattended) throw new Misuse('--domain is required with --yes')
  const encryption = isConfiguration(former) ? {} : await situation.encryption(known)
  const hasQuestions = !isUnattended && !isConfiguration(former)
  const asked = hasQuestions ? await ask(situation, known, encryption) : { variables: {}, signUp: null }
  const isDeclined = asked.variables['SERVICE_TLS_MODE'] === 'off'
  const answered = { ...(!isDeclined && encryption), ...asked.variables, ...known }
  const operatorMail = answered['SERVICE_TLS_ACME_EMAIL'] ?? reference.fileKeys['contact.email']
  const variables = absolute({ ...defaultsOf(situation, answered), ...alertsTo(operatorMail, answered), ...answered })
  const isClosed = (invocation.options['sign-up'] ?? asked.signUp) === 'closed'
  const inviteOrClosed = isClosed ? 'closed' : 'invite'
  return {
    variables: { ...variables, ...secretsFor(variables) },
    fileKeys: reference.fileKeys,
    signUp: variables['SERVICE_INVITE_CODE_REQUIRED'] === 'false' ? 'open' : inviteOrClosed,
    dropped: reference.dropped,
    changed: isConfiguration(former) ? Object.keys(explicit).filter((name) => former[name] !== explicit[name]) : [],
  }
}

/**
 * Returns the variables of the existing file that stay. A domain of handles that equals the host of the address changes
 * with the address. The file of a package does not know who encrypts connections.
 */
function keptOf(former: Variables | null, explicit: Variables): Variables {
  if (former !== null && !isConfiguration(former)) {
    const { SERVICE_BIND_ADDRESS: _, ...template } = former
    return template
  }
  const { SERVICE_AVAILABLE_USER_DOMAINS: domains, ...rest }: Variables = former ?? {}
  const isMoved = explicit['SERVICE_PUBLIC_URL'] !== undefined && `https://${domains}` === rest['SERVICE_PUBLIC_URL']
  return domains === undefined || isMoved ? rest : { ...rest, SERVICE_AVAILABLE_USER_DOMAINS: domains }
}

const knownVariables = new Set(configKeys.flatMap(({ env }) => env))

/** Variables of the process that configure the server. Excludes those that other programs share, such as PORT. */
const environmentOf = ({ env }: Terminal): Variables =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      name.startsWith('SERVICE_') && knownVariables.has(name) && value !== undefined ? [[name, value]] : [],
    ),
  )

async function optionsOf(invocation: Invocation): Promise<Variables> {
  const { domain, data, port, tls, backups, mail } = invocation.options
  const { 'sign-up': signUp, 'mail-from': from, 'operator-mail': operator } = invocation.options
  return {
    ...(domain !== undefined && addressOf(requireServiceDomain(domain, testsOf(invocation)))),
    ...(data !== undefined && { SERVICE_DATA_DIR: data }),
    ...(port !== undefined && { SERVICE_PORT: port }),
    ...(tls !== undefined && { SERVICE_TLS_MODE: tls }),
    ...(backups !== undefined && backupsAt(backups)),
    ...(signUp !== undefined && signUpVariables(signUp)),
    ...(mail !== undefined && (await mailOption(invocation, mail))),
    ...(from !== undefined && { SERVICE_EMAIL_FROM: from }),
    ...(operator !== undefined && { SERVICE_ALERTS_MAIL_TO: operator }),
  }
}

const testsOf = ({ terminal: { env } }: Invocation) => ({ allowsTest: env['SERVICE_DEVELOPMENT'] === 'true' })

const addressOf = (domain: string): Variables => ({ SERVICE_PUBLIC_URL: `https://${domain}` })

/** Settings for a backup every day; `none` for no backups. */
const backupsAt = (place: string): Variables =>
  place === NONE
    ? { SERVICE_BACKUP_INTERVAL_SECS: '0' }
    : { SERVICE_BACKUP_DESTINATION: place, SERVICE_BACKUP_INTERVAL_SECS: String(DAY_SECS) }

function signUpVariables(given: string): Variables {
  if (!signUps.includes(given as SignUp)) throw new Misuse(`--sign-up must be one of ${signUps.join(', ')}`)
  return { SERVICE_INVITE_CODE_REQUIRED: String(given !== 'open') }
}

/** Throws `Misuse` without repeating the address, which may hold a password. */
async function mailOption({ terminal }: Invocation, given: string): Promise<Variables> {
  const variables = mailVariables(given === '-' ? ((await terminal.nextLine()) ?? '') : given)
  if (variables === null) throw new Misuse('--mail takes smtp://user:password@host:port, smtps://… or "none"')
  return variables
}

/** Returns null if the address is invalid. */
function mailVariables(address: string): Variables | null {
  if (address === NONE) return { SERVICE_EMAIL_PROVIDER: 'log' }
  const settings = mailServer(address)
  return settings === null ? null : byVariable(settings).variables
}

/** Settings by the names of their variables. Those without a variable stay keys. */
function byVariable(settings: Readonly<Record<string, Setting>>): { variables: Variables; fileKeys: FileKeys } {
  const variableOf = (name: string) => configKeys.find((key) => key.name === name)?.env[0]
  const entries = Object.entries(settings)
  return {
    variables: Object.fromEntries(
      entries.flatMap(([name, value]) => {
        const variable = variableOf(name)
        return variable === undefined ? [] : [[variable, Array.isArray(value) ? value.join(',') : String(value)]]
      }),
    ),
    fileKeys: Object.fromEntries(entries.filter(([name]) => variableOf(name) === undefined)),
  }
}

function referenceOf(invocation: Invocation): Pick<Answers, 'variables' | 'fileKeys' | 'dropped'> {
  const path = invocation.options['from-reference']
  if (path === undefined) return { variables: {}, fileKeys: {}, dropped: {} }
  const text = invocation.terminal.readFile(path)
  if (text === null) throw new OperatorError(`there is no file ${path} (--from-reference)`)
  const { settings, dropped } = translateReferenceEnv(parseReferenceEnv(text))
  if (Object.keys(settings).length + Object.keys(dropped).length === 0)
    throw new OperatorError(`${path} is not an environment of the reference PDS: it sets no variable PDS_…`)
  return { ...byVariable(settings), dropped }
}

/** Defaults for what is not known otherwise. */
function defaultsOf({ folders, addresses }: Situation, known: Variables): Variables {
  const { hostname } = new URL(known['SERVICE_PUBLIC_URL']!)
  const { SERVICE_EMAIL_SMTP_USERNAME: user, SERVICE_EMAIL_PROVIDER: provider = 'log' } = known
  return {
    SERVICE_AVAILABLE_USER_DOMAINS: hostname,
    SERVICE_DATA_DIR: folders.data,
    SERVICE_PORT: '8080',
    SERVICE_INVITE_CODE_REQUIRED: 'true',
    SERVICE_EMAIL_PROVIDER: provider,
    ...bindingOf(known['SERVICE_TLS_MODE'], addresses),
    ...(provider !== 'log' && { SERVICE_EMAIL_FROM: user?.includes('@') ? user : `noreply@${hostname}` }),
    ...(known['SERVICE_BACKUP_INTERVAL_SECS'] === undefined && backupsAt(folders.backups)),
  }
}

/** Send alerts to the operator, unless there is no mail server: then nothing would arrive. */
function alertsTo(address: unknown, { SERVICE_EMAIL_PROVIDER: provider = 'log' }: Variables): Variables {
  return typeof address !== 'string' || provider === 'log' ? {} : { SERVICE_ALERTS_MAIL_TO: address }
}

/** A reverse proxy is on this machine. Without one, the server has to accept connections to all its addresses. */
function bindingOf(mode: string | undefined, addresses: readonly string[]): Variables {
  if (mode === 'off') return { SERVICE_BIND_ADDRESS: '127.0.0.1' }
  return addresses.some((address) => address.includes(':')) ? { SERVICE_BIND_ADDRESS: '::' } : {}
}

/** Make folders independent of where the server starts. The configuration refuses what names no folder. */
function absolute(variables: Variables): Variables {
  const isFolder = (name: string, value: string) =>
    placeFault(value) === null &&
    (name === 'SERVICE_DATA_DIR' || (name === 'SERVICE_BACKUP_DESTINATION' && !value.startsWith('s3://')))
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, isFolder(name, value) ? resolve(value) : value]),
  )
}

/** Returns the missing secrets. A folder that has a master key, or data, keeps the key that it has. */
function secretsFor(variables: Variables): Variables {
  const folder = variables['SERVICE_DATA_DIR']!
  const hasKey = variables['SERVICE_SIGNING_KEY_MASTER_KEY'] !== undefined || existsSync(masterKeyFile(folder))
  if (!hasKey && existsSync(join(folder, 'holdfast.db')))
    throw new OperatorError(
      `${folder} holds the data of a server, but its master key is not known: name the configuration that it had with --config, or set SERVICE_SIGNING_KEY_MASTER_KEY`,
    )
  const secret = () => randomBytes(SECRET_BYTES).toString('hex')
  return {
    ...(variables['SERVICE_ADMIN_TOKEN'] === undefined && { SERVICE_ADMIN_TOKEN: secret() }),
    ...(!hasKey && { SERVICE_SIGNING_KEY_MASTER_KEY: secret() }),
  }
}

/** What a question needs to know. Asking returns nothing if the answer is known. */
interface Asking {
  terminal: Terminal
  /** What is known, and what has been answered so far. */
  known: Variables
  /** Who is to encrypt connections by default. */
  encryption: Variables
  folders: Situation['folders']
  allowsTest: boolean
}

const questions: readonly ((asking: Asking) => Promise<Variables>)[] = [askEncryption, askMail, askBackups]

async function ask(
  { invocation, folders }: Situation,
  known: Variables,
  encryption: Variables,
): Promise<{ variables: Variables; signUp: SignUp | null }> {
  const asking = { terminal: invocation.terminal, encryption, folders, ...testsOf(invocation) }
  const address = await askDomain({ ...asking, known })
  const signUp = known['SERVICE_INVITE_CODE_REQUIRED'] === undefined ? await askSignUp(invocation.terminal) : null
  let variables: Variables = { ...address, ...(signUp !== null && signUpVariables(signUp)) }
  for (const question of questions)
    variables = { ...variables, ...(await question({ ...asking, known: { ...known, ...variables } })) }
  return { variables, signUp }
}

async function put(terminal: Terminal, question: string, standard = ''): Promise<string> {
  const hint = standard === '' ? '' : ` (${standard})`
  return (await terminal.ask(`${question}${hint}: `)).trim() || standard
}

async function askDomain({ terminal, known, allowsTest }: Asking): Promise<Variables> {
  if (known['SERVICE_PUBLIC_URL'] !== undefined) return {}
  return untilValid(terminal, async () => {
    const given = await put(terminal, 'Domain of the server, such as pds.example.com')
    const parsed = parseServiceDomain(given, { allowsTest })
    return parsed.ok ? addressOf(parsed.domain) : new Fault(parsed.fault)
  })
}

const askSignUp = (terminal: Terminal): Promise<SignUp> =>
  untilValid(terminal, async () => {
    const choice = await put(terminal, `Who may sign up: ${signUps.join(', ')}`, 'invite')
    return signUps.find((one) => one === choice) ?? new Fault(`one of ${signUps.join(', ')}, please`)
  })

async function askEncryption({ terminal, known, encryption }: Asking): Promise<Variables> {
  if (known['SERVICE_TLS_MODE'] !== undefined || encryption['SERVICE_TLS_MODE'] !== 'acme') return {}
  return untilValid(terminal, async () => {
    const answer = await put(terminal, "Let the server get its certificates itself, from Let's Encrypt: y or n", 'y')
    if (!/^(?:y|yes|n|no)$/i.test(answer)) return new Fault('y or n, please')
    const chosen: Variables = /^n/i.test(answer) ? { SERVICE_TLS_MODE: 'off' } : {}
    return chosen
  })
}

async function askMail({ terminal, known }: Asking): Promise<Variables> {
  if (known['SERVICE_EMAIL_PROVIDER'] !== undefined) return {}
  const mail = await untilValid(terminal, async () => {
    const question = 'Mail server, as smtp://user@host:587; without one, mail goes to the log'
    const address = await put(terminal, question, NONE)
    return mailVariables(address) ?? new Fault('enter smtp:// or smtps://, a user, @ and a host')
  })
  const { SERVICE_EMAIL_SMTP_USERNAME: user, SERVICE_EMAIL_SMTP_PASSWORD: password } = mail
  if (user === undefined || password !== undefined) return mail
  return { ...mail, SERVICE_EMAIL_SMTP_PASSWORD: await terminal.ask(`Password of ${user}: `, { hidden: true }) }
}

async function askBackups({ terminal, known, folders }: Asking): Promise<Variables> {
  if (known['SERVICE_BACKUP_DESTINATION'] !== undefined || known['SERVICE_BACKUP_INTERVAL_SECS'] !== undefined)
    return {}
  const place = await untilValid(terminal, async () => {
    const answer = await put(terminal, 'Backups: a folder, s3://bucket/prefix, or none', folders.backups)
    const fault = placeFault(answer)
    return fault === null ? answer : new Fault(fault)
  })
  if (!place.startsWith('s3://')) return backupsAt(place)
  return { ...backupsAt(place), ...(await askBucket(terminal, known)) }
}

const bucketQuestions = [
  { name: 'SERVICE_BLOB_MIRROR_ENDPOINT', question: 'Endpoint of the store, such as https://s3.example.com: ' },
  { name: 'SERVICE_BLOB_MIRROR_ACCESS_KEY_ID', question: 'Access key id: ' },
  { name: 'SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY', question: 'Secret access key: ', hidden: true },
]

async function askBucket(terminal: Terminal, known: Variables): Promise<Variables> {
  const answers: Record<string, string> = {}
  for (const { name, question, hidden = false } of bucketQuestions)
    if (known[name] === undefined) answers[name] = (await terminal.ask(question, { hidden })).trim()
  return answers
}

/** Why an answer is invalid. */
class Fault {
  constructor(readonly text: string) {}
}

/** Ask again, a few times, as long as the answer is invalid. */
async function untilValid<T>(terminal: Terminal, question: () => Promise<T | Fault>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const answer = await question()
    if (!(answer instanceof Fault)) return answer
    if (tries === MAX_TRIES) throw new OperatorError(answer.text)
    terminal.err(answer.text)
  }
}
