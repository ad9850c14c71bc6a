/**
 * Programs with a small disk of their own, which really gets full: a file system in memory, in a mount namespace that
 * only they see.
 */
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const namespaces = [
  ['unshare', '--user', '--map-root-user', '--mount'],
  ['unshare', '--mount'],
]

/** Returns the words before those of a program that give it a disk of `bytes` at `path`, a new folder. */
export function withSmallDisk(path: string, bytes: number): string[] {
  mkdirSync(path, { recursive: true })
  return inMountNamespace('mount -t tmpfs -o size="$1",mode=700 tmpfs "$2" && shift 2', [String(bytes), path])
}

/**
 * Returns the words before those of a program that let it see what a script of the shell mounts, as root there. The
 * script takes its `args` away.
 */
export function inMountNamespace(script: string, args: readonly string[] = []): string[] {
  const words = (namespace: string[]) => [...namespace, 'sh', '-c', `${script} && exec "$@"`, 'sh', ...args]
  const namespace = namespaces.find((each) => Bun.spawnSync([...words(each), 'true']).exitCode === 0)
  if (namespace === undefined)
    throw new Error('a disk of its own needs the right to mount one: unprivileged user namespaces, or root')
  return words(namespace)
}

const BALLAST = 'ballast'

/** The disk at `path` as the process `pid` sees it. */
export function diskOf(pid: number, path: string) {
  const root = join(`/proc/${pid}/root`, path)
  return {
    root,
    get freeBytes() {
      const { bavail, bsize } = statfsSync(root)
      return bavail * bsize
    },
    /** Leave no room at all. */
    fill() {
      const { bavail, bsize } = statfsSync(root)
      writeFileSync(join(root, `${BALLAST}-${crypto.randomUUID()}`), new Uint8Array(bavail * bsize))
    },
    /** Make the room again that `fill` took. */
    free() {
      for (const name of readdirSync(root).filter((each) => each.startsWith(BALLAST))) rmSync(join(root, name))
    },
  }
}
