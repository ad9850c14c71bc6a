/** Answers as people read them. */

const GAP = '  '

/** Columns under their titles, the last one as wide as it likes. */
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

/** One fact to a line; those that are null are left out. */
export function facts(pairs: Readonly<Record<string, string | number | null | undefined>>): string {
  const known = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}${GAP}${inOneLine(String(value))}`).join('\n')
}

/** No text of a stranger makes a row of its own. */
const inOneLine = (text: string): string => text.replace(/\s+/g, ' ')

const sizeUnits = ['B', 'kB', 'MB', 'GB', 'TB']

export function bytes(count: number): string {
  const power = Math.min(sizeUnits.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, count)) / 3)))
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${sizeUnits[power]}`
}

/** The day and minute of an RFC 3339 time, in UTC. */
export const minute = (time: string | null): string | null => time && time.slice(0, 16).replace('T', ' ')
