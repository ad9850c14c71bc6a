/**
 * Makes a Debian package without Debian's tools: an `ar` archive of the format version, a `tar` of the files that dpkg
 * reads, and a `tar` of the files that it installs.
 *
 * Source: deb(5); the ustar format of POSIX.1-1988.
 */

export interface PackedFile {
  /** Without a leading slash; the path of a folder ends with one. */
  path: string
  mode: number
  content: Uint8Array
}

const BLOCK_BYTES = 512
const encoder = new TextEncoder()

export const textFile = (path: string, text: string, mode = 0o644): PackedFile => ({
  path,
  mode,
  content: encoder.encode(text),
})

/** Returns the bytes of the package. `control` are the files that dpkg reads, `data` those that it installs. */
export function debianPackage(control: readonly PackedFile[], data: readonly PackedFile[], at: Date): Uint8Array {
  const seconds = Math.floor(at.getTime() / 1000)
  return Buffer.concat([
    encoder.encode('!<arch>\n'),
    ...member('debian-binary', encoder.encode('2.0\n'), seconds),
    ...member('control.tar.gz', Bun.gzipSync(tar(control, seconds)), seconds),
    ...member('data.tar.gz', Bun.gzipSync(tar(withFolders(data), seconds)), seconds),
  ])
}

function member(name: string, content: Uint8Array, seconds: number): Uint8Array[] {
  const header = [
    name.padEnd(16),
    String(seconds).padEnd(12),
    '0'.padEnd(6),
    '0'.padEnd(6),
    '100644'.padEnd(8),
    String(content.length).padEnd(10),
    '`\n',
  ]
  return [encoder.encode(header.join('')), content, encoder.encode(content.length % 2 === 0 ? '' : '\n')]
}

/** Add every folder above a file: dpkg removes only what it has installed, folders included. */
function withFolders(files: readonly PackedFile[]): PackedFile[] {
  const folders = files.flatMap(({ path }) =>
    [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index + 1)).filter((folder) => folder !== path),
  )
  const made = [...new Set(folders)].map((path) => ({ path, mode: 0o755, content: new Uint8Array() }))
  return [...made, ...files].toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

const tar = (files: readonly PackedFile[], seconds: number): Uint8Array<ArrayBuffer> =>
  Buffer.concat([
    ...files.flatMap((file) => [
      tarHeader(file, seconds),
      file.content,
      new Uint8Array(-file.content.length & (BLOCK_BYTES - 1)),
    ]),
    new Uint8Array(2 * BLOCK_BYTES),
  ])

function tarHeader({ path, mode, content }: PackedFile, seconds: number): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`
  const write = (at: number, text: string) => header.write(text, at, 'latin1')
  if (path.length > 98) throw new Error(`${path} is too long for a tar archive`)
  write(0, `./${path}`)
  write(100, octal(mode, 8))
  write(108, octal(0, 8))
  write(116, octal(0, 8))
  write(124, octal(content.length, 12))
  write(136, octal(seconds, 12))
  // The checksum counts its own field as spaces.
  write(148, ' '.repeat(8))
  write(156, path.endsWith('/') ? '5' : '0')
  write(257, 'ustar\x0000')
  write(265, 'root')
  write(297, 'root')
  write(
    148,
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
  )
  return header
}
