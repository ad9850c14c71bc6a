/**
 * How `src/` is built, held by rules: which way imports point, what a feature shows to the others, and names that can
 * be told apart. Each fault that is found says what to do about it.
 */
import { basename, dirname } from 'node:path'
import { expect, test } from 'bun:test'
import { cyclesOf, declaredNames, importedNames, passedNames, sources, type Graph } from './sources.ts'

/**
 * What the files of each shelf may import. The order is the arrow: base ← protocol ← platform ← http ← features ← app ←
 * commands; wallet and agent-client stand beside platform.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  base: ['base'],
  protocol: ['base', 'protocol'],
  wallet: ['base', 'protocol', 'wallet'],
  'agent-client': ['base', 'protocol', 'agent-client'],
  platform: ['base', 'protocol', 'platform'],
  http: ['base', 'protocol', 'platform', 'http'],
  features: ['base', 'protocol', 'platform', 'http', 'features'],
  'features.ts': ['http', 'features'],
  'reader-endpoints.ts': ['http', 'features'],
  'reader-worker.ts': ['base', 'protocol', 'platform', 'http', 'reader-endpoints.ts'],
  'app.ts': [
    'base',
    'protocol',
    'platform',
    'http',
    'features',
    'features.ts',
    'reader-endpoints.ts',
    'reader-worker.ts',
  ],
  'follower-port.ts': ['platform', 'http', 'features', 'reader-endpoints.ts'],
  commands: [
    'base',
    'protocol',
    'platform',
    'features',
    'features.ts',
    'app.ts',
    'follower-port.ts',
    'wallet',
    'agent-client',
    'commands',
  ],
  'cli.ts': ['base', 'platform', 'commands'],
  'main.ts': ['base', 'cli.ts', 'commands', 'platform'],
  'docs.ts': ['base', 'platform', 'commands'],
}

/**
 * Features that decide who somebody is and what they may do. What they stand on, `protocol/`, counts as security code
 * too.
 */
const securityFeatures = [
  'account-changes',
  'account-events',
  'account-keys',
  'accounts',
  'addresses',
  'auth',
  'callers',
  'ceremony',
  'escrow',
  'factors',
  'handles',
  'identity',
  'mails',
  'oauth',
  'operators',
  'passwords',
  'signup',
  'tokens',
  'reserved-keys',
  'service-auth',
  'sessions',
  'page-parts',
  'pages',
  'scope-words',
  'account-pages',
  'wallet-proofs',
  'web-documents',
]
const isSecurity = (path: string) =>
  securityFeatures.includes(featureOf(path) ?? '') ||
  (shelfOf(path) === 'protocol' && !path.startsWith('protocol/lexicons/'))

const shelfOf = (path: string): string => path.split('/')[0]!

/** The feature's folder within its group. Null outside of `features/`. */
const featureOf = (path: string): string | null => (path.startsWith('features/') ? path.split('/')[2]! : null)

const groupOf = new Map(
  sources.flatMap(({ path }) => (featureOf(path) === null ? [] : [[featureOf(path)!, path.split('/')[1]!]])),
)

const doorOf = (feature: string): string => `features/${groupOf.get(feature)}/${feature}/${feature}.ts`

const edges = sources.flatMap(({ path, imports }) => imports.map((target) => ({ path, target })))

test('the reader of imports sees values, types and workers', () => {
  const importsOf = (path: string) => sources.find((source) => source.path === path)?.imports
  expect(importsOf('app.ts')).toContain('platform/secrets/vault.ts')
  expect(importsOf('platform/context.ts')).toContain('platform/secrets/vault.ts')
  expect(importsOf('platform/database/wal.ts')).toContain('platform/database/checkpoint-worker.ts')
  expect(importsOf('features/data/blobs/blobs.ts')).toContain('features/data/blobs/blob-store.ts')
})

test('the reader of names sees what is declared, passed on and imported, types included', () => {
  const source = {
    path: 'features/data/a/a.ts',
    text: `import { one, two as second, type Third } from './b.ts'
export { one, second as two, type Third } from './b.ts'
export async function* four() {}
export interface Fifth {}
const { six } = await import('../c/c.ts')`,
    imports: [],
  }
  expect(declaredNames(source)).toEqual(['four', 'Fifth'])
  expect(passedNames(source)).toEqual(['one', 'two', 'Third'])
  expect(importedNames(source)).toEqual([
    ...['one', 'two', 'Third'].map((name) => ({ target: 'features/data/a/b.ts', name })),
    { target: 'features/data/c/c.ts', name: 'six' },
  ])
})

test('every file stands on a shelf, and imports point one way', () => {
  const faults = sources.flatMap(({ path, imports }) => {
    const allowed = mayImport[shelfOf(path)]
    if (allowed === undefined)
      return [
        `${path} is on no shelf. Put it on the lowest one that has all it needs: ${Object.keys(mayImport).join(', ')}`,
      ]
    return imports
      .filter((target) => !allowed.includes(shelfOf(target)))
      .map(
        (target) =>
          `${path} imports ${target}, which is further up. Move what both need down to ${shelfOf(path)}, or pass it in as an argument`,
      )
  })
  expect(faults).toEqual([])
})

test('platform is entered by a room: its own folder holds the context and nothing else', () => {
  const loose = sources
    .map(({ path }) => path)
    .filter((path) => dirname(path) === 'platform' && basename(path) !== 'context.ts')
  expect(
    loose.map(
      (path) => `${path} belongs in a folder of platform/; without a handle (file, socket, timer) it belongs in base/`,
    ),
  ).toEqual([])
})

test('a feature is used through its door', () => {
  const faults = edges.flatMap(({ path, target }) => {
    const feature = featureOf(target)
    if (feature === null || featureOf(path) === feature || target === doorOf(feature)) return []
    const listsFeatures = path === 'features.ts' || path === 'reader-endpoints.ts'
    if (listsFeatures && target === doorOf(feature).replace(/\.ts$/, '-feature.ts')) return []
    return [`${path} imports the inside of ${feature}. Import ${doorOf(feature)}, and let it export what is needed`]
  })
  expect(faults).toEqual([])
})

/** More names than that are more than one subject, or the inside of the feature. */
const MAX_DOOR_NAMES = 30

const doors = sources.filter(({ path }) => featureOf(path) !== null && path === doorOf(featureOf(path)!))

test('a door is narrow: it exports at most 30 names', () => {
  const faults = doors.flatMap((door) => {
    const { length } = [...declaredNames(door), ...passedNames(door)]
    return [
      ...(length > MAX_DOOR_NAMES
        ? [
            `${door.path} exports ${length} names. Split the feature by subject, move what one caller needs to that caller, or make one verb of narrow functions that are called together`,
          ]
        : []),
      ...(/^export \*/m.test(door.text) ? [`${door.path} exports everything of a file. Name what others need`] : []),
    ]
  })
  expect(faults).toEqual([])
})

test('what a door takes from the inside of its feature is used outside', () => {
  const used = new Set(
    sources.flatMap((source) =>
      importedNames(source)
        .filter(({ target }) => featureOf(source.path) !== featureOf(target))
        .map(({ target, name }) => `${target} ${name}`),
    ),
  )
  const faults = doors.flatMap((door) =>
    passedNames(door)
      .filter((name) => !used.has(`${door.path} ${name}`))
      .map((name) => `${door.path} exports ${name}, which nothing outside imports. Take it off the door`),
  )
  expect(faults).toEqual([])
})

test('features form an order, in which features.ts lists them: each imports only those above it', () => {
  const order = [
    ...sources.find(({ path }) => path === 'features.ts')!.text.matchAll(/^import .* from '\.\/(features\/.*)'$/gm),
  ]
  const folders = new Map(order.map(([line, path]) => [/\{ (\w+) \}/.exec(line)![1]!, featureOf(path!)!]))
  const listed = [...sources.find(({ path }) => path === 'features.ts')!.text.matchAll(/^ {2}(\w+),$/gm)].map(
    ([, name]) => folders.get(name!)!,
  )
  const rank = (feature: string): number => listed.indexOf(feature)
  const faults = edges.flatMap(({ path, target }) => {
    const [from, to] = [featureOf(path), featureOf(target)]
    if (from === null || to === null || from === to || !listed.includes(from) || rank(to) < rank(from)) return []
    return [
      `${path} imports ${to}, which builds on ${from}. Declare a part in a hook (http/feature.ts), or move what both need down`,
    ]
  })
  expect(faults).toEqual([])
})

test('features form no cycle, those included that plug nothing in', () => {
  const doors = new Map<string, Set<string>>()
  for (const { path, target } of edges) {
    const [from, to] = [featureOf(path), featureOf(target)]
    if (from !== null && to !== null && from !== to) doors.set(from, (doors.get(from) ?? new Set()).add(to))
  }
  expect(cyclesOf(doors).map((cycle) => `${cycle}: split one of these features in two, by what it is about`)).toEqual(
    [],
  )
})

test('files form no cycle, types included', () => {
  const graph: Graph = new Map(sources.map(({ path, imports }) => [path, new Set(imports)]))
  expect(
    cyclesOf(graph).map(
      (cycle) => `${cycle}: move what both ends need into the one that needs nothing, or into a file of its own`,
    ),
  ).toEqual([])
})

test('file names are in kebab case and unique, so that a name is enough to find a file', () => {
  const names = Map.groupBy(sources, ({ path }) => basename(path))
  const faults = [...names].flatMap(([name, files]) => [
    ...(files.length > 1
      ? [`${files.map(({ path }) => path).join(', ')} have one name. Say in it what tells them apart`]
      : []),
    ...(/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(name) ? [] : [`${name} is not in kebab case`]),
  ])
  expect(faults).toEqual([])
})

test('names that security code exports are unique in it: two functions that look alike in a search are taken for one another', () => {
  const exported = sources
    .filter(({ path }) => isSecurity(path))
    .flatMap((source) => declaredNames(source).map((name) => ({ name, path: source.path })))
  const faults = [...Map.groupBy(exported, ({ name }) => name)]
    .filter(([, places]) => places.length > 1)
    .map(
      ([name, places]) =>
        `${name} is exported by ${places.map(({ path }) => path).join(' and ')}. Say in the name whose it is, as in findOAuthSession`,
    )
  expect(faults).toEqual([])
})

test('a sweep stands in a file of its own, which is called after it', () => {
  const faults = sources
    .filter(({ path, text }) => /^(export )?const \w+: Sweep = /m.test(text) && !path.endsWith('-sweep.ts'))
    .map(
      ({ path }) =>
        `${path} declares a sweep. Move it into a file whose name ends in -sweep.ts: by that name sweeps are found`,
    )
  expect(faults).toEqual([])
})

test('every feature is listed in features.ts', () => {
  const listed = sources.find(({ path }) => path === 'features.ts')!.imports
  const faults = sources
    .filter(
      ({ path, text }) =>
        featureOf(path) !== null && /^export const \w+: Feature = /m.test(text) && !listed.includes(path),
    )
    .map(({ path }) => `${path} declares a feature that features.ts does not list: it would never run`)
  expect(faults).toEqual([])
})

/** The initialiser tells what a constant is: a number or a text is one literal, or is made of such constants. */
const isPlainValue = (initialiser: string) =>
  /^(-?\.?\d|(['"`])(?:(?!\2).)*\2( |$)|[A-Z][A-Z\d_]+( [-+*/%]|$))/.test(initialiser)
const isStructure = (initialiser: string) => /^([[{(/]|new |async |function|<|\w+ =>)/.test(initialiser)

test('constants are written in one way: SCREAMING_CASE for a number or a text, camelCase for a table, a pattern, a function', () => {
  const faults = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^(?:export )?const (\w+)(?:: [^=\n]+)? = (.*)$/gm)].flatMap(([, name, initialiser]) => {
      const isLoud = /^[A-Z][A-Z\d_]+$/.test(name!)
      if (!isLoud && isPlainValue(initialiser!))
        return [`${name} in ${path} is a number or a text. Write it in SCREAMING_CASE, with its unit at the end`]
      if (isLoud && isStructure(initialiser!))
        return [
          `${name} in ${path} has parts. Write it in camelCase; SCREAMING_CASE says that it is one number or one text`,
        ]
      return []
    }),
  )
  expect(faults).toEqual([])
})

test('what formats or splits texts is made when it is first used: each takes milliseconds of the start', () => {
  const atTheStart = sources
    // Loaded by the commands that need it.
    .filter(({ path, text }) => !path.startsWith('agent-client/') && /^(export )?const \w+ = new Intl\./m.test(text))
    .map(({ path }) => path)
  expect(atTheStart).toEqual([])
})
