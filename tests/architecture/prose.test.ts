/**
 * Documents, texts of the program and comments are in plain, active English, and comments keep the width of the code.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { sources } from './sources.ts'

const root = join(import.meta.dir, '..', '..')

/** Turns of phrase that a native engineer would not use, each with the remedy. */
const tics: readonly { pattern: RegExp; instead: string }[] = [
  {
    pattern: /\b(whoever|whomever|whosoever)\b/i,
    instead: 'name the actor: the holder, the caller, an attacker, any node',
  },
  {
    pattern: /\b(somebody|anybody|everybody)\b/i,
    instead: 'name the actor; in texts for users: someone, anyone, everyone',
  },
  {
    pattern: /\bnobody\b/i,
    instead: 'say what is not done, or who cannot do it: "unconfirmed", "no node", "the caller cannot"',
  },
  { pattern: /\bwhat waits\b/i, instead: 'pending …, queued …' },
  { pattern: /\bof one that\b/i, instead: 'name the noun' },
  { pattern: /\bthat (is|are) gone\b/i, instead: 'deleted, dead, expired' },
  { pattern: /\btold apart\b/i, instead: 'distinguished' },
  { pattern: /\bsigns? of life\b/i, instead: 'heartbeat' },
  { pattern: /\banew\b/i, instead: 'again, restart, start over' },
  { pattern: /\b(go|goes|going|went|gone) on\b/i, instead: 'continue, resume, keep …ing' },
  { pattern: /\bin the making\b/i, instead: 'pending' },
  { pattern: /\bso many\b/i, instead: 'this many, a limited number of' },
  { pattern: /\b(no longer|still) stands\b/i, instead: 'may (no longer) act; revalidate' },
  { pattern: /\b(tries|try) again in the next pass|next pass tries again\b/i, instead: 'will retry in the next pass' },
  { pattern: /\bone's turn\b/i, instead: 'the turn; from within `inTurn`' },
  { pattern: /\bthe bucket of blobs\b/i, instead: 'the blob bucket' },
]

/** One line for each tic, with the words around it. */
const ticsIn = (text: string): string[] =>
  tics.flatMap(({ pattern, instead }) => {
    const flat = text.replace(/\s+(?:\*(?!\/)|\/\/)?\s*/g, ' ')
    const hit = pattern.exec(flat)
    return hit ? [`"…${flat.slice(Math.max(0, hit.index - 40), hit.index + hit[0].length + 20)}…": ${instead}`] : []
  })

const DOCUMENTS = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'].concat(
  readdirSync(join(root, 'docs'), { recursive: true })
    .map((path) => `docs/${String(path)}`)
    // Consists of the names of tests.
    .filter((path) => path.endsWith('.md') && path !== 'docs/design/reference-tests.md'),
)

test.each(DOCUMENTS)('%s is in plain English', (document) => {
  const paragraphs = readFileSync(join(root, document), 'utf8').split(/\n\s*\n/)
  expect(paragraphs.flatMap(ticsIn)).toEqual([])
})

const parsed = sources.map(({ path, text }) => {
  const { program, comments } = parseSync(path, text)
  return { path, text, program, comments }
})

/**
 * The texts of string and template literals, wherever they stand: help, questions, log lines, errors, mails and pages.
 */
function textsIn(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(textsIn)
  if (node === null || typeof node !== 'object') return []
  const { type, value } = node as { type?: string; value?: unknown }
  if (type === 'ImportDeclaration') return []
  if (type === 'Literal') return typeof value === 'string' ? [value] : []
  if (type === 'TemplateElement') return [(value as { raw: string }).raw]
  return Object.values(node).flatMap(textsIn)
}

test('help texts, log lines, errors, mails and pages are in plain English', () => {
  expect(
    parsed.flatMap(({ path, program }) =>
      textsIn(program)
        .flatMap(ticsIn)
        .map((tic) => `${path}: ${tic}`),
    ),
  ).toEqual([])
})

test('comments are in plain English', () => {
  // Lines of one comment are read as one text, because a turn of phrase may span them.
  const runs = parsed.flatMap(({ path, text, comments }) =>
    comments
      .reduce<{ start: number; end: number }[]>((found, { type, start, end }) => {
        const last = found.at(-1)
        if (last && type === 'Line' && /^\n\s*$/.test(text.slice(last.end, start))) last.end = end
        else found.push({ start, end })
        return found
      }, [])
      .map(({ start, end }) => ({ path, comment: text.slice(start, end) })),
  )
  expect(runs.flatMap(({ path, comment }) => ticsIn(comment).map((tic) => `${path}: ${tic}`))).toEqual([])
})

/** Columns, as in the documents. */
const WIDTH = 120

test('comments are at most 120 columns wide', () => {
  const files = ['src', 'tests', 'release'].flatMap((folder) =>
    [...new Bun.Glob('**/*.ts').scanSync(join(root, folder))].map((path) => `${folder}/${path}`),
  )
  const wide = files
    .filter((path) => !path.includes('/generated/'))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      return parseSync(path, text).comments.flatMap(({ start, end }) => {
        const lineStart = text.lastIndexOf('\n', start - 1) + 1
        // One behind code is as wide as the formatter lets the code be.
        if (text.slice(lineStart, start).trim() !== '') return []
        const lines = text.slice(lineStart, end).split('\n')
        return lines
          .filter((line) => line.length > WIDTH && /\s\S+\s/.test(line.trim()))
          .map((line) => `${path}: ${line.trim()}`)
      })
    })
  expect(wide).toEqual([])
})
