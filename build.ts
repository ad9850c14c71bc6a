/**
 * Build the executable: the program, its libraries, migrations and pages, and the runtime, in one file.
 *
 *   bun build.ts                                     dist/holdfast, for this machine
 *   bun build.ts --target linux-arm64,darwin-arm64   dist/holdfast-linux-arm64, …
 *
 * Bytecode makes the start three times faster. It needs ESM here, because the program awaits at top level. Each dynamic
 * import becomes a chunk of its own, which takes no memory until it is loaded. The executable reads no .env and no
 * bunfig.toml from its working directory, so that its configuration is in one place.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync } from 'node:zlib'
import type { BuildConfig, BunPlugin } from 'bun'
import { releaseDefinition, type ReleaseOrigin } from './src/base/release-origin.ts'
import { SOFTWARE } from './src/base/version.ts'
import { migrations } from './src/platform/database/embedded-migrations.ts'
import { forgetSections, isElf, segmentsOf } from './release/elf.ts'
import { withoutSourceText } from './release/source-maps.ts'

/** The platforms to build for, as Bun names them without the prefix `bun-`, and as npm names them. */
export const targets = {
  'linux-x64': { os: 'linux', cpu: 'x64', libc: 'glibc' },
  'linux-x64-baseline': { os: 'linux', cpu: 'x64', libc: 'glibc' },
  'linux-x64-musl': { os: 'linux', cpu: 'x64', libc: 'musl' },
  'linux-arm64': { os: 'linux', cpu: 'arm64', libc: 'glibc' },
  'linux-arm64-musl': { os: 'linux', cpu: 'arm64', libc: 'musl' },
  'darwin-x64': { os: 'darwin', cpu: 'x64' },
  'darwin-arm64': { os: 'darwin', cpu: 'arm64' },
  'windows-x64': { os: 'win32', cpu: 'x64' },
} as const
export type Target = keyof typeof targets

/** Libraries whose native build npm installs for one platform only, in a package of its own. */
const nativeLibraries = ['@node-rs/argon2', '@number0/iroh'] as const
export const nativePackage = /^@(?:node-rs\/argon2|number0\/iroh)-/
/** Matches a native build: such a package, or a file of a library that contains the builds for all platforms. */
const nativeBuild = /^@(?:node-rs\/argon2|number0\/iroh)-|^secp256k1\/prebuilds\//

const MEBIBYTE = 1024 * 1024

const os = (target: Target | null) => (target === null ? process.platform : targets[target].os)

/** What every executable is bundled from, and how. */
export const bundleOptions = {
  entrypoints: ['src/main.ts', 'src/reader-worker.ts', 'src/platform/database/checkpoint-worker.ts'].map((path) =>
    join(import.meta.dir, path),
  ),
  // The entry points are placed side by side, so that the program finds the worker by the same relative name as in the
  // source.
  naming: { entry: '[name].[ext]' },
  target: 'bun',
  format: 'esm',
  minify: true,
  bytecode: true,
  splitting: true,
  sourcemap: 'inline',
  define: { 'process.env.NODE_ENV': '"production"' },
  throw: false,
} as const satisfies BuildConfig

/**
 * Build one executable at `outfile`, which knows the release that it belongs to, if any. Returns whether that
 * succeeded; errors are written to standard error.
 */
export async function buildExecutable(
  outfile: string,
  target: Target | null,
  origin: ReleaseOrigin | null = null,
): Promise<boolean> {
  const folder = target === null ? null : await installNativeLibraries(target)
  try {
    const { success, logs, outputs } = await Bun.build({
      ...bundleOptions,
      plugins: bundlePlugins(target, folder ?? import.meta.dir),
      define: { ...bundleOptions.define, ...(origin !== null && releaseDefinition(origin)) },
      compile: {
        outfile,
        autoloadDotenv: false,
        autoloadBunfig: false,
        ...(target !== null && { target: `bun-${target}` }),
      },
    })
    for (const message of logs) console.error(message)
    // The source maps are also inside the executable, so that stack traces name the source.
    for (const { path } of outputs) if (path.endsWith('.map')) rmSync(path, { force: true })
    if (success && os(target) === 'linux') writeFileSync(outfile, withoutSourceText(readFileSync(outfile)))
    return success
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true })
  }
}

interface Lock {
  packages: Record<string, { version: string; integrity?: string }>
}

const lockAt = (path: string): Lock => JSON.parse(readFileSync(path, 'utf8')) as Lock

/**
 * npm installs native builds for its own machine only. Install those for the target in a new folder, and return the
 * folder. Throws if npm cannot install one, or if one is not what the lock file names.
 */
async function installNativeLibraries(target: Target): Promise<string> {
  const { packages } = lockAt(join(import.meta.dir, 'package-lock.json'))
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-build-'))
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const versions = nativeLibraries.map((name) => `${name}@${packages[`node_modules/${name}`]!.version}`)
  const words = [
    'install',
    '--no-save',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    ...Object.entries(targets[target]).map(([name, value]) => `--${name}=${value}`),
    ...versions,
  ]
  const npm = Bun.spawn(['npm', ...words], { cwd: folder, stdout: 'ignore', stderr: 'inherit' })
  if ((await npm.exited) !== 0) throw new Error(`npm could not install the native libraries for ${target}`)
  for (const [path, { integrity }] of Object.entries(lockAt(join(folder, 'node_modules/.package-lock.json')).packages))
    if (integrity !== packages[path]?.integrity) throw new Error(`${path} is not the one that package-lock.json names`)
  return folder
}

/** Returns an expression for a value that is stored compressed. */
function unpacking(value: object): string {
  const packed = zstdCompressSync(JSON.stringify(value), { params: nativeCompression }).toString('base64')
  return `JSON.parse(Bun.zstdDecompressSync(Buffer.from('${packed}', 'base64')).toString())`
}

/** An executable has no folder to read, so the module that reads the migrations is replaced by what it reads now. */
const embeddedMigrations: BunPlugin = {
  name: 'migrations',
  setup(build) {
    const contents = `export const migrations = ${unpacking(migrations)}`
    build.onLoad({ filter: /[\\/]embedded-migrations\.ts$/ }, () => ({ contents, loader: 'js' }))
  },
}

const translationFile = /([\w-]+)-texts-(\w+)\.ts$/

/**
 * Pack all translations into a language into one module. Otherwise the executable would hold each text three times: as
 * bytecode, in the source and in the source map.
 */
const packedTranslations: BunPlugin = {
  name: 'translations',
  setup(build) {
    build.onResolve({ filter: translationFile }, ({ path }) => ({
      path: translationFile.exec(path)![2]!,
      namespace: 'translations',
    }))
    build.onLoad({ filter: /./, namespace: 'translations' }, async ({ path: language }) => {
      const files = [
        ...new Bun.Glob(`src/**/*-texts-${language}.ts`).scanSync({ cwd: import.meta.dir, absolute: true }),
      ]
      const tables = await Promise.all(files.sort().map(async (file) => Object.entries((await import(file)) as object)))
      const names = tables.flat().map(([name]) => name)
      return {
        contents: `export const { ${names.join(', ')} } = ${unpacking(Object.fromEntries(tables.flat()))}`,
        loader: 'js',
      }
    })
  },
}

/** Plugins for a target whose native builds are installed in `folder`. */
export const bundlePlugins = (target: Target | null, folder: string): BunPlugin[] => [
  embeddedMigrations,
  packedTranslations,
  withoutUnusedPackages,
  nativeBuildsFor(target, folder),
]

/** Packages that libraries import for features that this program never uses, by the pattern of their names. */
const unusedPackages = {
  '@grpc/proto-loader': 'descriptions of the services of a gRPC server',
  '@opentelemetry/sdk-metrics': 'export of metrics',
  'thread-stream': 'logs that another thread writes',
  'ajv(?:-formats)?': 'what people enter into forms of assistants (`noForms` in agent-client/assistant-server.ts)',
  '@peculiar/(?:asn1-[\\w-]+|x509)': 'certificates of authenticators',
  'reflect-metadata': 'certificates of authenticators',
}

/** Formats of authenticator attestations. The program requests none, and refuses each. */
const attestations = ['FIDOU2F', 'Packed', 'AndroidSafetyNet', 'AndroidKey', 'Apple', 'TPM']
const webauthn = '@simplewebauthn/server/esm'

/** Files of libraries for features that this program never uses, each with its replacement. */
const unusedFiles: readonly [path: string, contents: string, whatFor: string][] = [
  [
    'nodemailer/dist/esm/mime-funcs/mime-types.js',
    "export const detectMimeType = () => 'application/octet-stream', detectExtension = () => 'bin'",
    'types of attachments',
  ],
  ['nodemailer/dist/esm/dkim/index.js', 'export default class {}', 'signatures, which the mail server makes'],
  ['nodemailer/dist/esm/smtp-pool/index.js', 'export default class {}', 'connections that are kept'],
  ...['sendmail', 'ses', 'json', 'stream'].map((name): [string, string, string] => [
    `nodemailer/dist/esm/${name}-transport/index.js`,
    'export default class {}',
    'mail by other ways than SMTP',
  ]),
  [
    'nodemailer/dist/esm/well-known/services.js',
    'export const services = {}',
    'addresses of mail providers, by their names',
  ],
  ['@grpc/grpc-js/build/src/server.js', 'module.exports = {}', 'a gRPC server'],
  ['@grpc/grpc-js/build/src/server-interceptors.js', 'module.exports = {}', 'a gRPC server'],
  ...attestations.map((name): [string, string, string] => [
    `${webauthn}/registration/verifications/${name === 'TPM' ? 'tpm/' : ''}verifyAttestation${name}.js`,
    `export const verifyAttestation${name} = async () => false`,
    'attestations of authenticators',
  ]),
  [
    `${webauthn}/services/settingsService.js`,
    'export const SettingsService = { getRootCertificates: () => [], runtimeSupportsPQC: () => false }',
    'certificates of the makers of authenticators',
  ],
  [`${webauthn}/services/metadataService.js`, 'export const MetadataService = {}', 'lists of authenticators'],
  [
    `${webauthn}/helpers/convertX509PublicKeyToCOSE.js`,
    "export const convertX509PublicKeyToCOSE = () => { throw new Error('certificates are not supported') }",
    'certificates of authenticators',
  ],
  [
    `${webauthn}/helpers/iso/isoCrypto/unwrapEC2Signature.js`,
    `export { unwrapSignature as unwrapEC2Signature } from ${JSON.stringify(join(import.meta.dir, 'src/protocol/ecdsa-signature.ts'))}`,
    'ASN.1 beyond the two numbers of a signature',
  ],
  ...['outlier-detection', 'weighted-round-robin'].map((name): [string, string, string] => [
    `@grpc/grpc-js/build/src/load-balancer-${name}.js`,
    'module.exports = { setup() {} }',
    'several servers behind one name',
  ]),
]

/**
 * Packages that libraries require in their CommonJS version, which the bundler includes with all constants. Of the ES
 * version, it keeps only the constants in use.
 */
const importedPackages = /^@opentelemetry\/(?:core|resources)$/

/**
 * Curves and hashes. Libraries bring their own versions, and the program requires the CommonJS version beside the ES
 * version. Versions with the same major number become one: `age-encryption` accepts the version of
 * `@noble/post-quantum`, which it loads.
 */
const sharedPackages = /^@noble\/(?:curves|hashes)\//
const sharedBy = (importer: string): string => {
  const library = /[\\/]node_modules[\\/](@[^\\/]+[\\/][^\\/]+|[^\\/]+)/.exec(importer)?.[0]
  if (library === undefined) return import.meta.dir
  return library.endsWith('age-encryption') ? join(import.meta.dir, 'node_modules/@noble/post-quantum') : importer
}

/** An unused package costs six times its minified text, because its bytecode and source map are stored too. */
const withoutUnusedPackages: BunPlugin = {
  name: 'unused packages',
  setup(build) {
    const unused = new RegExp(`^(?:${Object.keys(unusedPackages).join('|')})$`)
    build.onResolve({ filter: unused }, ({ path }) => ({ path, namespace: 'unused' }))
    build.onLoad({ filter: /./, namespace: 'unused' }, () => ({ contents: 'module.exports = {}', loader: 'js' }))
    for (const [path, contents] of unusedFiles)
      build.onLoad(
        { filter: new RegExp(`[\\\\/]node_modules[\\\\/]${RegExp.escape(path).replaceAll('\\/', '[\\\\/]')}$`) },
        () => ({
          contents,
          loader: 'js',
        }),
      )
    build.onResolve({ filter: sharedPackages }, ({ path, importer }) => ({
      path: Bun.resolveSync(path, sharedBy(importer)),
    }))
    build.onResolve({ filter: importedPackages }, ({ path }) => ({
      path: join(import.meta.dir, 'node_modules', path, 'build/esm/index.js'),
    }))
  },
}

/**
 * Compresses native libraries to a quarter of their size in a second. Levels above 12 take minutes to save another
 * tenth. The window is as large as the largest library.
 */
const nativeCompression = { [constants.ZSTD_c_compressionLevel]: 12, [constants.ZSTD_c_windowLog]: 25 }

/** Embeds the installed native builds for the target, compressed. All others become null. */
const nativeBuildsFor = (target: Target | null, folder: string): BunPlugin => ({
  name: 'native builds of the target',
  setup(build) {
    const cpu = target === null ? process.arch : targets[target].cpu
    build.onResolve({ filter: nativeBuild }, ({ path }) => {
      const isWanted = path.includes(`${os(target)}-${cpu}`)
      const file = isWanted ? resolvedIn(nativePackage.test(path) ? folder : import.meta.dir, path) : null
      return file === null ? { path, namespace: 'left-out' } : { path: file }
    })
    build.onLoad({ filter: /./, namespace: 'left-out' }, () => ({ contents: 'module.exports = null', loader: 'js' }))
    build.onLoad({ filter: /\.node$/ }, async ({ path }) => ({
      contents: await promisify(zstdCompress)(withoutSymbols(Buffer.from(await Bun.file(path).arrayBuffer())), {
        params: nativeCompression,
      }),
      loader: 'file',
    }))
  },
})

/**
 * Cut off what follows the last segment of an ELF file: the names of functions and the list of sections, which only
 * debuggers read. Leaves other files as they are.
 */
function withoutSymbols(file: Buffer): Buffer {
  if (!isElf(file)) return file
  const end = Math.max(...segmentsOf(file).map((segment) => segment.end))
  forgetSections(file)
  return file.subarray(0, end)
}

function resolvedIn(folder: string, path: string): string | null {
  try {
    return Bun.resolveSync(path, folder)
  } catch {
    return null // npm installs no build for another C library
  }
}

function chosenTargets(): (Target | null)[] {
  const { values } = parseArgs({ options: { target: { type: 'string' } } })
  if (values.target === undefined) return [null]
  return values.target.split(',').map((name) => {
    if (!Object.hasOwn(targets, name))
      throw new Error(`no target "${name}"; there are ${Object.keys(targets).join(', ')}`)
    return name as Target
  })
}

const sizeOf = (outfile: string) => (statSync(outfile, { throwIfNoEntry: false }) ?? statSync(`${outfile}.exe`)).size

if (import.meta.main) {
  for (const target of chosenTargets()) {
    const outfile = join(import.meta.dir, 'dist', target === null ? 'holdfast' : `holdfast-${target}`)
    if (await buildExecutable(outfile, target))
      console.log(`${SOFTWARE}: ${outfile}, ${(sizeOf(outfile) / MEBIBYTE).toFixed(1)} MiB`)
    else process.exitCode = 1
  }
}
