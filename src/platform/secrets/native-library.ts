/**
 * Loads native libraries, which the system can load only from a disk.
 *
 * The executable contains them as embedded files, compressed. The runtime would unpack a library under a predictable
 * name, and would load any file of the same size that is already there. Here each library is written into a new folder
 * with a random name, which only this user can access. The folder is deleted once the library is loaded.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** This machine, as libraries name it: `linux-x64`, `darwin-arm64`, `win32-x64`. */
export const PLATFORM = `${process.platform}-${process.arch}`

/**
 * The builds of a library by platform, in the order in which they are tried. A build is what `require` returns for it:
 * the exports when run from source, and in the executable the path of the compressed file, or null if the build is for
 * another platform (`build.ts`).
 */
export type NativeBuilds<Library> = Readonly<Record<string, readonly (() => Library | string | null)[]>>

export interface Loaded<Library> {
  /** The exports, or null if no build could be loaded. */
  library: Library | null
  /** Why builds could not be loaded. */
  faults: readonly unknown[]
}

/** Returns the first build for this platform that loads. */
export function nativeBuild<Library extends object>(builds: NativeBuilds<Library>): Loaded<Library> {
  const faults: unknown[] = []
  for (const build of builds[PLATFORM] ?? []) {
    const found = installed(build)
    if (found === null) continue
    if (typeof found !== 'string') return { library: found, faults }
    try {
      return { library: unpacked(found), faults }
    } catch (error) {
      faults.push(error)
    }
  }
  return { library: null, faults }
}

function installed<Library>(build: () => Library | string | null): Library | string | null {
  try {
    return build()
  } catch {
    return null // not installed, or for another C library
  }
}

/**
 * Returns the first build that loads, or null if none does. Writes a warning if there are builds but none can be
 * loaded.
 */
export function nativeBuildOrNull<Library extends object>(builds: NativeBuilds<Library>): Library | null {
  const { library, faults } = nativeBuild(builds)
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
    writeFileSync(path, Bun.zstdDecompressSync(readFileSync(file)), { flag: 'wx', mode: 0o500 })
    const library = { exports: {} }
    process.dlopen(library, path)
    return library.exports as Library
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
