/** Deletes what no restore to a kept instant needs: all before the newest base that is older than those instants. */
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Archive } from './archive.ts'
import { CONTINUOUS, parseObjectName, type ObjectName } from './continuous-format.ts'

interface Kept {
  now: Millis
  /** How far back in time restores must be able to reach. */
  keptMillis: number
  /**
   * A longer gap between two bases counts as only this long: the clock may have been ahead, and what a wrong clock
   * deletes is lost.
   */
  maxGapMillis: number
}

/** Returns how many objects were deleted. */
export async function dropUnneeded(archive: Archive, kept: Kept): Promise<number> {
  await archive.deleteParts(CONTINUOUS)
  const bases: ObjectName[] = []
  for await (const name of archive.names(CONTINUOUS)) {
    const found = parseObjectName(name)
    if (found?.kind === 'base') bases.push(found)
  }
  const first = oldestNeeded(bases, kept)
  if (first === null) return 0
  const laterChains = new Set(bases.filter(({ at }) => at > first.at).map(({ chain }) => chain))
  const isNeeded = ({ chain, kind, number }: ObjectName): boolean =>
    chain === first.chain ? kind === 'key' || number >= first.number : laterChains.has(chain) || chain > first.chain
  const unneeded: { name: string; kind: ObjectName['kind'] }[] = []
  for await (const name of archive.names(CONTINUOUS)) {
    const found = parseObjectName(name)
    if (found !== null && !isNeeded(found)) unneeded.push({ name, kind: found.kind })
  }
  // Delete each base before the objects it needs, so that an interruption leaves no base that lacks something.
  const inOrder = unneeded.toSorted((a, b) => Number(b.kind === 'base') - Number(a.kind === 'base'))
  for (const { name } of inOrder) await archive.delete(name)
  return inOrder.length
}

/** Returns the newest base that is older than all kept instants; null if there is none. */
function oldestNeeded(bases: readonly ObjectName[], { now, keptMillis, maxGapMillis }: Kept): ObjectName | null {
  let age = 0
  let later = now
  for (const base of bases.toSorted((a, b) => b.at - a.at)) {
    age += Math.max(0, Math.min(later - base.at, maxGapMillis))
    if (age >= keptMillis) return base
    later = base.at
  }
  return null
}
