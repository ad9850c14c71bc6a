import { expect, test } from 'bun:test'
import { csvRow } from './csv.ts'

test('cells with commas, quotes or line breaks are quoted', () => {
  expect(csvRow(['a', 'b,c', 'd "e"', 'f\ng', ''])).toBe('a,"b,c","d ""e""","f\ng",\r\n')
})

test('what a spreadsheet would run as a formula is text', () => {
  const formulas = [
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '\t=1',
    '\r=1',
    '\n=1',
    '＝1',
    '=HYPERLINK("https://evil.test","a")',
  ]
  for (const formula of formulas) expect(csvRow([formula])).toMatch(/^"?'/)
  expect(csvRow(['a=1', '1-1', '#tag'])).toBe('a=1,1-1,#tag\r\n')
})
