/**
 * Loading native libraries, which the system does from a disk only.
 *
 * In the executable they are files inside of it. The runtime would unpack one under a name that anybody can tell
 * beforehand, and load whatever of the same size is there. Here each is written into a folder that is new, has a random
 * name and is for this user alone, and that goes again once the library is loaded.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * The first of the builds that loads; null when none does, which a warning tells where there are some. A build is what
 * `require` answers for it: its exports in the source, in the executable the path of the file.
 */
export function loadNative<Library extends object>(builds: Iterable<Library | string>): Library | null {
  const faults: unknown[] = []
  for (const build of builds) {
    if (typeof build !== 'string') return build
    try {
      return unpacked(build)
    } catch (error) {
      faults.push(error)
    }
  }
  if (faults.length > 0)
    process.stderr.write(
      `a native library cannot be loaded from ${tmpdir()}, and something slower stands in: set TMPDIR to a folder that programs may be run from (${faults.map(String).join('; ')})\n`,
    )
  return null
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
