/**
 * What the executable consists of, and what an idle server keeps in memory, by part. Linux only.
 *
 *   bun tests/bench/program-parts.ts [starts, 5] [seconds until memory is read, 10]
 *
 * A library is measured in an executable of its own, which serves one response: its size and its resident memory less
 * those of the same program without the library. Libraries share code of the runtime, so their sum is more than what
 * they take together.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BuildConfig } from 'bun'
import { bundleOptions, bundlePlugins } from '../../build.ts'
import { withoutSourceText } from '../../release/source-maps.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

const starts = Number(process.argv[2] ?? 5)
const idleSecs = Number(process.argv[3] ?? 10)
const MEBIBYTE = 1024 ** 2

/** Loaded at the start; then those that are loaded when they are first used. */
const libraries = [
  ['elysia', '@sinclair/typebox', 'prom-client/lib/histogram', 'smol-toml', '@atproto/syntax'],
  [
    '@atproto/oauth-scopes',
    '@atproto/oauth-types',
    '@noble/curves/secp256k1.js',
    'aws4',
    '@rgrove/parse-xml',
    '@opentelemetry/exporter-trace-otlp-grpc',
    '@modelcontextprotocol/sdk/client/index.js',
    'nodemailer',
    'file-type',
    'qr',
    'jose',
    'age-encryption',
  ],
]

const root = join(import.meta.dir, '../..')
// The libraries are found from here.
const folder = join(root, 'node_modules/.cache/program-parts')
mkdirSync(folder, { recursive: true })

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const mebibytes = (bytes: number) => (bytes / MEBIBYTE).toFixed(1)

/** Builds an executable at `outfile`. Returns its size in bytes. */
async function build(outfile: string, changes: Partial<BuildConfig>): Promise<number> {
  const { success, logs } = await Bun.build({
    ...bundleOptions,
    plugins: bundlePlugins(null, root),
    ...changes,
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
  } as BuildConfig)
  if (!success) throw new AggregateError(logs)
  if (changes.sourcemap !== 'none') writeFileSync(outfile, withoutSourceText(readFileSync(outfile)))
  return statSync(outfile).size
}

interface Idle {
  startMillis: number
  rss: number
  /** Pages that the program has written. */
  anonymous: number
}

/** Starts a program, on a folder that exists if it is a server, and reads its memory once it has been idle. */
async function idle(program: string[], data: string): Promise<Idle> {
  const port = await freePort()
  const env = { SERVICE_DEVELOPMENT: 'true', SERVICE_PORT: String(port), SERVICE_DATA_DIR: data }
  const began = performance.now()
  const child = Bun.spawn(program, { cwd: folder, env, stdout: 'ignore', stderr: 'ignore' })
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/xrpc/_health`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(answers, { maxPauseMillis: 2 })
  const startMillis = performance.now() - began
  await Bun.sleep(idleSecs * 1000)
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) * 1024
  const found = { startMillis, rss: bytes('VmRSS'), anonymous: bytes('RssAnon') }
  child.kill()
  await child.exited
  return found
}

/** The medians of several starts, after one that fills the folder and the page cache. */
async function typically(program: string[]): Promise<Idle> {
  const data = mkdtempSync(join(tmpdir(), 'holdfast-parts-'))
  const found: Idle[] = []
  for (let i = 0; i <= starts; i++) found.push(await idle(program, data))
  rmSync(data, { recursive: true })
  const of = (name: keyof Idle) => median(found.slice(1).map((one) => one[name]))
  return { startMillis: of('startMillis'), rss: of('rss'), anonymous: of('anonymous') }
}

const path = join(folder, 'holdfast')
const bare = join(folder, 'bare')
const source = join(folder, 'bare.ts')
const serving = "Bun.serve({ port: Number(process.env.SERVICE_PORT), fetch: () => new Response('ok') })\n"
writeFileSync(source, serving)
const bareSize = await build(bare, { entrypoints: [source] })
const size = await build(path, {})
const withoutMaps = await build(join(folder, 'other'), { sourcemap: 'none' })
const withoutBytecode = await build(join(folder, 'other'), { sourcemap: 'none', bytecode: false })

console.log(`| Part of the executable | MiB |
| --- | ---: |
| all of it | ${mebibytes(size)} |
| the runtime | ${mebibytes(bareSize)} |
| bytecode | ${mebibytes(withoutMaps - withoutBytecode)} |
| source maps | ${mebibytes(size - withoutMaps)} |
| source text, native libraries (compressed), pages | ${mebibytes(withoutBytecode - bareSize)} |
`)

const server = await typically([path, 'dev'])
const nothing = await typically([bare])
const fromSource = await typically([process.execPath, join(root, 'src/main.ts'), 'dev'])
console.log(`| Idle | MiB resident | of these written | Start, ms |
| --- | ---: | ---: | ---: |`)
for (const [name, { rss, anonymous, startMillis }] of Object.entries({
  'the executable': server,
  'the server from its source': fromSource,
  'a program that serves one response': nothing,
}))
  console.log(`| ${name} | ${mebibytes(rss)} | ${mebibytes(anonymous)} | ${startMillis.toFixed(0)} |`)

console.log('\n| Library | MiB resident | MiB of the executable | Loaded |\n| --- | ---: | ---: | --- |')
for (const [index, names] of libraries.entries())
  for (const name of names) {
    writeFileSync(source, `import * as library from '${name}'\nglobalThis.library = library\n${serving}`)
    const more = (await build(join(folder, 'other'), { entrypoints: [source] })) - bareSize
    const { rss } = await typically([join(folder, 'other')])
    const loaded = index === 0 ? 'at the start' : 'when first used'
    console.log(`| \`${name}\` | ${mebibytes(rss - nothing.rss)} | ${mebibytes(more)} | ${loaded} |`)
  }
rmSync(folder, { recursive: true })
