/**
 * Proof of work: a nonce for which the SHA-256 of challenge, subject and nonce begins with a number of zero bits.
 * Finding one takes 2^bits hashes on average, checking it takes one.
 */
import { createHash } from 'node:crypto'

/** A phone needs minutes for this many. */
export const MAX_WORK_BITS = 22

export interface Work {
  challenge: string
  /** What the work is done for: it counts for nothing else. */
  subject: string
  nonce: string
}

export const workDigest = ({ challenge, subject, nonce }: Work): Buffer =>
  createHash('sha256').update(`${challenge}:${subject}:${nonce}`).digest()

/** Returns the number of zero bits with which the hash begins. */
export const workBits = (work: Work): number => Math.clz32(workDigest(work).readUInt32BE(0))
