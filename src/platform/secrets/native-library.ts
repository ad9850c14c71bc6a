/**
 * Loads native libraries, which the system can load only from a disk.
 *
 * The executable contains them as embedded files. The runtime would unpack a library under a predictable name, and
 * would load any file of the same size that is already there. Here each library is written into a new folder with a
 * random name, which only this user can access. The folder is deleted once the library is loaded.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Loaded<Library> {
  /** The exports, or null if no build could be loaded. */
  library: Library | null
  /** Why builds could not be loaded. */
  faults: readonly unknown[]
}

/**
 * Returns the first build that loads. A build is what `require` returns for it: the exports when run from source, the
 * path of the file in the executable.
 */
export function firstToLoad<Library extends object>(builds: Iterable<Library | string>): Loaded<Library> {
  const faults: unknown[] = []
  for (const build of builds) {
    if (typeof build !== 'string') return { library: build, faults }
    try {
      return { library: unpacked(build), faults }
    } catch (error) {
      faults.push(error)
    }
  }
  return { library: null, faults }
}

/**
 * Returns the first build that loads, or null if none does. Writes a warning if there are builds but none can be
 * loaded.
 */
export function loadNative<Library extends object>(builds: Iterable<Library | string>): Library | null {
  const { library, faults } = firstToLoad(builds)
  if (library === null && faults.length > 0)
    process.stderr.write(
      `holdfast: a native library cannot be loaded from ${tmpdir()}, so a slower implementation is used: set TMPDIR to a folder from which programs may run (${faults.map(String).join('; ')})\n`,
    )
  return library
}

function unpacked<Library>(file: string): Library {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  try {
    const path = join(folder, 'library.node')
    writeFileSync(path, readFileSync(file), { flag: 'wx', mode: 0o500 })
    const library = { exports: {} }
    process.dlopen(library, path)
    return library.exports as Library
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
