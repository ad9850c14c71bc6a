import { expect, test } from 'bun:test'
import { acceptedLanguage, languageOf, listedLanguage } from './languages.ts'

test.each([
  ['de', 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', 'de'],
  ['en;q=0.5, fr;q=0.9', 'fr'],
  ['ja ; q=1', 'ja'],
  ['pt-PT', 'pt-BR'],
  ['PT-br', 'pt-BR'],
  ['nl, es-419;q=0.7, en;q=0.3', 'es'],
  ['en, de', 'en'],
  ['de;q=0, en;q=0.1', 'en'],
  ['nl', null],
  ['*', null],
  ['', null],
  ['de;q=high', null],
  ['den', null],
])('Accept-Language: %s', (header, language) => {
  expect(acceptedLanguage(header)).toBe(language as never)
})

test('what a header says beyond its bounds does not count', () => {
  expect(acceptedLanguage(`${'nl,'.repeat(19)}de`)).toBe('de')
  expect(acceptedLanguage(`${'nl,'.repeat(20)}de`)).toBeNull()
  expect(acceptedLanguage(`${' '.repeat(1000)}de`)).toBeNull()
})

test('ui_locales names languages in the order of preference', () => {
  expect(listedLanguage('nl fr-CA de')).toBe('fr')
  expect(listedLanguage('nl')).toBeNull()
})

test('what is no language tag names no language', () => {
  for (const tag of ['', '-', 'deutsch', '__proto__', 'e n']) expect(languageOf(tag)).toBeNull()
})
