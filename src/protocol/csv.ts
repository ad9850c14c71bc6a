/** Tables as CSV, which spreadsheets open. Source: RFC 4180; OWASP, "CSV Injection". */

/** Without it, some programs read the text as Latin-1. */
export const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Characters that make a spreadsheet read a cell as a formula, including the full-width forms that some spreadsheets
 * convert.
 */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/

const needsQuotes = /[",\r\n]/

/** A row with its line end. A cell that would be a formula gets an apostrophe, which makes it text. */
export const csvRow = (cells: readonly string[]): string => `${cells.map(cellOf).join(',')}\r\n`

function cellOf(text: string): string {
  const inert = formulaStart.test(text) ? `'${text}` : text
  return needsQuotes.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}
