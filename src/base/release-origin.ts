/** Where the releases of this executable come from, and who signs them. `npm run release` compiles it in. */
import { existsSync } from 'node:fs'

export interface ReleaseOrigin {
  /** The folder of the newest release, without a slash at its end. */
  url: string
  /** The line of a minisign public key: `RW…`. */
  publicKey: string
  /** The platform that the executable was built for, as the manifest names it. */
  platform: string
}

declare const HOLDFAST_RELEASE: ReleaseOrigin | undefined

/** Null in an executable that `npm run build` made, and in the source. */
export const releaseOrigin: ReleaseOrigin | null = typeof HOLDFAST_RELEASE === 'undefined' ? null : HOLDFAST_RELEASE

/** Returns what `build.ts` has to define. */
export const releaseDefinition = (origin: ReleaseOrigin): Record<string, string> => ({
  HOLDFAST_RELEASE: JSON.stringify(origin),
})

/** The loaders of programs for musl, and of programs for the other C library, which may be there besides. */
const muslLoaders = ['/lib/ld-musl-x86_64.so.1', '/lib/ld-musl-aarch64.so.1']
const glibcLoaders = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1']

/** Returns the platform of this machine, as `build.ts` and the manifest of a release name it. */
export function ownPlatform(): string {
  const { platform, arch } = process
  if (platform === 'win32') return `windows-${arch}`
  const isMusl =
    platform === 'linux' &&
    muslLoaders.some((path) => existsSync(path)) &&
    !glibcLoaders.some((path) => existsSync(path))
  return `${platform}-${arch}${isMusl ? '-musl' : ''}`
}
