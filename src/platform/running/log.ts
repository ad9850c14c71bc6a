/**
 * The structured log: one event per line, with a message in plain words and fields. Variable data goes into fields,
 * never into the message, so that secrets can be recognised by field name: passwords, tokens, codes and keys are
 * redacted before a line is written, whichever caller passes them.
 */
import { printable } from '../../base/printable.ts'
import { wireTime, type Millis } from '../../protocol/identifiers.ts'
import type { Config } from '../configuration/config.ts'
import { logLevels, type Fields, type LogLevel } from './log-line.ts'
import { standardOutput } from './log-output.ts'
import { requestIdHere } from './request-scope.ts'

export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
  /** Returns whether lines of this level are written. Ask first if a line is expensive to build. */
  writes(level: LogLevel): boolean
}

export interface LogOptions {
  format: 'text' | 'json'
  level: LogLevel
  /** Name of this process, added to each line. Null if there is only one. */
  node?: string | null
  now: () => Millis
  write: (line: string) => unknown
}

interface Line {
  at: Millis
  level: LogLevel
  target: string
  message: string
  fields: Fields
}

const TARGET = 'holdfast'

export function createLog({ format, level: least, node = null, now, write }: LogOptions): Log {
  const render = format === 'json' ? jsonLine : textLine
  const writes = (level: LogLevel) => logLevels.indexOf(level) >= logLevels.indexOf(least)
  const logAt = (level: LogLevel) => {
    if (!writes(level)) return () => undefined
    return (message: string, fields: Fields = {}): void => {
      const requestId = requestIdHere()
      const known = requestId === undefined ? fields : { requestId, ...fields }
      write(render({ at: now(), level, target: TARGET, message, fields: node === null ? known : { node, ...known } }))
    }
  }
  return { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error'), writes }
}

/** Returns the log of a running process, which writes to standard output and uses the system's clock. */
export function processLog({ node, telemetry }: Pick<Config, 'node' | 'telemetry'>): Log {
  const output = standardOutput()
  const level = telemetry.logLevel === 'error' ? 'error' : 'warn'
  // The reader may come back during any request.
  const reportDropped = (omitted: number) =>
    log[level]('lines were dropped because standard output was read too slowly', { requestId: null, omitted })
  const log = createLog({
    format: telemetry.logFormat,
    level: telemetry.logLevel,
    node: node.name,
    now: Date.now,
    write: (line) => output.write(line, reportDropped),
  })
  return log
}

function jsonLine({ at, level, target, message, fields }: Line): string {
  const head = { timestamp: wireTime(at), level, target, message }
  // The first `head` fixes the order and the second the values, so no field can replace either.
  return printable(JSON.stringify({ ...head, ...plainFields(fields), ...head }))
}

/** Values of several lines, such as stacks, follow indented, so that no field can imitate a log line. */
function textLine({ at, level, target, message, fields }: Line): string {
  const inline: string[] = []
  const blocks: string[] = []
  for (const [name, value] of Object.entries(plainFields(fields))) {
    const text = textOf(value)
    if (text.includes('\n')) blocks.push(`  ${name}:`, ...text.split('\n').map((each) => `    ${printable(each)}`))
    else inline.push(`${name}=${/^[^\s"=]+$/u.test(text) ? printable(text) : printable(JSON.stringify(text))}`)
  }
  const head = [
    wireTime(at),
    level.toUpperCase().padEnd(5),
    `${target}:`,
    printable(message.replaceAll('\n', '\\n')),
    ...inline,
  ].join(' ')
  return [head, ...blocks].join('\n')
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (isLoggedError(value))
    return value.cause === undefined ? value.stack : `${value.stack}\ncaused by ${textOf(value.cause)}`
  return JSON.stringify(value) ?? 'undefined'
}

/** Field names whose values are redacted. */
const sensitiveName =
  /(?:password|passwd|secret|token|authorization|cookie|assertion|signature|private_?key|master_?key|proof|(?:invite|user|email|recovery|confirmation|claim)_?code)$/i

const MAX_DEPTH = 4
const MAX_ITEMS = 50
const MAX_TEXT_CHARS = 10_000

const plainFields = (fields: Fields) =>
  Object.fromEntries(Object.entries(plain(fields, 0) as object).filter(([, value]) => value !== null))

interface LoggedError {
  name: string
  message: string
  stack: string
  cause?: unknown
}

const isLoggedError = (value: unknown): value is LoggedError =>
  typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string'

/** Returns any value as bounded JSON data without sensitive members. Cycles end at `MAX_DEPTH`. */
function plain(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT_CHARS ? `${value.slice(0, MAX_TEXT_CHARS)}…` : value
  if (typeof value !== 'object' || value === null)
    return typeof value === 'number' || typeof value === 'boolean' || value === null ? value : String(value)
  if (value instanceof Error) return plainError(value, depth)
  if (value instanceof Uint8Array) return `[${value.length} bytes]`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString()
  if (depth >= MAX_DEPTH) return '[…]'
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => plain(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  // Class instances define their own text: a CID prints as a string, a secret as `[secret]`.
  if (prototype !== Object.prototype && prototype !== null) return String(value)
  const members = Object.entries(value)
    .slice(0, MAX_ITEMS)
    .filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    members.map(([name, member]) => [name, sensitiveName.test(name) ? '[redacted]' : plain(member, depth + 1)]),
  )
}

function plainError(error: Error, depth: number): LoggedError {
  const { name, message, stack = '', cause } = error
  const logged = { name, message, stack: stack.includes(message) ? stack : `${name}: ${message}\n${stack}` }
  return cause === undefined || depth >= MAX_DEPTH ? logged : { ...logged, cause: plain(cause, depth + 1) }
}
