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
export async function createNew(archive: Archive, name: string, content: Uint8Array): Promise<boolean | null> {
  if (await archive.writeNew(name, content)) return true
  const found = await readObject(archive, name)
  return found && Buffer.from(found).equals(content)
}

/**
 * Keep the machine that has written this chain from continuing it. Returns the instant of its last segment, 0 if there
 * is none. Throws `OperatorError` if the end of the chain cannot be read.
 */
export async function endChain(
  source: Source,
  chain: string,
  { epoch, now }: Omit<Fence, 'databasePages'>,
): Promise<Millis> {
  const { archive, names } = source
  const last = names.get(chain)?.last ?? 0
  if (last === 0) return 0
  const key = await keyOf(source, chain)
  // The last segment that is listed may follow a gap, and names a segment that does not.
  const listed = await segmentOf(archive, key, segmentName(chain, last))
  const known = listed?.header.through ?? last
  const first = known === last ? listed : await segmentOf(archive, key, segmentName(chain, known))
  if (first === null) return 0
  const segments = new SegmentReader(archive, key, chain)
  let end = builtAfter(first)
  let { databasePages } = first.header
  for (;;) {
    const found = await segments.read(end.next)
    if (found !== null) {
      end = builtAfter(found)
      ;({ databasePages } = found.header)
      continue
    }
    const fence = await sealFence(key, chain, end, { epoch: Math.max(epoch, end.epoch), databasePages, now })
    if (await createNew(archive, segmentName(chain, end.next), fence.sealed)) return fence.built.at
  }
}
