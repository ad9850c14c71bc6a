/**
 * Moods: worlds that come back to one kind of trouble again and again, because what some faults need happens too seldom
 * where everything may happen. One world in four has one, if it is of several nodes.
 */

export interface Mood {
  name: string
  /** Faults that befall the world; any if missing. */
  faults?: readonly string[]
  /** How probable it is that a message is lost, and sent again. */
  lossShare?: number
  /** How many different numbers nodes draw by lot. */
  lots?: number
  /** Most things that a client does, after which the world is quiet. */
  maxActs?: number
  /** Longest time that a client waits between two of its doings. */
  tempoMillis?: number
  /** How long clients act. */
  millis?: number
  /** How long faults begin, if that is not as long as clients act. */
  faultMillis?: number
  /** Outages are longer than nodes and database wait for each other. */
  isLong?: boolean
}

export const moods: readonly Mood[] = [
  // What nodes draw by lot is often the same.
  { name: 'lots', lots: 8, faults: ['crash', 'freeze', 'cut'] },
  // Messages of different connections overtake each other.
  { name: 'losses', lossShare: 0.08, tempoMillis: 20, faults: [] },
  // After a fault at the end, nobody does anything that would mend it.
  {
    name: 'last-words',
    maxActs: 1,
    faultMillis: 300,
    faults: ['crashAtCommit', 'crashAtCommit', 'interruptedCommit', 'cut'],
  },
  // Nodes take leases that others still think they have.
  { name: 'leases', millis: 4000, tempoMillis: 120, faults: ['unheard'] },
  { name: 'outages', isLong: true, faults: ['silenceAtCommit'] },
]

export function moodOf(seed: number): Mood | null {
  if (seed % 4 !== 1 || isOnFile(seed)) return null
  const at = (seed - 1) / 4
  return moods[(at + Math.floor(at / moods.length)) % moods.length]!
}

/** One world in five is of a server on SQLite. */
export const isOnFile = (seed: number): boolean => seed % 5 === 4
