/**
 * A bounded in-memory record of used DPoP proofs (RFC 9449, 11.1), in two generations. The older one is dropped when
 * the younger one is `PROOF_MEMORY_SECS` old. When the younger one is full, further proofs are refused, and no proof is
 * forgotten. Times are on the monotonic clock.
 *
 * There may be thousands of proofs a second, so each is stored as 128 bits of a hash in a flat table.
 */
import { PROOF_MEMORY_SECS } from '../../../protocol/dpop.ts'

/** Maximum number of proofs per generation, whose table then takes 64 MiB. */
const MAX_PROOFS = 2 ** 21
const FIRST_SLOTS = 2 ** 12
const WORDS = 4

export class ProofMemory {
  #current = new DigestSet()
  #previous = new DigestSet()
  #startedAt: number
  readonly #digest = new Uint32Array(8)
  readonly #digestBytes = new Uint8Array(this.#digest.buffer)

  constructor(now: number) {
    this.#startedAt = now
  }

  /**
   * Record the use of `jti` with the key `jkt`. Returns `used` if it is already recorded, `full` if there is no space
   * for it.
   */
  use(jkt: string, jti: string, now: number): 'fresh' | 'used' | 'full' {
    this.#turn(now)
    Bun.SHA256.hash(`${jkt}.${jti}`, this.#digestBytes)
    if (this.#previous.has(this.#digest) || this.#current.has(this.#digest)) return 'used'
    if (this.#current.size >= MAX_PROOFS) return 'full'
    this.#current.add(this.#digest)
    return 'fresh'
  }

  /**
   * Start a new generation if the younger one is old enough. If it is twice as old, the proofs of both are no longer
   * needed.
   */
  #turn(now: number): void {
    const generationMillis = PROOF_MEMORY_SECS * 1000
    if (now - this.#startedAt < generationMillis) return
    this.#previous = now - this.#startedAt < 2 * generationMillis ? this.#current : new DigestSet()
    this.#current = new DigestSet()
    this.#startedAt = now
  }
}

/**
 * A hash table with open addressing and linear probing, at most half full. A slot whose first word is zero is empty.
 */
class DigestSet {
  #table = new Uint32Array(FIRST_SLOTS * WORDS)
  size = 0

  has(digest: Uint32Array): boolean {
    return this.#table[this.#slotOf(digest)] !== 0
  }

  add(digest: Uint32Array): void {
    if ((this.size + 1) * 2 * WORDS > this.#table.length) this.#grow()
    this.#write(this.#slotOf(digest), digest)
    this.size++
  }

  /** Returns the table index of the digest, or of the empty slot where it belongs. */
  #slotOf(digest: Uint32Array): number {
    const table = this.#table
    const mask = table.length / WORDS - 1
    const first = digest[0]! || 1
    for (let slot = digest[1]! & mask; ; slot = (slot + 1) & mask) {
      const at = slot * WORDS
      if (table[at] === 0) return at
      if (
        table[at] === first &&
        table[at + 1] === digest[1] &&
        table[at + 2] === digest[2] &&
        table[at + 3] === digest[3]
      )
        return at
    }
  }

  #write(at: number, digest: Uint32Array): void {
    this.#table.set(digest.subarray(0, WORDS), at)
    // A zero would mark the slot as empty.
    this.#table[at] = digest[0]! || 1
  }

  #grow(): void {
    const before = this.#table
    this.#table = new Uint32Array(before.length * 2)
    for (let at = 0; at < before.length; at += WORDS) {
      if (before[at] === 0) continue
      const digest = before.subarray(at, at + WORDS)
      this.#write(this.#slotOf(digest), digest)
    }
  }
}
