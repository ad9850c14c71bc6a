/**
 * Texts for people stand in tables, in all languages. The compiler compares the tables; here is what it cannot see, and
 * what tells a translator which text is at fault.
 */
import { expect, test } from 'bun:test'
import { namesIn, type TextShape } from '../../src/http/texts.ts'
import { sources } from './sources.ts'
import { formsOf, translations } from './text-tables.ts'
import { isNode, nodesOf, syntaxOf, type SyntaxNode } from './syntax.ts'

/** Words that are the same in another language, by language; names and abbreviations need no line. */
const loans: Readonly<Record<string, readonly string[]>> = {
  fr: [
    'Action',
    'Agent',
    'Agents',
    'Code',
    'Configuration',
    'Console',
    'Contact',
    'images',
    'Notes',
    'Notifications',
    'Sections',
    'Sessions',
    'Type',
    'Version',
  ],
  de: [
    'Agent',
    'Apps',
    'Browser',
    'Code',
    'Handle',
    'Passkeys',
    'Relay',
    'Relays',
    'Scopes',
    'Server',
    'Software',
    'Status',
    'Text',
    'Version',
  ],
  es: ['Actor', 'Apps', 'Relay', 'Relays', 'Roles', 'Software'],
  'pt-BR': ['Apps', 'Console', 'feeds', 'Relay', 'Relays', 'Software'],
}

const names = (text: TextShape | undefined): string => [...namesIn(text ?? '')].toSorted().join(' ')

/** What is wrong with one form of a text; null if nothing is. */
function fault(form: string): string | null {
  if (form.trim() === '' || form !== form.trim()) return 'is empty, or begins or ends with a space'
  if (/ {2}|\.\.\./.test(form)) return 'has two spaces, or dots in place of an ellipsis'
  const open: string[] = []
  for (const [, closing, name] of form.matchAll(/<(\/?)([^>]*)>/g)) {
    if (!/^\w+$/.test(name!)) return `has a mark that is no name: <${name}>`
    if (closing === '') open.push(name!)
    else if (open.pop() !== name) return `closes ${name}, which is not open`
  }
  if (open.length > 0) return `does not close ${open.join(', ')}`
  const rest = form.replaceAll(/\{\w+\}|<\/?\w+>/g, '')
  return /[{}<>]/.test(rest) ? 'has a brace or an angle bracket that belongs to no value and no mark' : null
}

test('a text has in each language the values, marks and plural forms that it must have', async () => {
  const faults = (await translations()).flatMap(({ table, language, english, texts }) => {
    const rules = new Intl.PluralRules(language).resolvedOptions().pluralCategories
    return Object.keys({ ...english, ...texts }).flatMap((name) => {
      const text = texts[name]
      const said = (what: string) => `${table}, ${language}, ${name}: ${what}`
      if (text === undefined) return [said('is missing')]
      if (english[name] === undefined) return [said('is not in English')]
      const forms = typeof text === 'string' ? [] : Object.keys(text)
      return [
        names(text) === names(english[name])
          ? null
          : `has the values and marks ${names(text)}, but English has ${names(english[name])}`,
        typeof text === 'string' || forms.toSorted().join() === rules.toSorted().join()
          ? null
          : `has the forms ${forms.join(', ')}, but the language has ${rules.join(', ')}`,
        ...formsOf(text).map(fault),
      ].flatMap((what) => (what === null ? [] : [said(what)]))
    })
  })
  expect(faults).toEqual([])
})

test('nothing is left in English by mistake', async () => {
  const faults = (await translations()).flatMap(({ table, language, english, texts }) =>
    Object.keys(english).flatMap((name) => {
      const [form, ours] = [formsOf(texts[name] ?? '').at(-1)!, formsOf(english[name]!).at(-1)!]
      const isName = !/[a-z]{3}/.test(ours.replaceAll(/\{\w+\}|<\/?\w+>/g, ''))
      return language === 'en' || form !== ours || isName || loans[language]?.includes(ours)
        ? []
        : [`${table}, ${language}, ${name}: ${ours}`]
    }),
  )
  expect(faults).toEqual([])
})

/** Members of options of pages and fields that people read. */
const wordedMembers = ['title', 'label', 'hint', 'lead', 'submit', 'says', 'legend', 'note', 'notice', 'message']

/** Words in the templates of a file: between tags, and in attributes that people read. */
function wordsIn(path: string, text: string): string[] {
  return [...nodesOf(syntaxOf(path, text))].flatMap(([node]) => {
    if (node.type === 'TaggedTemplateExpression') return templateWords(node)
    if (node.type !== 'Property') return []
    const [key, value] = [node['key'], node['value']]
    const isWorded = isNode(key) && wordedMembers.includes(String(key['name']))
    return isWorded && isNode(value) && value.type === 'Literal' && isWord(String(value['value']))
      ? [String(value['value'])]
      : []
  })
}

const isWord = (text: string): boolean => /\p{L}{2}/u.test(text)

function templateWords(node: SyntaxNode): string[] {
  const { tag, quasi } = node as unknown as {
    tag: SyntaxNode
    quasi: { quasis: { value: { cooked: string } }[] }
  }
  if (tag['name'] !== 'html') return []
  const markup = quasi.quasis
    .map(({ value }) => value.cooked)
    .join(VALUE)
    .replaceAll(/<(svg|code|pre)\b[\s\S]*?<\/\1>/g, '')
  // A template of an attribute alone, for a tag of another template.
  if (/^\s*(?:[\w-]+|(?:\s*[\w-]+="[^"]*")+)\s*$/.test(markup)) return []
  const named = [...markup.matchAll(/\b(?:aria-label|title|alt|placeholder)="([^"]*)"/g)].map(([, value]) => value!)
  return [...named, ...shownParts(markup)]
    .flatMap((part) => part.split(VALUE))
    .map((part) => part.trim())
    .filter(isWord)
}

/** What stands in the place of a value. */
const VALUE = '\u0000'

/** What is between the tags. A value in a tag may be anything but the end of the tag. */
function shownParts(markup: string): string[] {
  const parts = ['']
  let [inTag, inQuotes] = [false, false]
  for (const [i, char] of [...markup].entries()) {
    if (!inTag && char === '<' && /[a-z/!]/i.test(markup[i + 1] ?? '')) [inTag, inQuotes] = [true, false]
    else if (!inTag) parts[parts.length - 1] += char
    else if (char === '"') inQuotes = !inQuotes
    else if (char === '>' && !inQuotes) {
      inTag = false
      parts.push('')
    }
  }
  return parts
}

test('words in the markup of a page are found, and markup is not taken for words', () => {
  const found = (text: string) => wordsIn('x.ts', text)
  expect(found('const a = html`<p class="quiet">Sign in here</p>`')).toEqual(['Sign in here'])
  expect(found('const a = html`<p>${b} is wrong</p>`')).toEqual(['is wrong'])
  expect(found('const a = html`<nav aria-label="On this page">${b}</nav>`')).toEqual(['On this page'])
  expect(found("const a = field({ name: 'handle', label: 'Handle' })")).toEqual(['Handle'])
  expect(found('const a = html`<p class="quiet">${b}<code>/xrpc/</code></p><svg><title>x y</title></svg>`')).toEqual([])
  expect(found('const a = html`<input id="${id}" name="${name}" ${on && html`required`} type="text">`')).toEqual([])
})

test('the texts of pages stand in tables', () => {
  const withWords = sources
    .filter(({ path, text }) => text.includes('html`') && path !== 'http/html.ts')
    .map(({ path, text }) => ({ path, words: wordsIn(path, text) }))
    .filter(({ words }) => words.length > 0)
  const faults = withWords.map(
    ({ path, words }) => `${path}: put ${JSON.stringify(words[0])} into a table, as in src/http/layout-texts.ts`,
  )
  expect(faults).toEqual([])
})

/** Mails to operators are English. */
const OPERATORS_MAILS = 'features/operations/alerts/'

/** Members and arguments that become sentences of a mail. */
const mailMembers = ['subject', 'what', 'text', 'done', 'use', 'warning', 'warningWithoutPassword']

/** Sentences in a file that writes mails: in such a member, in a function there, or among paragraphs. */
function sentencesIn(path: string, text: string): string[] {
  return [...nodesOf(syntaxOf(path, text))].flatMap(([node]) => {
    const callee = node['callee']
    const isMail = node.type === 'CallExpression' && isNode(callee) && callee['name'] === 'mailOf'
    const key = node['key']
    const isMember = node.type === 'Property' && isNode(key) && mailMembers.includes(String(key['name']))
    const within = isMail ? (node['arguments'] as SyntaxNode[]) : isMember ? [node['value'] as SyntaxNode] : []
    return within.flatMap((one) =>
      [...nodesOf(one)].flatMap(([{ type, value }]) =>
        type === 'Literal' && /\p{L} \p{L}/u.test(String(value))
          ? [String(value)]
          : type === 'TemplateElement' && /\p{L} \p{L}/u.test((value as { cooked: string }).cooked)
            ? [(value as { cooked: string }).cooked]
            : [],
      ),
    )
  })
}

test('sentences of a mail outside the tables are found', () => {
  const found = (text: string) => sentencesIn('x.ts', text)
  expect(found("const a = { subject: 'Your handle was changed' }")).toEqual(['Your handle was changed'])
  expect(found("const a = { what: ({ b }) => (b ? c : 'It is new.') }")).toEqual(['It is new.'])
  expect(found('const a = mailOf(ctx, account, texts.subject, [`It is ${b} now`, texts.b])')).toEqual(['It is '])
  expect(found("const a = mailOf(ctx, account, texts.subject, [texts.b({ c: 'd' })])")).toEqual([])
})

test('the texts of mails stand in tables', () => {
  const writers = sources.filter(
    ({ path, text }) =>
      /mails\/mails\.ts'|mail-bodies\.ts'|function mailOf/.test(text) && !path.startsWith(OPERATORS_MAILS),
  )
  expect(writers.length).toBeGreaterThan(5)
  const faults = writers.flatMap(({ path, text }) =>
    sentencesIn(path, text).map((words) => `${path}: put ${JSON.stringify(words)} into a table of all languages`),
  )
  expect(faults).toEqual([])
})

test('messages that pages rephrase are messages of refusals', () => {
  const path = 'features/access/page-parts/faults.ts'
  const { text } = sources.find((source) => source.path === path)!
  const rows = /const byMessage[^=]*= \[\n([^]*?)\n\]/.exec(text)![1]!
  const starts = [...rows.matchAll(/^ {2}\[(['"])(.+?)\1, /gm)].map(([, , start]) => start!)
  const others = sources.filter((source) => source.path !== path).map((source) => source.text)
  expect(starts.length).toBeGreaterThan(50)
  const isMessage = (start: string) =>
    others.some((other) => ["'", '`', '"'].some((quote) => other.includes(quote + start)))
  expect(starts.filter((start) => !isMessage(start))).toEqual([])
})
