/**
 * What a backup is made of, by name:
 *
 * - `snapshots/<time>/database`, the whole database as of one instant;
 * - `snapshots/<time>/master-key`, when the key is kept beside the database;
 * - `snapshots/<time>/blobs`, the blobs that the database speaks of, a line each;
 * - `snapshots/<time>/manifest.json`, written last: a snapshot without it was cut off and does not count;
 * - `blobs/<shard>/<cid>`, kept once for all snapshots.
 */
import type { Archive } from './archive.ts'
import { readWhole } from './archive.ts'

export interface Manifest {
  format: 1
  /** RFC 3339. */
  createdAt: string
  version: string
  publicUrl: string
  serverDid: string
  headSeq: number
  /** Of the database as it was, before it was sealed. */
  database: { bytes: number; sha256: string }
  blobs: number
  /** Blobs that a row speaks of and that were not there, or not whole. */
  missingBlobs: string[]
}

const SNAPSHOTS = 'snapshots/'
const MANIFEST = 'manifest.json'

/** The name of a part, or what the names of all parts begin with. */
export const inSnapshot = (snapshot: string, part: 'database' | 'master-key' | 'blobs' | '' = '') => `${SNAPSHOTS}${snapshot}/${part}`
export const manifestName = (snapshot: string) => inSnapshot(snapshot) + MANIFEST
export const BLOBS = 'blobs/'
export const blobName = (cid: string) => `${BLOBS}${cid.slice(-2)}/${cid}`

/** `20261121T093000Z`: sorts by time, and is a file name everywhere. */
export const snapshotName = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+/g, '')

/** Complete snapshots, oldest first. */
export async function listSnapshots(archive: Archive): Promise<string[]> {
  const names: string[] = []
  for await (const name of archive.names(SNAPSHOTS))
    if (name.endsWith(`/${MANIFEST}`)) names.push(name.slice(SNAPSHOTS.length, -MANIFEST.length - 1))
  return names.sort()
}

export async function readManifest(archive: Archive, snapshot: string): Promise<Manifest | null> {
  const bytes = await readWhole(archive, manifestName(snapshot))
  return bytes === null ? null : (JSON.parse(Buffer.from(bytes).toString()) as Manifest)
}

/** The lines of a list, without their ends. Holds one chunk and one line. */
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
