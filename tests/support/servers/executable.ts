/**
 * The executable, built once for all test files and for every run of the suite until something changes that goes into
 * it.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { buildExecutable } from '../../../build.ts'
import { LOCK_FILE } from '../../../src/platform/files/directory-lock.ts'
import { locked } from '../locked.ts'

const ROOT = join(import.meta.dir, '../../..')
const FOLDER = join(ROOT, 'node_modules/.cache/holdfast')
/** What an executable is made from, besides the runtime. */
const INGREDIENTS = [
  'src',
  'migrations',
  'release/files',
  'release/elf.ts',
  'release/source-maps.ts',
  'build.ts',
  'package.json',
  'package-lock.json',
]
/** Executables that are kept, the last used first. */
const MAX_KEPT = 3

/** Returns its path. Throws if the tree does not build. */
export async function builtExecutable(): Promise<string> {
  const folder = join(FOLDER, fingerprint())
  const path = join(folder, 'holdfast')
  mkdirSync(folder, { recursive: true })
  return locked(FOLDER, async () => {
    if (!existsSync(path)) {
      const part = `${path}.part`
      if (!(await buildExecutable(part, null))) throw new Error('the executable does not build')
      renameSync(part, path)
    }
    const now = new Date()
    utimesSync(folder, now, now)
    const usedAt = (name: string) => statSync(join(FOLDER, name)).mtimeMs
    const builds = readdirSync(FOLDER).filter((name) => name !== LOCK_FILE)
    const old = builds.toSorted((a, b) => usedAt(b) - usedAt(a)).slice(MAX_KEPT)
    for (const name of old) rmSync(join(FOLDER, name), { recursive: true, force: true })
    return path
  })
}

function fingerprint(): string {
  const hash = createHash('sha256').update(Bun.revision)
  for (const path of INGREDIENTS.flatMap(filesAt)) hash.update(`\0${path}\0`).update(readFileSync(join(ROOT, path)))
  return hash.digest('hex').slice(0, 16)
}

function filesAt(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path]
  const names = [...new Bun.Glob('**/*').scanSync({ cwd: join(ROOT, path) })].filter(
    (name) => !name.endsWith('.test.ts'),
  )
  return names.toSorted().map((name) => join(path, name))
}
