/**
 * The files of `src/` and what each imports, types included: the compiler takes those away, but a reader has to follow
 * them.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Glob } from 'bun'

const ROOT = join(import.meta.dir, '../../src')

export interface Source {
  /** Below `src/`. */
  path: string
  text: string
  /** Paths below `src/` of the files it imports, loads or starts as a worker. */
  imports: readonly string[]
}

/**
 * `import … from '…'`, `export … from '…'`, `import '…'`, `import('…')` and `new URL('…', import.meta.url)`, of a
 * relative path.
 */
const importPattern =
  /(?:^(?:import|export)\b[^'"`;]*?\bfrom\s*|^import\s*|\bimport\(\s*|\bnew URL\(\s*)'(\.[^']+\.ts)'/gm

/**
 * All that is written by hand, in the order of the paths. Unit tests are left out: they stand beside what they test and
 * see its inside.
 */
export const sources: readonly Source[] = [...new Glob('**/*.ts').scanSync(ROOT)]
  .filter((path) => !path.endsWith('.test.ts') && !path.includes('/generated/'))
  .toSorted()
  .map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    const targets = [...text.matchAll(importPattern)].map(([, target]) => join(dirname(join(ROOT, path)), target!))
    return {
      path,
      text,
      imports: [...new Set(targets.filter((target) => existsSync(target)).map((target) => relative(ROOT, target)))],
    }
  })

/** Names that a file declares and exports, types included. */
export const declaredNames = ({ text }: Source): string[] =>
  [...text.matchAll(/^export (?:abstract |async )*(?:function\*?|const|class|interface|type) (\w+)/gm)].map(
    ([, name]) => name!,
  )

/** Names that a file exports in braces, most often those of another file. */
export const passedNames = ({ text }: Source): string[] =>
  [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list]) => namesOf(list!, 'after'))

/** The names in braces of an import or export. Of `one as other`, the one before or after `as`. */
const namesOf = (list: string, side: 'before' | 'after'): string[] =>
  list
    .split(',')
    .map((item) =>
      item
        .trim()
        .replace(/^type /, '')
        .split(' as '),
    )
    .map((names) => (side === 'before' ? names[0]! : names.at(-1)!))
    .filter((name) => name !== '')

/** Names that a file takes from other files of ours, each with the path below `src/` of the one it names. */
export const importedNames = ({ path, text }: Source): { target: string; name: string }[] =>
  [
    ...text.matchAll(/^import (?:type )?\{([^}]*)\} from '(\.[^']+)'/gm),
    ...text.matchAll(/\bconst \{([^}]*)\} = await import\('(\.[^']+)'\)/g),
  ].flatMap(([, list, target]) =>
    namesOf(list!, 'before').map((name) => ({ target: join(dirname(path), target!), name })),
  )

export type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** For each node that can reach itself, a shortest way round; each way once. */
export function cyclesOf(graph: Graph): string[] {
  const found = new Map<string, string>()
  for (const start of graph.keys()) {
    const way = wayBack(graph, start)
    const key = way?.toSorted().join()
    if (way && key !== undefined && !found.has(key)) found.set(key, [...way, start].join(' → '))
  }
  return [...found.values()]
}

function wayBack(graph: Graph, start: string): string[] | null {
  const cameFrom = new Map<string, string>()
  const queue = [start]
  for (const node of queue) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) return wayTo(node, cameFrom, start)
      if (cameFrom.has(next)) continue
      cameFrom.set(next, node)
      queue.push(next)
    }
  }
  return null
}

function wayTo(end: string, cameFrom: ReadonlyMap<string, string>, start: string): string[] {
  const way = [end]
  while (way[0] !== start) way.unshift(cameFrom.get(way[0]!)!)
  return way
}
