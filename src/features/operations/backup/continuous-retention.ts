/** Deletes what no restore to a kept instant needs: all before the newest base that is older than those instants. */
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Archive } from './archive.ts'
import { CONTINUOUS, parseObjectName, type ObjectName } from './continuous-format.ts'

/** `keptFrom`: the earliest instant to keep. Returns how many objects were deleted. */
export async function dropUnneeded(archive: Archive, keptFrom: Millis): Promise<number> {
  const bases: ObjectName[] = []
  for await (const name of archive.names(CONTINUOUS)) {
    const found = parseObjectName(name)
    if (found?.kind === 'base') bases.push(found)
  }
  const first = bases
    .filter(({ at }) => at <= keptFrom)
    .reduce<ObjectName | null>((newest, base) => (newest === null || base.at > newest.at ? base : newest), null)
  if (first === null) return 0
  const laterChains = new Set(bases.filter(({ at }) => at > first.at).map(({ chain }) => chain))
  const isNeeded = ({ chain, kind, number }: ObjectName): boolean =>
    chain === first.chain ? kind === 'key' || number >= first.number : laterChains.has(chain) || chain > first.chain
  const unneeded: { name: string; kind: ObjectName['kind'] }[] = []
  for await (const name of archive.names(CONTINUOUS)) {
    const found = parseObjectName(name)
    if (found !== null && !isNeeded(found)) unneeded.push({ name, kind: found.kind })
  }
  // A base goes first, and what it needs after it, so that an interruption leaves none that lacks something.
  const inOrder = unneeded.toSorted((a, b) => Number(b.kind === 'base') - Number(a.kind === 'base'))
  for (const { name } of inOrder) await archive.delete(name)
  return inOrder.length
}
