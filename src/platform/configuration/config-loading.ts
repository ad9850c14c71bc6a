/**
 * Loads the configuration: environment variables over files over the declared defaults. Loading performs no I/O
 * of its own, reports every problem at once, and never reveals the value of a secret.
 */
import type { Config, Mode } from './config.ts'
import { checks } from './config-checks.ts'
import { Derived, ENV_PREFIX, type Key, type Known, listKeys, variableOf } from './config-fields.ts'
import { CONFIG_VARIABLE, readConfigFiles, type Problem, type Sources, type Table } from './config-files.ts'
import type { Parsed } from './config-kinds.ts'
import { declared } from './config-sections.ts'
import { nearest } from '../../base/nearest.ts'
import { hasMembers } from '../../base/members.ts'

/** Where a value comes from; `variable` is the one that supplied it. */
export type ValueOrigin =
  | { from: 'default' | 'file' | 'command line' }
  /** `file`: a line of a file of variables. */
  | { from: 'environment' | 'file'; variable: string }

/** The origins of all keys, by their names. */
export type ValueOrigins = ReadonlyMap<string, ValueOrigin>

export type Loaded =
  | { ok: true; config: Config; origins: ValueOrigins; warnings: readonly Problem[] }
  | { ok: false; problems: readonly Problem[]; warnings: readonly Problem[] }

export const configKeys: readonly Key[] = listKeys(declared)

/** Set by systemd for the commands that run after a service has stopped. */
const SYSTEMD_VARIABLE = 'SERVICE_RESULT'

/** Values that commands read from the environment only. */
export const rewrapVariables = { old: 'SERVICE_REWRAP_OLD_MASTER_KEY', new: 'SERVICE_REWRAP_NEW_MASTER_KEY' } as const

/** Returns the configuration and its warnings, or every problem that keeps it from being used. Never throws. */
export function loadConfig(sources: Sources, mode: Mode): Loaded {
  const { table, env, problem } = readConfigFiles(sources)
  const problems: Problem[] = [...(problem === null ? brokenSections(table) : [problem]), ...unknownVariables(env)]
  const warnings: Problem[] = [...unknownKeys(table), ...keysAmongVariables(env), ...referenceVariables(env)]
  const faulty = new Set<string>()
  const draft: Draft = {}
  const origins = new Map<string, ValueOrigin>()
  const derivations: { key: Key; from: Derived<unknown> }[] = []

  for (const key of configKeys) {
    const own = readKey(key, env, table)
    const given = own ?? readKey(key, sources.fallbacks ?? {}, {})
    origins.set(key.name, originOf(given, own !== null, sources.env))
    const fallback = fallbackOf(key, mode)
    if (given === null) {
      // If the file is unreadable, it may well set the key.
      if (fallback === undefined && problem === null) problems.push({ subject: subjectOf(key), fault: 'required' })
      if (fallback === undefined) faulty.add(key.name)
    } else if (given.parsed.ok) {
      put(draft, key, given.parsed.value)
      warnings.push(...(given.parsed.unknown ?? []).map((at) => ({ subject: key.name + at, fault: 'unknown key' })))
      if (given.inFile && key.field.inFile !== undefined)
        warnings.push({ subject: subjectOf(key), fault: key.field.inFile })
      continue
    } else {
      problems.push(
        ...given.parsed.faults.map(({ at, fault }) => ({ subject: subjectOf(key, at, given.variable), fault })),
      )
      faulty.add(key.name)
    }
    // A stand-in for a faulty key lets the checks below run on complete values; such a draft is never returned.
    const standIn = fallback === undefined ? key.field.development : fallback
    if (standIn instanceof Derived) derivations.push({ key, from: standIn })
    else put(draft, key, standIn)
  }
  for (const { key, from } of derivations) put(draft, key, from.derive(draft as unknown as Known))

  const config = draft as unknown as Config
  // If the file is unreadable, checks across keys would mislead.
  if (problem === null) {
    const found = findingsOf(config, mode, faulty)
    problems.push(...found.fault)
    warnings.push(...found.warning)
  }
  return problems.length > 0 ? { ok: false, problems, warnings } : { ok: true, config, origins, warnings }
}

/** What checks across keys find, except about keys that are faulty themselves. */
function findingsOf(config: Config, mode: Mode, faulty: ReadonlySet<string>): Record<'fault' | 'warning', Problem[]> {
  const found: Record<'fault' | 'warning', Problem[]> = { fault: [], warning: [] }
  for (const check of checks) {
    const key = configKeys.find(({ name }) => name === check.key)
    const fault = key === undefined || faulty.has(key.name) ? null : check.find(config, mode)
    if (key !== undefined && fault !== null) found[check.level].push({ subject: subjectOf(key), fault })
  }
  return found
}

/** Returns the text for the operator: a headline, then one line per problem. */
export function describeProblems(problems: readonly Problem[]): string {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
  return [
    `configuration is invalid (${count})`,
    ...problems.map(({ subject, fault }) => `- ${subject}: ${fault}`),
  ].join('\n')
}

interface Given {
  parsed: Parsed<unknown>
  /** The variable that supplied the value; undefined if it came from the file. */
  variable: string | undefined
  inFile: boolean
}

/** Returns the value of the first variable that is set, else that of the file, or null if the key is not set. */
function readKey({ name, env: names, blankIsUnset, field }: Key, env: Sources['env'], table: Table): Given | null {
  const isSet = (value: string | undefined) => value !== undefined && (field.kind.list === true || value.trim() !== '')
  const variable = names.find((each) => isSet(env[each]))
  if (variable !== undefined) return { parsed: field.kind.fromText(env[variable] ?? ''), variable, inFile: false }

  const value = lookUp(table, name)
  if (value === undefined || (blankIsUnset && typeof value === 'string' && value.trim() === '')) return null
  return { parsed: field.kind.fromToml(value), variable, inFile: true }
}

function originOf(given: Given | null, isOwn: boolean, env: Sources['env']): ValueOrigin {
  if (given === null) return { from: 'default' }
  if (!isOwn) return { from: 'command line' }
  const { variable, inFile } = given
  if (inFile || variable === undefined) return { from: 'file' }
  return { from: env[variable] === undefined ? 'file' : 'environment', variable }
}

function lookUp(table: Table, name: string): unknown {
  const [first = '', second] = name.split('.')
  const outer = table[first]
  if (second === undefined) return outer
  return hasMembers(outer) ? outer[second] : undefined
}

const fallbackOf = ({ field }: Key, mode: Mode) =>
  mode === 'dev' && field.development !== undefined ? field.development : field.fallback

const subjectOf = ({ name, env }: Key, at = '', variable = env[0]) => `${name}${at} (${variable ?? 'file only'})`

type Draft = { [name: string]: unknown }

function put(draft: Draft, { path: [first = '', second] }: Key, value: unknown): void {
  if (second === undefined) draft[first] = value
  else draft[first] = { ...(draft[first] as Draft | undefined), [second]: value }
}

const sectionNames = new Set(configKeys.flatMap(({ section }) => section ?? []))
const keyNames = new Set(configKeys.map(({ name }) => name))

const brokenSections = (table: Table): Problem[] =>
  Object.entries(table)
    .filter(([name, value]) => sectionNames.has(name) && !hasMembers(value))
    .map(([subject]) => ({ subject, fault: 'expected a table' }))

function unknownKeys(table: Table): Problem[] {
  const names = Object.entries(table).flatMap(([name, value]) =>
    sectionNames.has(name) ? (hasMembers(value) ? Object.keys(value).map((inner) => `${name}.${inner}`) : []) : [name],
  )
  return names
    .filter((name) => !keyNames.has(name))
    .map((name) => {
      const meant = nearest(name, [...keyNames, ...sectionNames])
      return { subject: name, fault: meant === null ? 'unknown key' : `unknown key; did you mean ${meant}?` }
    })
}

const knownVariables = [
  ...configKeys.flatMap(({ env }) => env),
  CONFIG_VARIABLE,
  SYSTEMD_VARIABLE,
  ...Object.values(rewrapVariables),
]

/**
 * An unknown variable is an error, unlike an unknown key in the file: an operator may use variables alone, and must
 * learn that one has no effect.
 */
function unknownVariables(env: Sources['env']): Problem[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(ENV_PREFIX) && env[name] !== undefined && !knownVariables.includes(name))
    .map((subject) => ({ subject, fault: `unknown variable${hintAt(subject)}` }))
}

/** Prefix of the variables that the reference PDS reads. */
const REFERENCE_PREFIX = 'PDS_'
/** A container platform may set any number of them, for a service that is called "pds". */
const MAX_NAMED_VARIABLES = 20

/** The keys of this server that mean the same. */
const referenceKeys: Readonly<Record<string, string>> = {
  PDS_HOSTNAME: 'public_url',
  PDS_PORT: 'port',
  PDS_DATA_DIRECTORY: 'data_dir',
  PDS_SERVICE_DID: 'server_did',
  PDS_SERVICE_NAME: 'service_name',
  PDS_SERVICE_HANDLE_DOMAINS: 'available_user_domains',
  PDS_ADMIN_PASSWORD: 'admin_token',
  PDS_INVITE_REQUIRED: 'invite_code_required',
  PDS_ACCEPTING_REPO_IMPORTS: 'repos.imports_enabled',
  PDS_BLOB_UPLOAD_LIMIT: 'blobs.max_blob_size',
  PDS_CRAWLERS: 'crawlers.urls',
  PDS_DID_PLC_URL: 'plc_directory_url',
  PDS_RECOVERY_DID_KEY: 'recovery_did_key',
  PDS_BSKY_APP_VIEW_URL: 'appview.url',
  PDS_EMAIL_FROM_ADDRESS: 'email.from',
  PDS_EMAIL_SMTP_URL: 'email.smtp_host',
  PDS_RATE_LIMITS_ENABLED: 'rate_limit.enabled',
}

/** Names keys of a TOML file that were written into a file of variables. */
function keysAmongVariables(env: Sources['env']): Problem[] {
  const found = configKeys.filter(({ name, env: [variable] }) => env[name] !== undefined && variable !== undefined)
  return found.map(({ name, env: [variable] }) => ({
    subject: name,
    fault: `no variable has this name: set ${variable}`,
  }))
}

/** Names variables that an operator may have brought from the reference PDS. Their values may be secrets. */
function referenceVariables(env: Sources['env']): Problem[] {
  const found = Object.keys(env)
    .filter((name) => name.startsWith(REFERENCE_PREFIX))
    .toSorted()
  if (found.length === 0) return []
  const more = found.length > MAX_NAMED_VARIABLES ? ` and ${found.length - MAX_NAMED_VARIABLES} more` : ''
  const meant = found.flatMap((name) => configKeys.find((key) => key.name === referenceKeys[name]) ?? [])
  const instead = meant.length === 0 ? '' : `; set ${meant.map((key) => subjectOf(key)).join(', ')} instead`
  return [
    {
      subject: found.slice(0, MAX_NAMED_VARIABLES).join(', ') + more,
      fault: `not read here, but by the reference PDS${instead}`,
    },
  ]
}

function hintAt(variable: string): string {
  const key = configKeys.find(({ name }) => variableOf(name) === variable)
  if (key?.env.length === 0) return `; ${key.name} can be set in the file only`
  const meant = key?.env[0] ?? nearest(variable, knownVariables)
  return meant === null ? '' : `; did you mean ${meant}?`
}
