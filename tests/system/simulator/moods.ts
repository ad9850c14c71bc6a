/**
 * Kinds of worlds. Which one a seed makes depends on the seed alone.
 *
 * Some worlds are in a mood: they come back to one kind of trouble again and again, because what some faults need
 * happens too seldom where everything may happen.
 */

export interface Mood {
  name: string
  /** Faults that befall the world; any if missing. */
  faults?: readonly string[]
  /** How probable it is that a message is lost, and sent again. */
  lossShare?: number
  /** Longest time of a message to the database. */
  latencyMillis?: number
  /** How probable it is that the COMMIT of a transaction with events takes long to reach the database. */
  stallShare?: number
  /** How many accounts clients write to. */
  writers?: number
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
  /** How probable it is that a client deactivates or activates an account. */
  absenceShare?: number
  /** How probable it is that a client changes an identity. The directory is then one of its own. */
  renameShare?: number
  /** How probable it is that a client does something with blobs. */
  blobShare?: number
  /** How probable it is that a client does something with sessions of app passwords. */
  sessionShare?: number
  /** How probable it is that a client does something with an app that signs in with OAuth. */
  appShare?: number
  /** How probable it is that a client does something in a space. */
  spaceShare?: number
  /** How long a node that stops waits for the requests that it has begun. */
  graceMillis?: number
}

const directoryFaults = ['lossyDirectory', 'lossyDirectory', 'lyingDirectory', 'directoryDown']

export const moods: readonly Mood[] = [
  // What nodes draw by lot is often the same.
  { name: 'lots', lots: 8, faults: ['crash', 'freeze', 'cut'] },
  // Messages of different connections overtake each other.
  { name: 'losses', isLong: false, lossShare: 0.08, tempoMillis: 20, faults: [] },
  // After a fault at the end, nobody does anything that would mend it.
  {
    name: 'last-words',
    maxActs: 1,
    faultMillis: 300,
    faults: ['crashAtCommit', 'crashAtCommit', 'interruptedCommit', 'cut'],
  },
  // Nodes take leases that others still think they have.
  { name: 'leases', isLong: false, millis: 4000, tempoMillis: 120, faults: ['unheard'] },
  { name: 'outages', isLong: true, faults: ['silenceAtCommit'] },
  // Transactions stay open while others that began later commit, and their events get numbers.
  { name: 'stalls', isLong: false, stallShare: 0.2, latencyMillis: 6, writers: 3, tempoMillis: 15, faults: [] },
]

/** Servers end as they should, while connections or disks are slow, and before they have answered every request. */
const departures: Mood = {
  name: 'departures',
  isLong: false,
  latencyMillis: 6,
  tempoMillis: 20,
  millis: 3000,
  graceMillis: 20,
  faults: ['stop', 'stop', 'lag'],
}
/** Accounts are deactivated and activated while others write. */
const absences: Mood = { name: 'absences', isLong: false, absenceShare: 0.3, tempoMillis: 60, millis: 1500 }
/** Accounts change handles and keys; what is sent to the directory may be lost, late, or done in spite of an error. */
const renames: Mood = {
  name: 'renames',
  isLong: false,
  renameShare: 0.5,
  writers: 3,
  tempoMillis: 100,
  millis: 2500,
  faults: ['crash', 'crashAtCommit', 'interruptedCommit', 'cut', 'freeze', 'stop', ...directoryFaults],
}
const renamesOnFile: Mood = { ...renames, faults: ['crash', 'powerCut', 'freeze', 'stop', ...directoryFaults] }
const departuresOnFile: Mood = { ...departures, faults: ['stop', 'stop', 'slowDisk'] }

/** Clients upload the same few blobs again and again, and records stop to refer to them. */
const blobs: Mood = {
  name: 'blobs',
  isLong: false,
  blobShare: 0.7,
  tempoMillis: 1500,
  millis: 16_000,
  faults: [
    'failover',
    'failover',
    'databaseRestart',
    'silenceAtCommit',
    'lag',
    'slow',
    'fullDisk',
    'crash',
    'crashAtCommit',
    'interruptedCommit',
    'cut',
    'freeze',
    'silence',
    'stop',
    'slowBucket',
    'lyingBucket',
    'bucketDown',
    'silentBucket',
    'cutOff',
  ],
}
const blobsOnFile: Mood = {
  ...blobs,
  tempoMillis: 600,
  millis: 6000,
  faults: ['crash', 'powerCut', 'powerCutAtFlush', 'freeze', 'stop', 'slowDisk'],
}

/** Sessions are opened, extended and ended while others use them. */
const sessions: Mood = { name: 'sessions', isLong: false, sessionShare: 0.8, tempoMillis: 100, millis: 1500 }

/** Apps sign in with OAuth, and use, extend and revoke what they get. */
const apps: Mood = {
  name: 'apps',
  isLong: false,
  appShare: 0.8,
  tempoMillis: 100,
  millis: 2500,
  faults: [
    'crash',
    'crashAtCommit',
    'interruptedCommit',
    'silenceAtCommit',
    'cut',
    'freeze',
    'silence',
    'lag',
    'slow',
    'stop',
    'databaseRestart',
    'failover',
  ],
}
const appsOnFile: Mood = { ...apps, faults: ['crash', 'powerCut', 'powerCutAtFlush', 'freeze', 'stop', 'slowDisk'] }

/** Accounts write in spaces, and clients follow what has changed there. */
const spaces: Mood = { name: 'spaces', isLong: false, spaceShare: 0.8, tempoMillis: 60, millis: 1000 }
/** Records in spaces refer to blobs too. */
const spaceBlobs: Mood = { ...blobs, name: 'space-blobs', spaceShare: 0.9 }
/** Keys are replaced, and what is signed for those who read in spaces has to verify. */
const spaceKeys: Mood = { ...renames, name: 'space-keys', renameShare: 0.3, spaceShare: 0.8 }
const spaceKeysOnFile: Mood = { ...renamesOnFile, name: 'space-keys', renameShare: 0.3, spaceShare: 0.8 }
const spaceBlobsOnFile: Mood = { ...blobsOnFile, name: 'space-blobs', spaceShare: 0.9 }

/** The machine that follows is told to take over again and again, while the other one is out of reach. */
const takeovers: Mood = { name: 'takeovers', faults: ['promote'] }

/** Clients upload to two machines, which keep copies of blobs in a mirror. */
const mirrored: Mood = {
  name: 'mirrored',
  blobShare: 0.7,
  tempoMillis: 500,
  faults: [
    'promote',
    'promote',
    'crash',
    'powerCut',
    'powerCutAtFlush',
    'stop',
    'freeze',
    'freeze',
    'slowDisk',
    'cutOff',
    'silentBucket',
    'slowBucket',
    'lyingBucket',
    'bucketDown',
  ],
}

/** A backup that is behind by a moment, and machines that take over without what was not sent. */
const behind: Mood = {
  name: 'behind',
  faults: [
    'promote',
    'promote',
    'crash',
    'powerCut',
    'stop',
    'freeze',
    'cutOff',
    'slowBucket',
    'lyingBucket',
    'bucketDown',
  ],
}

/** By what is left of a seed divided by 32: on PostgreSQL, and on SQLite. */
const rareMoods: Readonly<Record<number, readonly [Mood, Mood]>> = {
  2: [departures, departuresOnFile],
  4: [spaceKeys, spaceKeysOnFile],
  6: [blobs, blobsOnFile],
  10: [absences, absences],
  12: [renames, renamesOnFile],
  14: [spaces, spaces],
  18: [departures, departuresOnFile],
  20: [apps, appsOnFile],
  22: [spaceBlobs, spaceBlobsOnFile],
  26: [absences, absences],
  28: [renames, renamesOnFile],
  30: [sessions, sessions],
}

export interface Kind {
  /** Of the mood, if there is one. */
  name: string
  /** How many servers there are. */
  nodes: number
  /** They are on SQLite, each with a disk of its own. */
  onFile?: boolean
  /** The second one follows the first, by a bucket that has the continuous backup. */
  isPair?: boolean
  /** It has what the first one had sent. Only an operator has it take over. */
  isAsync?: boolean
  mood?: Mood
}

const SQLITE: Kind = { name: 'sqlite', nodes: 1, onFile: true }
const PAIR: Kind = { name: 'second-machine', nodes: 2, onFile: true, isPair: true }

export const kindNames: readonly string[] = [
  'cluster',
  SQLITE.name,
  PAIR.name,
  departures.name,
  absences.name,
  renames.name,
  blobs.name,
  sessions.name,
  apps.name,
  spaces.name,
  spaceBlobs.name,
  spaceKeys.name,
  takeovers.name,
  behind.name,
  mirrored.name,
  ...moods.map(({ name }) => name),
]

export function kindOf(seed: number): Kind {
  // One world in five is on SQLite, and a quarter of these are of two machines. One in four of the others has a mood.
  if (seed % 160 === 119) return { ...PAIR, name: takeovers.name, mood: takeovers }
  if (seed % 160 === 39) return { ...PAIR, name: behind.name, isAsync: true, mood: behind }
  if (seed % 160 === 79) return { ...PAIR, name: mirrored.name, mood: mirrored }
  if (seed % 20 === 19) return PAIR
  const isOnFile = seed % 5 === 4
  const mood = rareMoods[seed % 32]?.[isOnFile ? 1 : 0]
  if (isOnFile) return mood === undefined ? SQLITE : { ...SQLITE, name: mood.name, mood }
  if (mood !== undefined) return { name: mood.name, nodes: 2 + (Math.floor(seed / 16) % 2), mood }
  if (seed % 4 !== 1) return { name: 'cluster', nodes: 1 + (seed % 3) }
  const at = (seed - 1) / 4
  const often = moods[(at + Math.floor(at / moods.length)) % moods.length]!
  return { name: often.name, nodes: 2 + (seed % 2), mood: often }
}
