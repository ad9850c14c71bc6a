/** The files that test something, the tests in them, and what these do. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Glob } from 'bun'
import { childrenOf, isNode, nodesOf, syntaxOf, type SyntaxNode } from './syntax.ts'

const ROOT = join(import.meta.dir, '../..')

interface Source {
  /** From the root of the repository. */
  path: string
  text: string
}

/** Tests and their helpers. Benches and the comparison with the reference are run by hand. */
export const testSources: readonly Source[] = [...new Glob('{src,tests}/**/*.ts').scanSync(ROOT)]
  .filter((path) => (path.startsWith('tests/') ? !/^tests\/(?:bench|peers)\//.test(path) : path.endsWith('.test.ts')))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

export interface TestCase {
  path: string
  line: number
  /** As it is written, with placeholders. */
  name: string
  /** Whether it, or a function that it calls by name, has an `expect`. */
  expects: boolean
}

interface Module {
  /** Bodies of functions and of objects with functions, by name. */
  functions: ReadonlyMap<string, SyntaxNode>
  /** Where names come from: the module and the name there. */
  imports: ReadonlyMap<string, { path: string; name: string }>
}

function memoized<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>()
  return (key) => made.get(key) ?? made.set(key, make(key)).get(key)!
}

const programAt = memoized((path: string) => syntaxOf(path, readFileSync(join(ROOT, path), 'utf8')))

const moduleAt = memoized((path: string): Module => {
  const functions = new Map<string, SyntaxNode>()
  const imports = new Map<string, { path: string; name: string }>()
  for (const [node] of nodesOf(programAt(path))) {
    const name = node.type === 'MethodDefinition' ? nameOf(node['key']) : nameOf(node['id'])
    if (name !== null && /^(?:FunctionDeclaration|VariableDeclarator|MethodDefinition)$/.test(node.type))
      functions.set(name, node)
    if (node.type !== 'ImportDeclaration') continue
    const target = relative(ROOT, join(ROOT, dirname(path), String((node['source'] as SyntaxNode)['value'])))
    if (!/^tests\/.*\.ts$/.test(target) || !existsSync(join(ROOT, target))) continue
    for (const specifier of node['specifiers'] as SyntaxNode[])
      imports.set(nameOf(specifier['local'])!, { path: target, name: nameOf(specifier['imported']) ?? 'default' })
  }
  return { functions, imports }
})

const nameOf = (node: unknown): string | null =>
  isNode(node) && (node.type === 'Identifier' || node.type === 'PrivateIdentifier') ? String(node['name']) : null

/** The functions that code calls or passes on: their names, and those of methods. `expect` is one of them. */
const namesIn = memoized((node: SyntaxNode): ReadonlySet<string> => {
  const names = new Set<string>()
  const add = (at: SyntaxNode): void => {
    const name = nameOf(at)
    if (name !== null) names.add(name)
    for (const [, child] of childrenOf(at)) add(child)
  }
  add(node)
  return names
})

/** Whether the code has an `expect`, or names a function that has one, in the module or where it comes from. */
function hasExpect(node: SyntaxNode, path: string, seen: Set<SyntaxNode>): boolean {
  if (seen.has(node)) return false
  seen.add(node)
  const names = namesIn(node)
  if (names.has('expect')) return true
  const { functions, imports } = moduleAt(path)
  for (const name of names) {
    const here = functions.get(name)
    if (here !== undefined && hasExpect(here, path, seen)) return true
    const origin = imports.get(name)
    const there = origin && moduleAt(origin.path).functions.get(origin.name)
    if (there !== undefined && hasExpect(there, origin!.path, seen)) return true
  }
  return false
}

/** The tests of a file. */
export function testsOf(source: Source): TestCase[] {
  return [...nodesOf(programAt(source.path))].flatMap(([node]) => {
    const [title, ...rest] = node.type === 'CallExpression' && isTest(node['callee']) ? argumentsOf(node) : []
    if (title === undefined) return []
    return {
      path: source.path,
      line: source.text.slice(0, node.start).split('\n').length,
      name: titleOf(title, source),
      expects: rest.some((argument) => hasExpect(argument, source.path, new Set())),
    }
  })
}

/** A title that is no text has only placeholders. */
const titleOf = ({ type, start, end }: SyntaxNode, { text }: Source): string =>
  /^(?:Literal|TemplateLiteral)$/.test(type) ? text.slice(start + 1, end - 1) : `\${${text.slice(start, end)}}`

const argumentsOf = (node: SyntaxNode): SyntaxNode[] => (node['arguments'] as unknown[]).filter(isNode)

/** `test`, `test.if(…)` and `test.each(…)`. */
function isTest(callee: unknown): boolean {
  if (!isNode(callee)) return false
  if (callee.type === 'CallExpression')
    return (
      isNode(callee['callee']) && callee['callee'].type === 'MemberExpression' && isTest(callee['callee']['object'])
    )
  return nameOf(callee) === 'test'
}

/** Whether a file writes statements of its own, or takes the database out of the context of a server. */
export const usesDatabase = ({ text }: Source): boolean =>
  /\bsql`|\.unsafe\(|from 'bun:sqlite'|\bctx\.db\b|\bdb\b[^=\n]*\} = [\w.!]*\bctx\b/.test(text)
