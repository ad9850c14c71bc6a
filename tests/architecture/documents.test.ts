/** The map shows what is there: the paths, links and names of the code that the documents for developers use. */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hasTest } from './test-names.ts'

const root = join(import.meta.dir, '..', '..')
const text = (document: string): string => readFileSync(join(root, document), 'utf8')

const files = [
  ...readdirSync(root),
  ...['src', 'tests', 'migrations', 'docs', 'release', '.ci', '.github'].flatMap((folder) =>
    [...new Bun.Glob('**/*').scanSync({ cwd: join(root, folder), dot: true })].map((path) => `${folder}/${path}`),
  ),
]
const foldersOf = (path: string): string[] => (path.includes('/') ? [dirname(path), ...foldersOf(dirname(path))] : [])
const tree = [...new Set(files.flatMap((path) => [path, ...foldersOf(path)]))]
const code = files
  .filter((path) => /^(src|tests|migrations)\/.*\.(ts|sql)$|^package\.json$/.test(path))
  .map(text)
  .join('\n')

const quoted = (document: string): string[] => [...text(document).matchAll(/`([^`\n]+)`/g)].map(([, quote]) => quote!)
const words = (document: string): string[] => text(document).split(/[\s`'"(),;]+/)

const withoutExamples = (markdown: string): string => markdown.replace(/^ *```[^]*?^ *```/gm, '')

const isRooted = (word: string): boolean => /^(src|tests|migrations|\.ci|\.github)\/[\w./*<>-]*$/.test(word)
const isPath = (quote: string): boolean =>
  /^[\w*<][\w.*<>-]*(\/[\w.*<>-]*)+$/.test(quote) ||
  /^[\w*<][\w.*<>-]*\.(ts|sql|md|json|css|yml|toml|lock)$/.test(quote)

/**
 * Paths begin at the root, or to be short in `src/` or its features; a name alone is a file's. `*` and `<…>` stand for
 * any name.
 */
function isThere(path: string): boolean {
  const start = path.includes('/') ? '(src/|src/features/|src/features/[^/]+/)?' : '(.*/)?'
  const name = path
    .replace(/[./:]+$/, '')
    .replaceAll('.', '\\.')
    .replace(/<[\w-]+>|\*/g, '[^/]+')
  const pattern = new RegExp(`^${start}${name}$`)
  return tree.some((known) => pattern.test(known))
}

const GUIDES = readdirSync(join(root, 'docs'), { recursive: true })
  .map(String)
  .filter((path) => path.endsWith('.md'))
  .map((path) => `docs/${path}`)
const DESIGN = GUIDES.filter((guide) => guide.startsWith('docs/design/'))
/** Documents about the code: each path and each name of the code in them is checked. */
const MAPS = ['ARCHITECTURE.md', 'CONTRIBUTING.md', ...DESIGN]
const DOCUMENTS = [...new Set([...MAPS, 'README.md', 'SECURITY.md', ...GUIDES])]
/** Columns, as in the code. */
const WIDTH = 120

test.each([...DOCUMENTS, 'CHANGELOG.md'])('%s has no marks of an unfinished merge', (document) => {
  expect(text(document)).not.toMatch(/^(<{7}|={7}|>{7})/m)
})

test.each(DOCUMENTS)('every path in %s is in the tree', (document) => {
  const paths = [
    ...words(document).filter(isRooted),
    ...(MAPS.includes(document) ? quoted(document).filter(isPath) : []),
  ]
  expect([...new Set(paths)].filter((path) => !isThere(path))).toEqual([])
})

test.each(DOCUMENTS)('every test that %s names is in its file', (document) => {
  const named = [...text(document).matchAll(/`(tests\/[\w./-]+\.test\.ts)` \("([^"\n]+)"\)/g)]
  expect(named.filter(([, path, name]) => !hasTest(path!, name!)).map(([quote]) => quote)).toEqual([])
})

test.each(MAPS)('every name of the code in %s is in the code', (document) => {
  const names = quoted(document).flatMap(
    (quote) => /^([a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[a-z]+_[a-z_]+)(\(.*\))?$/.exec(quote)?.[1] ?? [],
  )
  expect([...new Set(names)].filter((name) => !new RegExp(`\\b${name}\\b`).test(code))).toEqual([])
})

test.each([...DOCUMENTS, 'CHANGELOG.md'])(
  'every link in %s leads to a document, and to a heading of it',
  (document) => {
    const headings = (of: string) =>
      [...withoutExamples(text(of)).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
        heading!
          .toLowerCase()
          .replace(/[^\w\s-]/g, '')
          .replace(/\s/g, '-'),
      )
    const links = [...text(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)]
    const broken = links.filter(([, path, heading]) => {
      const target = path === '' ? document : join(dirname(document), path!)
      return !existsSync(join(root, target)) || (heading !== undefined && !headings(target).includes(heading))
    })
    expect(broken.map(([link]) => link)).toEqual([])
  },
)

test.each([...DOCUMENTS, 'CHANGELOG.md'])(
  '%s is at most 120 columns wide, except for tables, examples and links',
  (document) => {
    const wide = withoutExamples(text(document))
      .split('\n')
      .filter(
        (line) => line.length > WIDTH && !line.startsWith('|') && !/^\s*\S+$/.test(line) && !line.startsWith('<!--'),
      )
    expect(wide).toEqual([])
  },
)

/** At the top level, beside what git ignores and what tools look for under these names. */
const TOP_LEVEL_TEXTS = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md', 'build.ts']

test('no text stands at the top level but the documents and the build', () => {
  expect(
    readdirSync(root)
      .filter((name) => /\.(md|txt|ts|js)$/.test(name))
      .toSorted(),
  ).toEqual(TOP_LEVEL_TEXTS)
})

test('README is short, and leads to every guide', () => {
  expect(text('README.md').split('\n').length).toBeLessThanOrEqual(250)
  expect(GUIDES.filter((guide) => !DESIGN.includes(guide) && !text('README.md').includes(`(${guide})`))).toEqual([])
})

test('ARCHITECTURE.md leads to every design page', () => {
  expect(DESIGN.filter((page) => !text('ARCHITECTURE.md').includes(`(${page})`))).toEqual([])
})

test('"Libraries" in ARCHITECTURE.md names every package of package.json, and no other', () => {
  const { dependencies, devDependencies } = JSON.parse(text('package.json')) as Record<string, Record<string, string>>
  const [, ...tables] = text('ARCHITECTURE.md').split('\n## Libraries\n')[1]!.split('| Library |')
  const named = tables.map((table) =>
    [...table.matchAll(/^\| (`[^|]+`) \| [^|\s]/gm)].flatMap(([, names]) =>
      names!.split(', ').map((name) => name.replaceAll('`', '')),
    ),
  )
  expect(named.map((names) => names.toSorted())).toEqual(
    [dependencies, devDependencies].map((packages) => Object.keys(packages!).toSorted()),
  )
})

test('every shelf, folder of the platform and feature stands in ARCHITECTURE.md', () => {
  const map = text('ARCHITECTURE.md')
  const foldersIn = (path: string) =>
    readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []))
  const named = [
    ...foldersIn('src').map((name) => `\`src/${name}/\``),
    ...foldersIn('src/platform').map((name) => `\`platform/${name}/\``),
    ...foldersIn('src/features').flatMap((group) => foldersIn(`src/features/${group}`).map((name) => `\`${name}\``)),
  ]
  expect(named.filter((name) => !map.includes(name))).toEqual([])
})

test('CHANGELOG.md has a section for the version and one for what comes after it', () => {
  const { version } = JSON.parse(text('package.json'))
  const sections = [...text('CHANGELOG.md').matchAll(/^## \[([^\]]+)\](?: - \d{4}-\d\d-\d\d)?$/gm)].map(
    ([, section]) => section,
  )
  expect(sections.slice(0, 2)).toEqual(['Unreleased', version])
})
