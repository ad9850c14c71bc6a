/**
 * The time that the nodes of a cluster share: that of the median of their clocks and PostgreSQL's. Without it, an
 * instant that one node writes and another compares with its own time (the end of a window, of a lease, of a block)
 * would come too early or too late, or look as if a wrong clock had written it.
 *
 * A node whose clock is wrong would also delete what the others keep, and sign commits that are dated in the future.
 * Each node notes with its heartbeats how far its clock is ahead of PostgreSQL's. If most clocks agree on another time
 * than that of a node, the node uses their time, however large the difference is.
 *
 * A node that is alone with PostgreSQL cannot know which of the two clocks is wrong, and uses its own.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'

/** Clocks that differ by less agree. Access tokens and proofs allow for as much. */
const AGREEING_MILLIS = 2 * MINUTE_MILLIS
/** A wrong clock is right again once it differs by less: the gap keeps a clock near the limit from flipping. */
const RIGHT_AGAIN_MILLIS = MINUTE_MILLIS
/** A small difference that changes by less than this stays as it was: answers take milliseconds. */
const UNNOTICED_MILLIS = 50
/** An error that changes by less than this stays as it was, so that time runs evenly. */
const JITTER_MILLIS = 1000

/** All instants are in milliseconds. */
interface Answer {
  /** PostgreSQL's clock, at some moment between the other two. */
  at: number
  /** This node's clock before it asked, and after the answer. */
  askedAt: number
  answeredAt: number
}

/**
 * By how much the clock of a node is ahead of PostgreSQL's, negative if behind. An answer may have taken long: of the
 * differences that are possible, this is the smallest.
 */
export const aheadBy = ({ at, askedAt, answeredAt }: Answer): number =>
  Math.max(askedAt - at, Math.min(0, answeredAt - at))

/**
 * By how much the clock of a node is wrong, given by how much it and those of other nodes are ahead of PostgreSQL's.
 * `before`: the last result, which stays valid while too few nodes are there to decide.
 */
export function clockError(own: number, others: readonly number[], before: number): number {
  if (isRight(own, before)) return 0
  const clocks = [0, own, ...others]
  // If a majority of the clocks agrees, the clock in the middle is one of them.
  const middle = middleOf(clocks)
  const agreeing = clocks.filter((clock) => Math.abs(clock - middle) <= AGREEING_MILLIS).length
  if (agreeing <= clocks.length / 2) return Math.abs(own - before) <= AGREEING_MILLIS ? before : 0
  const error = own - middle
  if (isRight(error, before)) return 0
  return Math.abs(error - before) <= JITTER_MILLIS ? before : error
}

function middleOf(clocks: readonly number[]): number {
  return clocks.toSorted((a, b) => a - b)[clocks.length >>> 1]!
}

/**
 * By how much a clock that is right differs from the one in the middle; parameters as for `clockError`. Once the other
 * nodes have left, the last difference stays valid.
 */
export function clockOffset(own: number, others: readonly number[], before: number): number {
  if (others.length === 0) return Math.abs(own - before) <= JITTER_MILLIS ? before : 0
  const offset = own - middleOf([0, own, ...others])
  if (Math.abs(offset) > AGREEING_MILLIS) return 0
  return Math.abs(offset - before) <= UNNOTICED_MILLIS ? before : offset
}

/** Whether a clock that is ahead by `difference` counts as right. `before`: as in `clockError`. */
export const isRight = (difference: number, before: number): boolean =>
  Math.abs(difference) <= (before === 0 ? AGREEING_MILLIS : RIGHT_AGAIN_MILLIS)

/** The wall clock of a node and its monotonic clock, read at the same moment. */
export interface Reading {
  wall: number
  monotonic: number
}

/**
 * By how much a clock is wrong some time after it was compared, given by both readings and the error that was found.
 * The error changes by as much as the operator has set the clock since, so that time runs evenly until the next
 * comparison.
 */
export function errorSince(error: number, compared: Reading, now: Reading): number {
  const setBy = Math.round(now.wall - compared.wall - (now.monotonic - compared.monotonic))
  return Math.abs(setBy) <= JITTER_MILLIS ? error : error + setBy
}
