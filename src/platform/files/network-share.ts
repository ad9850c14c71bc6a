/**
 * Detects folders on network shares. SQLite and our own lock rely on locks and flushes that shares promise but often do
 * not honour, so that a second server, a broken line or a power cut may damage the database.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** A file system that is mounted somewhere. */
export interface Mount {
  at: string
  type: string
}

const MOUNT_TIMEOUT_MILLIS = 2000

/**
 * Types of file systems whose bytes are on another machine, or on the host of a virtual one. Other types that begin
 * with `fuse` may well be local.
 */
const plainTypes =
  'nfs nfs4 cifs smb3 smbfs 9p afs afpfs webdav ncpfs ceph lustre gpfs beegfs vboxsf prl_fs vmhgfs'.split(' ')
const fuseNames =
  'sshfs glusterfs ceph ceph-fuse rclone s3fs gcsfuse goofys mountpoint-s3 blobfuse blobfuse2 juicefs seaweedfs mfs davfs curlftpfs smbnetfs vmhgfs-fuse'.split(
    ' ',
  )
const sharedTypes: ReadonlySet<string> = new Set([...plainTypes, ...fuseNames.map((name) => `fuse.${name}`)])

/** Reads the mounts of `/proc/self/mountinfo`, where spaces are written as `\040`. Source: proc_pid_mountinfo(5). */
export const mountsOfLinux = (text: string): Mount[] =>
  text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ', 2)
    const [at, type] = [before.split(' ')[4], after.split(' ')[0]]
    return at === undefined || !type
      ? []
      : [{ at: at.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(parseInt(code, 8))), type }]
  })

/** Reads the output of `mount` on macOS and BSD: `//user@host/share on /Volumes/share (smbfs, nodev, nosuid)`. */
export const mountsOfBsd = (text: string): Mount[] =>
  text.split('\n').flatMap((line) => {
    const [start, end] = [line.indexOf(' on '), line.lastIndexOf(' (')]
    const type = /^[\w.-]+/.exec(line.slice(end + 2))?.[0]
    return start < 0 || end < start || type === undefined ? [] : [{ at: line.slice(start + 4, end), type }]
  })

function mounts(): Mount[] {
  if (process.platform === 'linux')
    return existsSync('/proc/self/mountinfo') ? mountsOfLinux(readFileSync('/proc/self/mountinfo', 'utf8')) : []
  if (process.platform === 'win32' || !existsSync('/sbin/mount')) return []
  return mountsOfBsd(Bun.spawnSync(['/sbin/mount'], { timeout: MOUNT_TIMEOUT_MILLIS }).stdout.toString())
}

/**
 * Returns the type of the network share that holds a path, such as `nfs4`; null if it is on a disk, or if the system
 * does not tell. The path need not exist yet.
 */
export function networkShareOf(path: string): string | null {
  const there = nearestThere(resolve(path))
  if (process.platform === 'win32') return there.startsWith('\\\\') ? 'UNC' : null
  const type = mountOf(there, mounts())?.type
  return type !== undefined && sharedTypes.has(type) ? type : null
}

/** Returns the mount that holds a path. Of several at the same place, the last one hides the others. */
export function mountOf(path: string, all: readonly Mount[]): Mount | null {
  let found: Mount | null = null
  for (const mount of all) {
    const holds = path === mount.at || path.startsWith(mount.at === '/' ? '/' : `${mount.at}/`)
    if (holds && mount.at.length >= (found?.at.length ?? 0)) found = mount
  }
  return found
}

const nearestThere = (path: string): string =>
  existsSync(path) || dirname(path) === path ? realpathSync.native(path) : nearestThere(dirname(path))
