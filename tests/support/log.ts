/** The log of a server under test: JSON, everything, and every line held against the schema. */
import type { Static } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { createLog, type Log } from '../../src/platform/running/log.ts'
import { logLine } from '../../src/platform/running/log-line.ts'

export type LogLine = Static<typeof logLine>

const schema = TypeCompiler.Compile(logLine)
const MAX_LINES = 5000

export interface TestLog {
  log: Log
  /** The newest come last. */
  lines: LogLine[]
  /** Throws when a line was none that the schema allows. */
  verify(): void
}

/** Null when the line is as it should be. */
export function lineFault(line: string): string | null {
  if (line.includes('\n')) return 'it is more than one line'
  return faultOf(JSON.parse(line))
}

function faultOf(value: unknown): string | null {
  // Compiled, as the search for what is wrong is not.
  if (schema.Check(value)) return null
  const fault = schema.Errors(value).First()!
  return `${fault.path}: ${fault.message}`
}

/** Faults of the server are shown to whoever runs the tests. */
export function testLog(now: () => number): TestLog {
  const lines: LogLine[] = []
  const faults: string[] = []
  const write = (line: string) => {
    const fault = lineFault(line)
    if (fault !== null) faults.push(`${fault} in ${line}`)
    const parsed = JSON.parse(line) as LogLine
    lines.push(parsed)
    if (lines.length > MAX_LINES) lines.splice(0, MAX_LINES / 10)
    if (parsed.level === 'error') process.stderr.write(`${line}\n`)
  }
  return {
    log: createLog({ format: 'json', level: 'debug', now, write }),
    lines,
    verify() {
      if (faults.length > 0) throw new Error(`lines of the log are not as the schema says:\n${faults.join('\n')}`)
    },
  }
}
