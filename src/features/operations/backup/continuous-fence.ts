/**
 * Ends the part of a chain that another machine has written: the next segment is created under its number, so that the
 * other machine cannot store it, and acknowledges nothing any more.
 */
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Archive } from './archive.ts'
import { digestOf, encodePages, NUMBERS_LEFT_OUT, sealObject, segmentName } from './continuous-format.ts'
import { readObject, SegmentReader, segmentOf } from './continuous-reading.ts'
import { builtAfter, keyOf, type Built, type Source } from './continuous-restoring.ts'

interface Fence {
  /** Of the lease of the machine that takes over. */
  epoch: number
  databasePages: number
  now: Millis
}

/** A segment without pages after `last`. Returns it, and what the chain has with it. */
export async function sealFence(
  key: Uint8Array,
  chain: string,
  last: Built,
  { epoch, databasePages, now }: Fence,
): Promise<{ sealed: Uint8Array; built: Built }> {
  const { next: number, digest: previous, seq, promise } = last
  const at = Math.max(now, last.at + 1)
  // The former holder may have stored segments after this one.
  const next = number + 1 + NUMBERS_LEFT_OUT
  const header = {
    kind: 'segment',
    chain,
    number,
    previous,
    at,
    seq,
    databasePages,
    epoch,
    promise,
    next,
    through: last.number,
  } as const
  const sealed = await sealObject(key, header, encodePages(new Map()))
  return { sealed, built: { number, next, digest: digestOf(sealed), at, seq, epoch, promise } }
}

/** Returns whether the name is that of this content; null if neither this nor another one is there for certain. */
export async function createOrCompare(archive: Archive, name: string, content: Uint8Array): Promise<boolean | null> {
  if (await archive.writeNew(name, content)) return true
  const found = await readObject(archive, name)
  return found && Buffer.from(found).equals(content)
}

interface LastSegment {
  key: Uint8Array
  built: Built
  databasePages: number
}

/**
 * The last segment of a chain that has all before it; null if there is none. Throws `OperatorError` if it cannot be
 * read.
 */
export async function lastSegmentOf(source: Source, chain: string): Promise<LastSegment | null> {
  const { archive, names } = source
  const last = names.get(chain)?.last ?? 0
  if (last === 0) return null
  const key = await keyOf(source, chain)
  // The last segment that is listed may follow a gap, and names a segment that does not.
  const listed = await segmentOf(archive, key, segmentName(chain, last))
  const known = listed?.header.through ?? last
  let found = known === last ? listed : await segmentOf(archive, key, segmentName(chain, known))
  if (found === null) return null
  const segments = new SegmentReader(archive, key, chain)
  for (;;) {
    const built = builtAfter(found)
    const next = await segments.read(built.next)
    if (next === null) return { key, built, databasePages: found.header.databasePages }
    found = next
  }
}

/**
 * Keep the machine that has written this chain from continuing it. Returns what the chain has then, or null if it has
 * no segment. Throws as `lastSegmentOf`.
 */
export async function endChain(
  source: Source,
  chain: string,
  { epoch, now }: Omit<Fence, 'databasePages'>,
): Promise<Built | null> {
  for (;;) {
    const last = await lastSegmentOf(source, chain)
    if (last === null) return null
    const { key, built, databasePages } = last
    const fence = await sealFence(key, chain, built, { epoch: Math.max(epoch, built.epoch), databasePages, now })
    if (await createOrCompare(source.archive, segmentName(chain, built.next), fence.sealed)) return fence.built
  }
}
