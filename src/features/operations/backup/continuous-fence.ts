/**
 * The fence with which a machine takes a chain over from another one: it creates the next segment itself. The other
 * machine then cannot store a segment under that number, and acknowledges nothing more.
 */
import type { Millis } from '../../../protocol/identifiers.ts'
import { PageList } from '../../../platform/database/page-list.ts'
import type { Archive } from './archive.ts'
import { digestOf, NUMBERS_LEFT_OUT, sealObject, segmentName } from './continuous-format.ts'
import { readObject, SegmentReader, segmentOf } from './continuous-reading.ts'
import { builtAfter, keyOf, type Built, type Source } from './continuous-restoring.ts'

interface Fence {
  /** Epoch in the lease of the machine that takes over. */
  epoch: number
  databasePages: number
  now: Millis
}

/** Make a segment without pages that follows `last`. Returns it sealed, and the state of the chain after it. */
export async function sealFence(
  key: Uint8Array,
  chain: string,
  last: Built,
  { epoch, databasePages, now }: Fence,
): Promise<{ sealed: Uint8Array; built: Built }> {
  const { next: number, digest: previous, seq, promise } = last
  const at = Math.max(now, last.at + 1)
  // The former holder may have stored later segments.
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
  const sealed = await sealObject(key, header, new PageList().bytes)
  return { sealed, built: { number, next, digest: digestOf(sealed), at, seq, epoch, promise } }
}

/**
 * Create an object unless its name is taken. Returns whether the name has this content, or null if it is uncertain
 * whether there is such an object.
 */
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
 * Returns the last segment before the first gap of a chain; null if there is none. Throws `OperatorError` if it cannot
 * be read.
 */
export async function lastSegmentOf(source: Source, chain: string): Promise<LastSegment | null> {
  const { archive, names } = source
  const last = names.get(chain)?.last ?? 0
  if (last === 0) return null
  const key = await keyOf(source, chain)
  // The last listed segment may follow a gap. Its header names a segment before the gap.
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
 * Keep the machine that wrote this chain from continuing it. Returns the state of the chain afterwards; null if the
 * chain has no segment. Throws as `lastSegmentOf`.
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
