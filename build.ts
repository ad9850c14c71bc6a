/**
 * Build the executable: the program, its libraries, migrations and pages, and the runtime, in one file.
 *
 *   bun build.ts                                     dist/holdfast, for this machine
 *   bun build.ts --target linux-arm64,darwin-arm64   dist/holdfast-linux-arm64, …
 *
 * Bytecode makes the start three times faster. It needs ESM here, because the program awaits at top level.
 * The file reads no .env and no bunfig.toml where it is started: its configuration has one place.
 */
import { rmSync, statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { SOFTWARE } from './src/platform/version.ts'

/** What Bun can build for, without its `bun-`. */
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

async function build(target: Target | null): Promise<boolean> {
  const outfile = target === null ? 'dist/holdfast' : `dist/holdfast-${target}`
  const { success, logs } = await Bun.build({
    entrypoints: ['src/main.ts'],
    target: 'bun',
    format: 'esm',
    minify: true,
    bytecode: true,
    sourcemap: 'inline',
    define: { 'process.env.NODE_ENV': '"production"' },
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false, ...(target !== null && { target: `bun-${target}` }) },
    throw: false,
  })
  for (const message of logs) console.error(message)
  // It is inside the executable too: stacks name the source.
  rmSync(`${outfile}.map`, { force: true })
  if (success) console.log(`${SOFTWARE}: ${outfile}, ${(sizeOf(outfile) / MEBIBYTE).toFixed(1)} MiB`)
  return success
}

const sizeOf = (outfile: string) => (statSync(outfile, { throwIfNoEntry: false }) ?? statSync(`${outfile}.exe`)).size

function chosenTargets(): (Target | null)[] {
  const { values } = parseArgs({ options: { target: { type: 'string' } } })
  if (values.target === undefined) return [null]
  return values.target.split(',').map((name) => {
    const target = targets.find((each) => each === name)
    if (target === undefined) throw new Error(`no target "${name}"; there are ${targets.join(', ')}`)
    return target
  })
}

let failed = false
for (const target of chosenTargets()) failed = !(await build(target)) || failed
process.exitCode = failed ? 1 : 0
