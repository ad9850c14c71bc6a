/**
 * Where a started server continues the chain that its saved state names: what the destination has beyond that state,
 * and whether this database may continue there at all.
 */
import type { Context } from '../../../platform/context.ts'
import type { LogPosition } from '../../../platform/database/log-follower.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { headSeq } from '../../data/firehose/firehose.ts'
import { FIRST_PAUSE_MILLIS, MAX_READS, type Destination } from './continuous-destination.ts'
import { OlderDatabase } from './continuous-faults.ts'
import { digestOf, headerOf, MAX_UNDER_WAY, numberAfter, segmentName } from './continuous-format.ts'
import { holderFile } from './continuous-lease.ts'
import { needed, readObject, segmentOf, type Segment } from './continuous-reading.ts'
import type { ChainState, Spool } from './continuous-spool.ts'

/** The position of a chain without segments. */
export const nowhere: LogPosition = { salts: '', frames: 0, checksum: '' }

/** Where the chain continues if the destination has more segments than the saved state says. */
export interface Later {
  state: ChainState
  /** How many of the spooled segments come before that place. */
  kept: number
  /** Numbers of the destination's segments that follow. */
  numbers: number[]
}

/**
 * Returns what the destination has beyond the saved state, or null if it has nothing more. A power cut can lose the
 * newest saved state, and a segment may be sent before it is in the spool, so the destination may have more. The
 * position in the log proves that the database has the same commits.
 */
export async function laterState(destination: Destination, spool: Spool, noted: ChainState): Promise<Later | null> {
  const { waiting } = spool
  const key = Buffer.from(noted.key, 'base64')
  const segmentAt = async (number: number): Promise<Segment | null> => {
    for (let tries = 1; ; tries++)
      try {
        return await segmentOf(destination.archive, key, segmentName(noted.chain, number))
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error
        // The object may have been read only in part.
        if (tries === MAX_READS) return null
        await destination.pause(FIRST_PAUSE_MILLIS)
      }
  }
  let later: Later = { state: noted, kept: waiting.length, numbers: [] }
  await destination.untilDone(
    () => destination.isEnded,
    async () => {
      later = { state: noted, kept: waiting.length, numbers: [] }
      const take = (found: Segment) => {
        later.state = after(later.state, found)
        later.numbers.push(found.header.number)
      }
      for (const [at, segment] of waiting.slice(0, MAX_UNDER_WAY).entries()) {
        const own = await spool.read(segment)
        const found = await segmentAt(segment.number)
        if (found === null || found.digest === digestOf(own)) continue
        if (found.header.previous !== headerOf(own)?.previous) return
        // The previous process had sent this segment. It arrived only after this process had made another one with
        // its number.
        later.kept = at
        take(found)
        break
      }
      for (;;) {
        const found = await segmentAt(later.state.next)
        if (found === null || found.header.previous !== later.state.digest) return
        take(found)
      }
    },
  )
  return later.numbers.length === 0 ? null : later
}

/** Continue from what the destination has. */
export async function adopt(
  { archive, ctx }: Destination,
  spool: Spool,
  { state, kept, numbers }: Later,
): Promise<void> {
  if (kept === 0) return spool.skip(state)
  // The destination may lack some of the kept segments. They are sent again, and so are those that follow.
  spool.keep(kept)
  let before = state
  for (const number of numbers) {
    const content = await needed(archive, segmentName(state.chain, number))
    before = after(before, { header: headerOf(content)!, digest: digestOf(content) })
    await spool.add({ ...before, sinceBase: state.sinceBase }, content, ctx.clock.monotonic())
  }
}

/**
 * Throws `OlderDatabase` if segments that follow this place were deleted. The destination is known to have had the
 * segment `through`, so a restore would not look for anything that this server wrote at this place.
 */
export async function requirePlace(
  { archive }: Destination,
  spool: Spool,
  { chain, next }: ChainState,
  through: number,
): Promise<void> {
  const number = spool.waiting[0]?.number ?? next
  if (number <= through && (await readObject(archive, segmentName(chain, number))) === null) throw new OlderDatabase()
}

/** Throws `OlderDatabase` if the destination has a segment after this place with events that the database lacks. */
export async function requireNewestOf(
  { archive, ctx }: Destination,
  spool: Spool,
  { chain, next }: ChainState,
): Promise<void> {
  const seq = await headSeq(ctx.db)
  for (let number = spool.waiting[0]?.number ?? next; ;) {
    const header = headerOf((await readObject(archive, segmentName(chain, number))) ?? new Uint8Array())
    if (header === null) return
    if (header.seq > seq)
      throw new OlderDatabase(
        `, or delete ${holderFile(ctx.config.dataDir)} and start "holdfast serve" to continue without them`,
      )
    number = numberAfter(header)
  }
}

/** Throws `OlderDatabase` if the event log ends before this number. */
export async function requireNewest(ctx: Pick<Context, 'db'>, seq = 0): Promise<void> {
  if ((await headSeq(ctx.db)) < seq) throw new OlderDatabase()
}

/** Returns the state of the chain with this segment added. */
function after(state: ChainState, { header, digest }: Pick<Segment, 'header' | 'digest'>): ChainState {
  const { number, at, position = nowhere, promise = 'async', epoch = state.epoch } = header
  const sinceBase = state.sinceBase + 1
  return { ...state, number, next: numberAfter(header), at, position, promise, epoch, digest, sinceBase, closed: null }
}
