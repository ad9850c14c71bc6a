/**
 * Builds the database as of an instant from a continuous backup: a base, and the segments that follow it.
 *
 * A list of the bucket may lack the newest objects, so segments are requested by number until one is missing. A server
 * sends several at a time, so the last segments of a lost server may be there without the one before them: they were
 * never acknowledged. Any other listed segment with a higher number shows that one is missing.
 */
import { Database } from 'bun:sqlite'
import { ftruncateSync, writeSync } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { onDisk } from '../../../base/on-disk.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { PAGE_BYTES, pagesIn } from '../../../platform/database/page-list.ts'
import { databaseFiles, makeDataDirectory, restoringPath } from '../../../platform/files/data-directory.ts'
import { masterKeyFile } from '../../../platform/secrets/vault.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { wholeOf, type Archive } from './archive.ts'
import { blobList } from './backup-writing.ts'
import {
  CONTINUOUS,
  digestOf,
  headerOf,
  inChain,
  MAX_UNDER_WAY,
  numberAfter,
  openObject,
  parseObjectName,
  pieceName,
  segmentName,
  type BaseContent,
  type ObjectName,
  type SegmentHeader,
} from './continuous-format.ts'
import { wholeLease } from './continuous-lease.ts'
import { needed, readObject, SegmentReader, segmentOf, type Segment } from './continuous-reading.ts'
import {
  fetchBlobs,
  partOf,
  placeMasterKey,
  requireEmpty,
  type Fetched,
  type OtherBackups,
  type Part,
} from './restoring.ts'
import type { Unseal } from './sealing.ts'

export interface FetchedInstant extends Fetched {
  /** The chain, and its last segment that was applied. */
  from: string
  /** The instant of the last commit that was restored, at the latest. */
  at: Millis
  /** What to know about later commits, in a sentence; null if there is nothing to say. */
  remark: string | null
  /** The highest event number that any chain here knows of. */
  seq: number
}

export interface Source {
  archive: Archive
  part: Part
  names: Map<string, Chain>
}

export interface Chain {
  bases: (ObjectName & { name: string })[]
  /** The highest number of a listed segment. */
  last: number
  /** All segments below this number existed, as the bases show. */
  known: number
}

/**
 * Build the database as of `at` in the data directory of `config`, which uses SQLite, and fetch its blobs as far as
 * backups at the same place, or `others`, have them.
 *
 * Throws OperatorError if the directory already holds a database or another master key, if the backup does not reach
 * back to the instant, or if an object that is needed is missing or damaged.
 */
export async function fetchInstant(
  config: Config,
  archive: Archive,
  unseal: Unseal,
  { at, now, others = null }: { at: Millis; now: Millis; others?: OtherBackups | null },
): Promise<FetchedInstant> {
  requireEmpty(config)
  const source = await sourceOf(archive, unseal)
  const { part } = source
  const chosen = newestBase(source, at, now)
  makeDataDirectory(config)
  const databasePath = restoringPath(config)
  for (const path of databaseFiles(databasePath)) await rm(path, { force: true })
  const key = await keyOf(source, chosen.chain)
  const file = await open(databasePath, 'w+', 0o600)
  let built: Built & { nextAt: Millis | null }
  try {
    built = await build(source, key, file, chosen, at)
    await file.sync()
  } catch (error) {
    throw onDisk(error, dirname(databasePath))
  } finally {
    await file.close()
  }
  const masterKey = await part(inChain(chosen.chain, 'master-key'))
  if (masterKey !== null && config.signingKeyMasterKey === null)
    await placeMasterKey(masterKeyFile(config.dataDir), masterKey)
  const database = new Database(databasePath, { readonly: true })
  try {
    return {
      databasePath,
      missingBlobs: await fetchBlobs(config, blobList(database), part, others),
      from: `${chosen.chain} ${built.number}`,
      at: built.at,
      remark:
        built.nextAt !== null && built.nextAt > now
          ? `the next commit is dated ${new Date(built.nextAt).toISOString()}: ${CLOCK_AHEAD}`
          : null,
      seq: await highestSeq(source, built.seq),
    }
  } finally {
    database.close()
  }
}

/** Lists what the destination of a continuous backup holds now. */
export async function sourceOf(archive: Archive, unseal: Unseal): Promise<Source> {
  return { archive, part: partOf(archive, unseal), names: await listed(archive) }
}

async function listed(archive: Archive): Promise<Source['names']> {
  const chains: Source['names'] = new Map()
  for await (const name of archive.names(CONTINUOUS)) {
    const found = parseObjectName(name)
    if (found === null) continue
    const chain = chains.get(found.chain) ?? { bases: [], last: 0, known: 0 }
    chains.set(found.chain, chain)
    if (found.kind === 'segment') chain.last = Math.max(chain.last, found.number)
    if (found.kind !== 'base') continue
    chain.bases.push({ ...found, name })
    chain.known = Math.max(chain.known, found.number)
  }
  return chains
}

/** Why commits may have an instant that is yet to come. Each has a later one than the commit before it. */
const CLOCK_AHEAD =
  'the clock of the server was ahead, and what it committed afterwards has still later instants. To restore all of it, use --at with a later instant'

function newestBase({ names }: Source, at: Millis, now: Millis): Chain['bases'][number] {
  const bases = Array.from(names.values())
    .flatMap((chain) => chain.bases)
    .sort((a, b) => a.at - b.at)
  const [oldest] = bases
  if (oldest === undefined) throw new OperatorError('there is no continuous backup at this destination')
  const chosen = bases.findLast((base) => base.at <= at)
  if (chosen === undefined)
    throw new OperatorError(
      `the continuous backup reaches back only to ${new Date(oldest.at).toISOString()}${oldest.at > now ? `, which is in the future: ${CLOCK_AHEAD}` : ''}`,
    )
  return chosen
}

export async function keyOf({ part }: Source, chain: string): Promise<Uint8Array> {
  const content = await part(inChain(chain, 'key'))
  if (content === null) throw new OperatorError(`${inChain(chain, 'key')} is missing`)
  return wholeOf(content, inChain(chain, 'key'))
}

/** The last segment that was applied. */
export interface Built {
  number: number
  /** Number of the segment that follows. */
  next: number
  digest: string
  at: Millis
  seq: number
  epoch: number
  /** `sync`: nothing after this segment was acknowledged before the chain had it. */
  promise: 'async' | 'sync'
}

export async function build(
  source: Source,
  key: Uint8Array,
  file: FileHandle,
  chosen: Chain['bases'][number],
  at: Millis,
): Promise<Built & { nextAt: Millis | null }> {
  const { archive } = source
  const { chain } = chosen
  const base = await readBase(archive, key, chosen)
  let offset = 0
  for (const [index, digest] of base.content.pieces.entries()) {
    const name = pieceName(chain, base.header.number, (base.content.first ?? 0) + index)
    const bytes = await needed(archive, name)
    if (digestOf(bytes) !== digest) throw new OperatorError(`${name} is damaged`)
    const { content } = await openObject(key, bytes, name, 'piece')
    writeAt(file.fd, content, offset)
    offset += content.byteLength
  }
  let built: Built = {
    number: base.header.number - 1,
    next: base.header.number,
    digest: base.header.previous,
    at: base.header.at,
    seq: 0,
    epoch: 0,
    promise: 'async',
  }
  let nextAt: Millis | null = null
  const segments = new SegmentReader(archive, key, chain)
  // Each segment is from a later instant than the previous one.
  while (built.next <= base.header.complete || built.at < at) {
    const number = built.next
    const name = segmentName(chain, number)
    const isInBase = number <= base.header.complete
    try {
      const found = await segments.read(number)
      if (found === null) {
        if (isInBase || (await isMissing(source, key, chain, number))) throw new OperatorError(`${name} is missing`)
        break
      }
      requireOrder(found.header, built, name)
      if (!isInBase && found.header.at > at) {
        nextAt = found.header.at
        break
      }
      built = apply(file, found, built)
    } catch (error) {
      throw isInBase ? error : withRemedy(error, built.at)
    }
  }
  return { ...built, nextAt }
}

/** Whether a segment that is not there was lost: it was there before, or a later one was acknowledged. */
async function isMissing({ archive, names }: Source, key: Uint8Array, chain: string, number: number): Promise<boolean> {
  const { last, known } = names.get(chain)!
  if (number < known || last >= number + MAX_UNDER_WAY) return true
  const lease = await wholeLease(archive).catch(unlessDamaged)
  // A segment that was stored since it was requested is not missing.
  if (lease?.chain === chain && (lease.through ?? 0) >= number)
    return (await segmentOf(archive, key, segmentName(chain, number))) === null
  for (let later = number + 1; later <= last; later++) {
    const found = await segmentOf(archive, key, segmentName(chain, later))
    if (found !== null && (found.header.through ?? later - 1) >= number) return true
  }
  return false
}

/** Throws `OperatorError` unless the segment follows the last one that was applied, and its epoch is no lower. */
export function requireOrder({ previous, epoch = 0 }: SegmentHeader, built: Built, name: string): void {
  if (previous !== built.digest || epoch < built.epoch)
    throw new OperatorError(`${name} does not follow the segment before it`)
}

/**
 * Write the pages of a segment, in one turn of the event loop. Repeating this does no harm if all segments that follow
 * are applied again too.
 */
export function apply({ fd }: FileHandle, segment: Segment, { at }: Built): Built {
  for (const { number, page } of pagesIn(segment.content)) writeAt(fd, page, (number - 1) * PAGE_BYTES)
  ftruncateSync(fd, segment.header.databasePages * PAGE_BYTES)
  const built = builtAfter(segment)
  return { ...built, at: Math.max(built.at, at) }
}

/** Returns the state of a chain whose last segment is this one. */
export function builtAfter({ header, digest }: Segment): Built {
  const { number, at, seq, epoch = 0, promise = 'async' } = header
  return { number, next: numberAfter(header), digest, at, seq, epoch, promise }
}

/** Returns the newest instant of any readable base or last segment at this destination; 0 if there is none. */
export async function newestInstant(archive: Archive): Promise<Millis> {
  let newest = 0
  for (const [chain, { bases, last }] of await listed(archive)) {
    const content = last === 0 ? null : await readObject(archive, segmentName(chain, last)).catch(unlessDamaged)
    const instants = [content && headerOf(content)?.at, ...bases.map(({ at }) => at)]
    for (const at of instants) if (Number.isSafeInteger(at) && at! > newest) newest = at!
  }
  return newest
}

function unlessDamaged(error: unknown): null {
  if (error instanceof OperatorError) return null
  throw error
}

const withRemedy = (error: unknown, at: Millis): unknown =>
  error instanceof OperatorError
    ? new OperatorError(`${error.message}; restore what came before it with --at ${new Date(at).toISOString()}`, {
        cause: error,
      })
    : error

async function readBase(archive: Archive, key: Uint8Array, { name, at }: Chain['bases'][number]) {
  const { header, content } = await openObject(key, await needed(archive, name), name, 'base')
  if (header.at !== at) throw new OperatorError(`${name} has the content of another object`)
  return { header, content: JSON.parse(Buffer.from(content).toString()) as BaseContent }
}

function writeAt(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.byteLength;)
    done += writeSync(file, bytes, done, bytes.byteLength - done, position + done)
}

/**
 * Returns the highest event number at the destination. Events after the restored instant count too, because relays have
 * seen them. Damaged segments do not: the event log continues above the clock in any case.
 */
async function highestSeq(source: Source, seq: number): Promise<number> {
  let highest = seq
  for (const [chain, { last }] of source.names) {
    try {
      const name = segmentName(chain, last)
      const { header } = await openObject(
        await keyOf(source, chain),
        await needed(source.archive, name),
        name,
        'segment',
      )
      highest = Math.max(highest, header.seq)
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
    }
  }
  return highest
}
