/** Results of commands, and text formats for people: tables, lists of facts, sizes and times. */
import { DAY_SECS, HOUR_SECS } from '../base/durations.ts'
import type { Command, Invocation } from './command.ts'

export const jsonOption = { json: { doc: 'Print JSON, for scripts.' } } as const satisfies Command['options']

/** Print a result: as JSON with `--json`, else as text for people. */
export const tellResult = (
  { terminal, flags }: Pick<Invocation, 'terminal' | 'flags'>,
  value: unknown,
  text: string,
): void => terminal.out(flags.has('json') ? JSON.stringify(value, null, 2) : text)

const GAP = '  '

/** Format rows as columns under their titles. Trailing spaces are removed. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows.map((row) => row.map(inOneLine))]
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + ' '.repeat(widths[column]! - Bun.stringWidth(cell)))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n')
}

/** Format one name and value per line. Omits values that are null or undefined. */
export function facts(pairs: Readonly<Record<string, string | number | null | undefined>>): string {
  const known = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}${GAP}${inOneLine(String(value))}`).join('\n')
}

/** Replace line breaks, so that text from a stranger cannot forge a row. */
export const inOneLine = (text: string): string => text.replace(/\s+/g, ' ')

const sizeUnits = ['B', 'kB', 'MB', 'GB', 'TB']

export function bytes(count: number): string {
  const power = Math.min(sizeUnits.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, count)) / 3)))
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${sizeUnits[power]}`
}

/** Returns the day and minute of a UTC time in RFC 3339 format. Null stays null. */
export const minute = (time: string | null): string | null => time && time.slice(0, 16).replace('T', ' ')

const ageUnits = [
  { unit: 'd', secs: DAY_SECS },
  { unit: 'h', secs: HOUR_SECS },
  { unit: 'min', secs: 60 },
] as const

/** Returns an age in its largest whole unit: `3 d`. */
export function age(secs: number): string {
  const found = ageUnits.find((unit) => secs >= unit.secs)
  return found ? `${Math.floor(secs / found.secs)} ${found.unit}` : `${secs} s`
}
