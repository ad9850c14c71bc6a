/**
 * The files of a configuration. One holds keys, in TOML. Another may hold variables, `NAME=value` in each line, as
 * systemd, Docker and shells read: its name ends in `.env`, and its variables count where the environment sets none.
 */
import { TomlError, parse } from 'smol-toml'
import { ENV_PREFIX } from './config-fields.ts'
import { parseVariables, unsetLine } from './variables-file.ts'

export interface Sources {
  env: Readonly<Record<string, string | undefined>>
  /** Returns the text of a file, or null if it does not exist. Throws if it cannot be read. */
  readFile(path: string): string | null
  /** Variables that count only for keys which neither the environment nor a file sets. */
  fallbacks?: Readonly<Record<string, string>>
}

/** `subject` names a key and its variable, or the file. */
export interface Problem {
  subject: string
  fault: string
}

export type Table = Readonly<Record<string, unknown>>

/** The contents of the files. `problem` is why the last of them could not be read. */
export interface ConfigFiles {
  table: Table
  env: Sources['env']
  problem: Problem | null
}

export const CONFIG_VARIABLE = 'SERVICE_CONFIG'
const DEFAULT_FILE = './pds.toml'
/** Read if there is no `DEFAULT_FILE`. */
const DEFAULT_VARIABLES_FILE = './holdfast.env'

const unreadableFaults: Readonly<Record<string, string>> = {
  EACCES: 'this user has no permission to read it; give the file to the user or its group',
  EISDIR: 'it is a folder',
}

/** Read the files. Never throws. */
export function readConfigFiles({ env, readFile }: Sources): ConfigFiles {
  const named = nameIn(env)
  const first = named ?? DEFAULT_FILE
  const text = read(readFile, first)
  if (named === null && text === null) return readVariables(env, readFile, DEFAULT_VARIABLES_FILE)
  return isOfVariables(first) ? readVariables(env, readFile, first) : readTable(env, first, text)
}

/** Where `holdfast init --service` and packages put the variables of the service. */
export const SERVICE_SETTINGS = '/etc/holdfast.env'

/** The files of variables that a command with this environment reads, or that the service of this machine has. */
export function variablesFiles(env: Sources['env']): string[] {
  const named = nameIn(env)
  return [named !== null && isOfVariables(named) ? named : DEFAULT_VARIABLES_FILE, SERVICE_SETTINGS]
}

const isOfVariables = (path: string): boolean => path.endsWith('.env')

const nameIn = (env: Sources['env']): string | null => env[CONFIG_VARIABLE]?.trim() || null

/** Reads a file of variables, which may name a file of keys. The default file may be missing, unless it was named. */
function readVariables(env: Sources['env'], readFile: Sources['readFile'], path: string): ConfigFiles {
  const text = read(readFile, path)
  if (text === null)
    return { table: {}, env, problem: path === DEFAULT_VARIABLES_FILE && nameIn(env) === null ? null : absent(path) }
  if (typeof text !== 'string') return { table: {}, env, problem: { subject: path, ...text } }
  const line = unsetLine(text, ENV_PREFIX)
  if (line !== null)
    return { table: {}, env, problem: { subject: `${path}:${line}`, fault: 'sets no variable: write NAME=value' } }
  const variables = parseVariables(text)
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
  const merged = { ...variables, ...given }
  const keys = nameIn(variables)
  if (keys === null) return { table: {}, env: merged, problem: null }
  return readTable(merged, keys, read(readFile, keys))
}

function readTable(env: Sources['env'], path: string, text: ReturnType<typeof read>): ConfigFiles {
  const broken = (subject: string, fault: string): ConfigFiles => ({ table: {}, env, problem: { subject, fault } })
  if (text === null) return { table: {}, env, problem: absent(path) }
  if (typeof text !== 'string') return broken(path, text.fault)
  try {
    return { table: parse(text, { integersAsBigInt: true }), env, problem: null }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // Only the first line: the parser's message continues with the lines around the fault, which may contain a secret.
    return broken(`${path}:${error.line}:${error.column}`, error.message.split('\n', 1)[0] ?? '')
  }
}

const absent = (path: string): Problem => ({ subject: path, fault: `there is no such file (${CONFIG_VARIABLE})` })

/** Returns the text, null if there is no such file, or why it cannot be read. */
function read(readFile: Sources['readFile'], path: string): string | { fault: string } | null {
  try {
    return readFile(path)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    return { fault: `cannot be read: ${unreadableFaults[code] ?? message}` }
  }
}
