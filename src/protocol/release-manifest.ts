/** `latest.json` of a release: its version, its executables, and the migrations that it applies to a database. */
import { parsedJson } from '../base/parsed-json.ts'
import { parseVersion } from '../base/version.ts'
import { hasMembers, membersOf } from '../base/members.ts'

/** Longest manifest that is read. */
export const MAX_MANIFEST_BYTES = 64 * 1024
/** Largest executable that is downloaded. */
const MAX_EXECUTABLE_BYTES = 1024 ** 3
const MAX_PLATFORMS = 64
const MAX_MIGRATIONS = 4096

export interface ReleaseFile {
  /** Name of the file, which is beside the manifest. */
  file: string
  /** In bytes. */
  size: number
  /** In lower-case hex. */
  sha256: string
}

export interface ReleaseManifest {
  name: string
  version: string
  /** By platform, as `build.ts` names them: `linux-x64-musl`. */
  files: Readonly<Record<string, ReleaseFile>>
  /** Numbers of the migrations that this version knows. It refuses to open a database that has others. */
  migrations: readonly number[]
}

export type ManifestOutcome = { ok: true; manifest: ReleaseManifest } | { ok: false; fault: string }

/** Read a manifest of the software `name`. The fault names the first wrong member. */
export function parseReleaseManifest(text: string, name: string): ManifestOutcome {
  const value = parsedJson(text)
  if (!hasMembers(value)) return { ok: false, fault: 'is not a JSON object' }
  const fault = faultOfManifest(value, name)
  return fault === null ? { ok: true, manifest: value as unknown as ReleaseManifest } : { ok: false, fault }
}

function faultOfManifest({ name, version, files, migrations }: Record<string, unknown>, wanted: string): string | null {
  if (name !== wanted) return `has a "name" that is not ${wanted}`
  if (typeof version !== 'string' || parseVersion(version) === null)
    return 'has a "version" that is not of three numbers'
  if (!Array.isArray(migrations) || migrations.length > MAX_MIGRATIONS || !migrations.every(isCount))
    return 'has "migrations" that are not a list of numbers'
  if (!hasMembers(files) || Object.keys(files).length > MAX_PLATFORMS)
    return `has "files" that are not an object of at most ${MAX_PLATFORMS} platforms`
  const faulty = Object.keys(files).find((platform) => !isReleaseFile(files[platform]))
  return faulty === undefined ? null : `has "files" of which "${faulty.slice(0, 40)}" needs a file, a size and a sha256`
}

/** A name without folders, so that the file is always fetched from beside the manifest. */
function isReleaseFile(value: unknown): boolean {
  const { file, size, sha256 } = membersOf(value)
  return (
    typeof file === 'string' &&
    /^[A-Za-z0-9][\w.-]{0,99}$/.test(file) &&
    isCount(size) &&
    size > 0 &&
    size <= MAX_EXECUTABLE_BYTES &&
    typeof sha256 === 'string' &&
    /^[0-9a-f]{64}$/.test(sha256)
  )
}

/**
 * Returns the migrations of the version `from` that `to` does not know, in order: once they are applied, `to` cannot
 * open the database.
 */
export const unknownMigrations = (from: readonly number[], to: readonly number[]): number[] => {
  const known = new Set(to)
  return from.filter((number) => !known.has(number)).toSorted((a, b) => a - b)
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
