/**
 * Build the executable: the program, its libraries, migrations and pages, and the runtime, in one file.
 *
 *   bun build.ts                                     dist/holdfast, for this machine
 *   bun build.ts --target linux-arm64,darwin-arm64   dist/holdfast-linux-arm64, …
 *
 * Bytecode makes the start three times faster. It needs ESM here, because the program awaits at top level. Each dynamic
 * import becomes a chunk of its own, which takes no memory before it is loaded. The executable reads no .env and no
 * bunfig.toml from its working directory: its configuration has one place.
 */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SOFTWARE } from './src/base/version.ts'

/** The platforms to build for, as Bun names them without the prefix `bun-`. */
const targets = [
  'linux-x64',
  'linux-x64-baseline',
  'linux-x64-musl',
  'linux-arm64',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'windows-x64',
] as const
type Target = (typeof targets)[number]

const MEBIBYTE = 1024 * 1024

/** Build one executable at `outfile`. Returns whether that succeeded; errors are written to standard error. */
export async function buildExecutable(outfile: string, target: Target | null): Promise<boolean> {
  const { success, logs, outputs } = await Bun.build({
    entrypoints: ['src/main.ts', 'src/platform/database/checkpoint-worker.ts'].map((path) => join(import.meta.dir, path)),
    // The entry points are placed side by side, so that the program finds the worker by the same relative name as in the source.
    naming: { entry: '[name].[ext]' },
    target: 'bun',
    format: 'esm',
    minify: true,
    bytecode: true,
    splitting: true,
    // Native libraries are embedded as files, which the program unpacks: `native-library.ts` says why.
    loader: { '.node': 'file' },
    sourcemap: 'inline',
    define: { 'process.env.NODE_ENV': '"production"' },
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false, ...(target !== null && { target: `bun-${target}` }) },
    throw: false,
  })
  for (const message of logs) console.error(message)
  // The source maps are also inside the executable, so that stack traces name the source.
  for (const { path } of outputs) if (path.endsWith('.map')) rmSync(path, { force: true })
  return success
}

function chosenTargets(): (Target | null)[] {
  const { values } = parseArgs({ options: { target: { type: 'string' } } })
  if (values.target === undefined) return [null]
  return values.target.split(',').map((name) => {
    const target = targets.find((each) => each === name)
    if (target === undefined) throw new Error(`no target "${name}"; there are ${targets.join(', ')}`)
    return target
  })
}

const sizeOf = (outfile: string) => (statSync(outfile, { throwIfNoEntry: false }) ?? statSync(`${outfile}.exe`)).size

if (import.meta.main) {
  for (const target of chosenTargets()) {
    const outfile = join(import.meta.dir, 'dist', target === null ? 'holdfast' : `holdfast-${target}`)
    if (await buildExecutable(outfile, target)) console.log(`${SOFTWARE}: ${outfile}, ${(sizeOf(outfile) / MEBIBYTE).toFixed(1)} MiB`)
    else process.exitCode = 1
  }
}
