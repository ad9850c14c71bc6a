/**
 * The objects of a backup, by name:
 *
 * - `snapshots/<time>/database`: the whole database as of one instant;
 * - `snapshots/<time>/master-key`: the master key, if it is stored beside the database;
 * - `snapshots/<time>/blobs`: the CIDs of the blobs that the database references, one per line;
 * - `snapshots/<time>/manifest.json`: written last, so a snapshot without it is incomplete and is ignored;
 * - `blobs/<shard>/<cid>`: a blob, stored once for all snapshots;
 * - `rehearsal.json`: when a restore was last rehearsed, and whether it succeeded.
 */
import type { Archive } from './archive.ts'
import { readWhole } from './archive.ts'

export interface Manifest {
  format: 1
  /** Time in RFC 3339 format. */
  createdAt: string
  version: string
  publicUrl: string
  serverDid: string
  headSeq: number
  /** Size and digest of the database before encryption. */
  database: { bytes: number; sha256: string }
  blobs: number
  /** CIDs of blobs that have a row, but whose file was missing or damaged. */
  missingBlobs: string[]
}

const SNAPSHOTS = 'snapshots/'
const MANIFEST = 'manifest.json'

/** Returns the name of a part, or the common prefix of all parts if none is given. */
export const inSnapshot = (snapshot: string, part: 'database' | 'master-key' | 'blobs' | '' = '') =>
  `${SNAPSHOTS}${snapshot}/${part}`
export const manifestName = (snapshot: string) => inSnapshot(snapshot) + MANIFEST
export const BLOBS = 'blobs/'
export const blobName = (cid: string) => `${BLOBS}${cid.slice(-2)}/${cid}`

/** Returns a name such as `20261121T093000Z`, which sorts by time and is a valid file name on every system. */
export const snapshotName = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+/g, '')

/** Returns the names of the complete snapshots, oldest first. */
export async function listSnapshots(archive: Archive): Promise<string[]> {
  const names: string[] = []
  for await (const name of archive.names(SNAPSHOTS))
    if (name.endsWith(`/${MANIFEST}`)) names.push(name.slice(SNAPSHOTS.length, -MANIFEST.length - 1))
  return names.sort()
}

/** Returns null if the snapshot is incomplete or does not exist. */
export async function readManifest(archive: Archive, snapshot: string): Promise<Manifest | null> {
  const bytes = await readWhole(archive, manifestName(snapshot))
  return bytes === null ? null : (JSON.parse(Buffer.from(bytes).toString()) as Manifest)
}

/** Split a stream into lines, without their line ends. Buffers at most one chunk and one line. */
export async function* linesOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of content) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
  if (rest !== '') yield rest
}
