import { expect, test } from 'bun:test'
import type { Language } from '../protocol/languages.ts'
import { html, htmlIn, inEnglish, textIn } from './html.ts'
import { clockPhrase, dayPhrase, factsPhrase, listPhrase, sizePhrase, textTable } from './texts.ts'

const german = {
  title: 'Anmelden',
  hello: 'Hallo {name}',
  left: { one: 'Noch {count} Code', other: 'Noch {count} Codes' },
  agree: 'Lies die <terms>Bedingungen <strong>von {name}</strong></terms>.',
} as const
const english = {
  title: 'Sign in',
  hello: 'Hello {name}',
  left: { one: '{count} code left', other: '{count} codes left' },
  agree: 'Read the <terms>terms <strong>of {name}</strong></terms>.',
} as const
const same = async () => english
const texts = textTable(english, { de: async () => german, es: same, fr: same, ja: same, 'pt-BR': same })

test('a text is written in the language of the page, with its values escaped and its marks as elements', async () => {
  const name = '<b>{title}</b>'
  const all = html`<p>${texts.title}: ${texts.agree({ name, terms: (content) => html`<a href="/t">${content}</a>` })}</p>`
  const escaped = '&lt;b&gt;{title}&lt;/b&gt;'
  expect(await htmlIn(all, 'de')).toBe(
    `<p>Anmelden: Lies die <a href="/t">Bedingungen <strong>von ${escaped}</strong></a>.</p>`,
  )
  expect(await htmlIn(all, 'en')).toBe(
    `<p>Sign in: Read the <a href="/t">terms <strong>of ${escaped}</strong></a>.</p>`,
  )
})

test('a mail has plain text, and a program reads English', async () => {
  expect(await textIn(texts.hello({ name: 'Ada & <Co>' }), 'de')).toBe('Hallo Ada & <Co>')
  expect(inEnglish(texts.hello({ name: 'Ada & <Co>' }))).toBe('Hello Ada & <Co>')
})

test('plural forms and numbers follow the language', async () => {
  const both = async (count: number) =>
    Promise.all((['en', 'de'] as const).map((language) => textIn(texts.left({ count }), language)))
  expect(await both(1)).toEqual(['1 code left', 'Noch 1 Code'])
  expect(await both(1234)).toEqual(['1,234 codes left', 'Noch 1.234 Codes'])
})

test('a value may be a phrase itself, of a table that is not loaded yet', async () => {
  const plain = async () => ({ says: '{what}' }) as const
  const says = async () => ({ says: 'Da steht: {what}' }) as const
  const outer = textTable({ says: 'It says: {what}' }, { de: says, es: plain, fr: plain, ja: plain, 'pt-BR': plain })
  expect(await textIn(outer.says({ what: texts.title }), 'de')).toBe('Da steht: Anmelden')
})

test('a table that could not be loaded is tried again', async () => {
  let tries = 0
  const flaky = async () => {
    if (tries++ === 0) throw new Error('no file')
    return german
  }
  const { title } = textTable(english, { de: flaky, es: same, fr: same, ja: same, 'pt-BR': same })
  expect(await textIn(title, 'de').catch(String)).toBe('Error: no file')
  expect(await textIn(title, 'de')).toBe('Anmelden')
})

test('the compiler refuses a translation that drops, invents or misnames something', () => {
  const all = { es: same, fr: same, ja: same, 'pt-BR': same }
  const unmarked = { ...german, agree: 'Lies die <strong>{name}</strong>.' } as const
  const declared = [
    // @ts-expect-error drops a value
    textTable(english, { ...all, de: async () => ({ ...german, hello: 'Hallo' }) as const }),
    // @ts-expect-error invents a value
    textTable(english, { ...all, de: async () => ({ ...german, title: 'Hallo {name}' }) as const }),
    // @ts-expect-error drops a mark
    textTable(english, { ...all, de: async () => unmarked }),
    // @ts-expect-error lacks a text
    textTable(english, { ...all, de: async () => ({ title: 'x', hello: '{name}', left: german.left }) as const }),
    // @ts-expect-error invents a text
    textTable(english, { ...all, de: async () => ({ ...german, more: 'mehr' }) as const }),
    // @ts-expect-error has no plural forms
    textTable(english, { ...all, de: async () => ({ ...german, left: 'Noch {count} Codes' }) as const }),
    // @ts-expect-error lacks a language
    textTable(english, all),
  ]
  // @ts-expect-error the value has another name
  texts.hello({ nam: 'x' })
  expect(declared).toHaveLength(7)
})

test('days, sizes and lists are written as the language writes them', async () => {
  const day = (language: Language) => textIn(dayPhrase(Date.UTC(2026, 2, 3)), language)
  expect(await Promise.all((['en', 'de', 'ja'] as const).map(day))).toEqual(['3 Mar 2026', '03.03.2026', '2026/03/03'])
  expect(await textIn(sizePhrase(1_234_567), 'en')).toBe('1.2 MB')
  expect(await textIn(sizePhrase(1_234_567), 'de')).toBe('1,2 MB')
  expect(await textIn(sizePhrase(0), 'en')).toBe('0 bytes')
  expect(await textIn(sizePhrase(1), 'en')).toBe('1 byte')
  expect(await textIn(clockPhrase(0), 'en')).toBe('00:00:00 UTC')
  expect(await textIn(listPhrase(['a', 'b', texts.title]), 'de')).toBe('a, b und Anmelden')
  expect(await htmlIn(listPhrase([html`<b>a</b>`, '<']), 'en')).toBe('<b>a</b> and &lt;')
  expect(await htmlIn(factsPhrase([html`<b>a</b>`, '<', texts.title]), 'de')).toBe('<b>a</b>, &lt;, Anmelden')
  expect(await textIn(factsPhrase(['a', 'b']), 'ja')).toBe('a、b')
})
