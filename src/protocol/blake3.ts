/**
 * BLAKE3 of texts that fit one chunk, expanded to any length. The set hash of spaces expands each record to 2,048
 * bytes, in 34 compressions: `@noble/hashes` takes three times as long for them, and ten times until it is compiled.
 *
 * Source: BLAKE3, 2.2 (compression), 2.4 (chunks) and 2.6 (extendable output).
 */

/** Bytes of the longest input. */
export const MAX_INPUT_BYTES = 1024
const BLOCK_BYTES = 64
const WORDS = 16
const [CHUNK_START, CHUNK_END, ROOT] = [1, 2, 8]

const initial = Int32Array.from([
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
])

const ROUNDS = 7
const permutation = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
/** Which words of a block the rounds take, one round after another. */
const schedule = scheduleOf()

function scheduleOf(): Uint8Array {
  const order = new Uint8Array(ROUNDS * WORDS)
  for (let at = 0; at < order.length; at++)
    order[at] = at < WORDS ? at : order[at - (at % WORDS) - WORDS + permutation[at % WORDS]!]!
  return order
}

/** What a compression works with. `out` is what it leaves: the words of the state that follows, then eight more. */
class Compressor {
  readonly #state = new Int32Array(WORDS)
  readonly block = new Int32Array(WORDS)
  readonly chained = new Int32Array(initial)
  readonly out = new Int32Array(WORDS)

  run(counter: number, length: number, flags: number): void {
    const { block, chained, out } = this
    const v = this.#state
    v.set(chained)
    for (let i = 0; i < 4; i++) v[8 + i] = initial[i]!
    v[12] = counter
    v[13] = 0
    v[14] = length
    v[15] = flags
    for (let at = 0; at < schedule.length; at += WORDS) {
      mix(v, 0, 4, 8, 12, block[schedule[at]!]!, block[schedule[at + 1]!]!)
      mix(v, 1, 5, 9, 13, block[schedule[at + 2]!]!, block[schedule[at + 3]!]!)
      mix(v, 2, 6, 10, 14, block[schedule[at + 4]!]!, block[schedule[at + 5]!]!)
      mix(v, 3, 7, 11, 15, block[schedule[at + 6]!]!, block[schedule[at + 7]!]!)
      mix(v, 0, 5, 10, 15, block[schedule[at + 8]!]!, block[schedule[at + 9]!]!)
      mix(v, 1, 6, 11, 12, block[schedule[at + 10]!]!, block[schedule[at + 11]!]!)
      mix(v, 2, 7, 8, 13, block[schedule[at + 12]!]!, block[schedule[at + 13]!]!)
      mix(v, 3, 4, 9, 14, block[schedule[at + 14]!]!, block[schedule[at + 15]!]!)
    }
    for (let i = 0; i < 8; i++) {
      out[i] = v[i]! ^ v[8 + i]!
      out[8 + i] = v[8 + i]! ^ chained[i]!
    }
  }
}

/** The quarter round. */
function mix(v: Int32Array, a: number, b: number, c: number, d: number, x: number, y: number): void {
  let va = v[a]!
  let vb = v[b]!
  let vc = v[c]!
  let vd = v[d]!
  va = (va + vb + x) | 0
  vd ^= va
  vd = (vd >>> 16) | (vd << 16)
  vc = (vc + vd) | 0
  vb ^= vc
  vb = (vb >>> 12) | (vb << 20)
  va = (va + vb + y) | 0
  vd ^= va
  vd = (vd >>> 8) | (vd << 24)
  vc = (vc + vd) | 0
  vb ^= vc
  vb = (vb >>> 7) | (vb << 25)
  v[a] = va
  v[b] = vb
  v[c] = vc
  v[d] = vd
}

/**
 * Returns the first `words` words of the hash, each of 32 bits, little-endian. Throws a `TypeError` if the input is
 * longer than `MAX_INPUT_BYTES`.
 */
export function blake3Words(input: Uint8Array, words: number): Int32Array {
  if (input.length > MAX_INPUT_BYTES) throw new TypeError(`The input has more than ${MAX_INPUT_BYTES} bytes`)
  const compressor = new Compressor()
  const { block, chained, out } = compressor
  const bytes = new Uint8Array(block.buffer)
  let start = 0
  let flags = CHUNK_START!
  for (; input.length - start > BLOCK_BYTES; start += BLOCK_BYTES) {
    bytes.set(input.subarray(start, start + BLOCK_BYTES))
    compressor.run(0, BLOCK_BYTES, flags)
    chained.set(out.subarray(0, 8))
    flags = 0
  }
  bytes.fill(0)
  bytes.set(input.subarray(start))
  const found = new Int32Array(Math.ceil(words / WORDS) * WORDS)
  for (let at = 0; at < words; at += WORDS) {
    compressor.run(at / WORDS, input.length - start, flags | CHUNK_END! | ROOT!)
    found.set(out, at)
  }
  return found.subarray(0, words)
}
