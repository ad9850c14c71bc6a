/**
 * The objects of a backup, by name:
 *
 * - `snapshots/<time>/begun-<id>`: marks the name as taken by a backup that is in progress; deleted at the end;
 * - `snapshots/<time>/database`: the whole database as of one instant;
 * - `snapshots/<time>/master-key`: the master key, if it is stored beside the database;
 * - `snapshots/<time>/blobs`: the CIDs of the blobs that the database references, one per line;
 * - `snapshots/<time>/manifest.json`: written last, so a snapshot without it is incomplete and is ignored;
 * - `blobs/<shard>/<cid>`: a blob, stored once for all snapshots;
 * - `rehearsal.json`: when a restore was last rehearsed, and whether it succeeded.
 */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Archive } from './archive.ts'
import { bytesOf, DamagedObject, jsonObject, readWhole } from './archive.ts'

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
/** Maximum size of a manifest, which may list all blobs as missing. */
const MAX_MANIFEST_BYTES = 512 * 1024 ** 2
/** Maximum step to a later name. It is random, so that backups that meet do not meet again and again. */
const MAX_SKIPPED_SECS = 4

/** The name prefix of all parts, without the last slash. */
export const snapshotFolder = (snapshot: string) => SNAPSHOTS + snapshot
/** Returns the name of a part, or the common prefix of all parts if none is given. */
export const inSnapshot = (snapshot: string, part: 'database' | 'master-key' | 'blobs' | '' = '') =>
  `${SNAPSHOTS}${snapshot}/${part}`
export const manifestName = (snapshot: string) => inSnapshot(snapshot) + MANIFEST
export const BLOBS = 'blobs/'
export const blobName = (cid: string) => `${BLOBS}${cid.slice(-2)}/${cid}`

/** Returns a name such as `20261121T093000Z`, which sorts by time and is a valid file name on every system. */
export const snapshotName = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+/g, '')

/** A snapshot name that a backup has taken before writing anything else. */
export interface Begun {
  snapshot: string
  /** Name of the mark, which is deleted at the end. */
  mark: string
}

/**
 * Take the name of a snapshot: that of `now`, or of a later second if the name exists or another backup is taking it at
 * the same time. Each backup writes its mark before it looks for others, so at least one of two sees the other.
 */
export async function beginSnapshot(archive: Archive, now: Date): Promise<Begun> {
  for (let at = now.getTime(); ; at += Math.ceil(Math.random() * MAX_SKIPPED_SECS) * 1000) {
    const snapshot = snapshotName(new Date(at))
    const mark = `${snapshotFolder(snapshot)}/begun-${crypto.randomUUID()}`
    await archive.write(mark, bytesOf(now.toISOString()))
    const names = await Array.fromAsync(archive.names(inSnapshot(snapshot)))
    if (names.length === 1 && names[0] === mark) return { snapshot, mark }
    await archive.delete(mark)
  }
}

/** Returns the names of all snapshots, oldest first. A backup of an incomplete one is in progress, or was killed. */
export async function snapshotsIn(archive: Archive): Promise<{ complete: string[]; incomplete: string[] }> {
  const found = new Map<string, boolean>()
  for await (const name of archive.names(SNAPSHOTS)) {
    const [snapshot = '', ...part] = name.slice(SNAPSHOTS.length).split('/')
    if (part.length > 0) found.set(snapshot, found.get(snapshot) === true || part.join('/') === MANIFEST)
  }
  const named = (isComplete: boolean) =>
    Array.from(found)
      .filter(([, complete]) => complete === isComplete)
      .map(([snapshot]) => snapshot)
      .sort()
  return { complete: named(true), incomplete: named(false) }
}

/** Returns the time in the name of a snapshot, or NaN for a name of another form. */
export const snapshotMillis = (snapshot: string): Millis =>
  Date.parse(snapshot.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))

/** Returns null if the snapshot is incomplete or does not exist. Throws `DamagedObject`. */
export async function readManifest(archive: Archive, snapshot: string): Promise<Manifest | null> {
  const name = manifestName(snapshot)
  const bytes = await readWhole(archive, name, MAX_MANIFEST_BYTES)
  return bytes && jsonObject<Manifest>(name, bytes, ({ database }) => typeof database?.sha256 === 'string')
}

/** The server whose backups are meant. */
export type Owner = Pick<Config, 'publicUrl' | 'serverDid' | 'formerUrls'>

/** Returns null if the manifest is damaged or missing. */
const intactManifest = (archive: Archive, snapshot: string): Promise<Manifest | null> =>
  readManifest(archive, snapshot).catch((error: unknown) => {
    if (error instanceof DamagedObject) return null
    throw error
  })

/** Whether a snapshot belongs to another server: two servers may have been given one destination by mistake. */
export async function isOfAnother(archive: Archive, snapshot: string, owner: Owner): Promise<boolean> {
  const manifest = await intactManifest(archive, snapshot)
  if (manifest === null) return false
  const { publicUrl, serverDid } = manifest
  return serverDid !== owner.serverDid && ![owner.publicUrl, ...owner.formerUrls].includes(publicUrl)
}

/** How far ahead of the clock a snapshot may be named before that clock, or the one that named it, counts as wrong. */
const MAX_AHEAD_MILLIS = DAY_MILLIS

/**
 * Returns the newest complete snapshot of this server (`own`) and of any server (`any`). Ignores snapshots that are
 * named later than `latest`; without it, none is ignored, and names count only as long as no clock seems wrong.
 */
export async function newestSnapshots(
  archive: Archive,
  owner: Owner,
  { now, latest }: { now: Millis; latest?: string },
): Promise<{ own?: string; any?: string }> {
  const { complete } = await snapshotsIn(archive)
  const known = complete.filter((name) => latest === undefined || name <= latest)
  const newestFirst = await fromNewest(archive, known, snapshotName(new Date(now + MAX_AHEAD_MILLIS)))
  for (const own of newestFirst) if (!(await isOfAnother(archive, own, owner))) return { own, any: newestFirst[0] }
  return { any: newestFirst[0] }
}

/** Event numbers only grow, so they show which snapshot is newer even if one is named later than `plausible`. */
async function fromNewest(archive: Archive, names: readonly string[], plausible: string): Promise<string[]> {
  const byName = names.toReversed()
  if (byName[0] === undefined || byName[0] <= plausible) return byName
  const heads = new Map<string, number>()
  for (const name of byName) heads.set(name, (await intactManifest(archive, name))?.headSeq ?? 0)
  return byName.toSorted((a, b) => heads.get(b)! - heads.get(a)! || Number(a > plausible) - Number(b > plausible))
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
