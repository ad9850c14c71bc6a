/**
 * Prints the test files that depend on the database of the suite, for `npm run test:postgres`: those whose imports
 * reach `support/servers/suite.ts`, which alone reads `TEST_DATABASE`. All others (unit tests, tests of the executable
 * and its commands, tests of servers on a file, and tests that bring a PostgreSQL server of their own) do the same on
 * any database, and run once, in `npm test`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const SUITE = join(import.meta.dir, 'support/servers/suite.ts')

const transpiler = new Bun.Transpiler({ loader: 'ts' })

/** The modules of the tree that a module loads; not those of which it needs types alone. */
const loadedBy = (path: string): string[] =>
  transpiler
    .scanImports(readFileSync(path, 'utf8').replace(/^#!.*/, ''))
    .map((found) => resolve(dirname(path), found.path))
    .filter((found) => found.endsWith('.ts') && existsSync(found))

/** Returns the modules that load `goal`, directly or through others, and `goal` itself. */
function modulesReaching(goal: string): Set<string> {
  const loaders = new Map<string, string[]>()
  for (const path of new Bun.Glob('{src,tests}/**/*.ts').scanSync({ cwd: ROOT, absolute: true }))
    for (const loaded of loadedBy(path)) loaders.set(loaded, [...(loaders.get(loaded) ?? []), path])
  const found = new Set([goal])
  // A set that grows is followed to its end.
  for (const path of found) for (const loader of loaders.get(path) ?? []) found.add(loader)
  return found
}

/** Paths of the test files whose imports reach a module, from the root of the tree. */
export const testsReaching = (goal: string): string[] =>
  [...modulesReaching(goal)]
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => relative(ROOT, path))
    .toSorted()

export const testsOnDatabase = (): string[] => testsReaching(SUITE)

if (import.meta.main) for (const path of testsOnDatabase()) console.log(`./${path}`)
