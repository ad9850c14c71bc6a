/**
 * Generate the tables of commands, of configuration keys and of the reference's tests in docs/.
 *
 *   bun src/docs.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadCommands } from './commands/commands.ts'
import { configTable } from './platform/configuration/config-table.ts'
import { SOFTWARE_NAME } from './base/version.ts'

const DOCS = join(import.meta.dir, '..', 'docs')

const commands = await loadCommands()

const tables = [
  { path: join(DOCS, 'commands.md'), name: 'commands', table: commandTable },
  { path: join(DOCS, 'configuration.md'), name: 'configuration', table: configTable },
  { path: join(DOCS, 'design', 'reference-tests.md'), name: 'reference tests', table: referenceTests },
]

/**
 * Returns the documents with generated tables: what each contains now, and what it should contain. Throws if a document
 * lacks its markers.
 */
export const generatedDocuments = () =>
  tables.map(({ path, name, table }) => {
    const text = readFileSync(path, 'utf8')
    const begin = `<!-- ${name}: written by "bun run docs" -->`
    const end = `<!-- /${name} -->`
    const [before, after] = [text.indexOf(begin), text.indexOf(end)]
    if (before < 0 || after < before) throw new Error(`${path} needs the lines ${begin} and ${end}`)
    return { path, text, generated: `${text.slice(0, before)}${begin}\n\n${table()}\n\n${text.slice(after)}` }
  })

function commandTable(): string {
  const rows = commands.map(
    ({ name, parameters = [], summary }) => `| \`${[SOFTWARE_NAME, name, ...parameters].join(' ')}\` | ${summary} |`,
  )
  return ['| Command | |', '| --- | --- |', ...rows].join('\n')
}

/** Tests of the reference's suite, and what covers each here: tests of ours, or the reason why there is none. */
export interface ReferenceSuite {
  /** The release that has these tests. */
  package: string
  files: { file: string; groups: ReferenceGroup[] }[]
}

/** Has one of `tests` (paths and names), `reason` (it does not apply) and `gap` (it applies, and is not covered). */
export interface ReferenceGroup {
  names: string[]
  tests?: [path: string, name: string][]
  reason?: string
  gap?: string
}

const REFERENCE_SUITE = join(import.meta.dir, '..', 'tests', 'system', 'conformance', 'reference-suite.json')
export const referenceSuite = (): ReferenceSuite => JSON.parse(readFileSync(REFERENCE_SUITE, 'utf8')) as ReferenceSuite

function referenceTests(): string {
  const { files } = referenceSuite()
  const groups = files.flatMap((file) => file.groups)
  const count = (has: (group: ReferenceGroup) => boolean) =>
    groups.filter(has).reduce((sum, { names }) => sum + names.length, 0)
  const gaps = Map.groupBy(
    groups.filter(({ gap }) => gap !== undefined),
    ({ gap }) => gap!,
  )
  return [
    '| | Tests |\n| --- | ---: |',
    `| In all, in ${files.length} files | ${count(() => true)} |`,
    `| Covered by tests of ours | ${count(({ tests }) => tests !== undefined)} |`,
    `| Not applicable, for the reason given | ${count(({ reason }) => reason !== undefined)} |`,
    `| Gaps | ${count(({ gap }) => gap !== undefined)} |`,
    '\n## Gaps\n',
    ...[...gaps].map(([gap, of]) => `- ${gap} Tests: ${of.reduce((sum, { names }) => sum + names.length, 0)}.`),
    ...files.map(
      ({ file, groups }) => `\n## ${file}\n\n| Theirs | Ours |\n| --- | --- |\n${groups.map(referenceRow).join('\n')}`,
    ),
  ].join('\n')
}

function referenceRow({ names, tests, reason, gap }: ReferenceGroup): string {
  const ours = tests?.map(([path, name]) => `\`${path}\`: ${name}`).join('<br>') ?? reason ?? `**Gap.** ${gap}`
  return `| ${names.join('<br>')} | ${ours} |`
}

if (import.meta.main) for (const { path, generated } of generatedDocuments()) writeFileSync(path, generated)
