/**
 * Blocks of an archive that is being received: an unnamed file, and an index in memory of the position of each block.
 *
 * In memory a block takes only an index slot of twelve bytes, which is found by the first eight bytes of its digest.
 * Which slot that is depends on two random numbers, which are drawn for each file. Otherwise, an archive made of blocks
 * that share their slots would take quadratic time.
 */
import { closeSync, readSync } from 'node:fs'
import { onDisk } from '../../base/on-disk.ts'
import { CID_BYTES_LENGTH, type Cid } from '../../protocol/cid.ts'
import { openNameless, writeAt } from './nameless-file.ts'

const BUFFER_BYTES = 256 * 1024
const FIRST_SLOT_BITS = 12
const KEY_BITS = 32
/** The index is doubled when more than this share of its slots is filled. */
const MAX_FILL = 0.6
/** A block is stored in the file as length, CID, bytes. */
const LENGTH_BYTES = 4
const HEAD_BYTES = LENGTH_BYTES + CID_BYTES_LENGTH
/** Bytes per read: most blocks fit into a probe; a window holds many blocks, for reads in the order of the file. */
const PROBE_BYTES = 1024
const WINDOW_BYTES = 64 * 1024
/** Offset of the digest in a CID: version, codec, hash function and length come first and hardly vary. */
const DIGEST_OFFSET = 4
const NO_POSITION = -1

export class BlockFile {
  readonly #file: number
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  readonly #length = Buffer.allocUnsafe(LENGTH_BYTES)
  /** The bytes read last, their position in the file, and their number. */
  readonly #window = new Uint8Array(WINDOW_BYTES)
  readonly #windowFields = new DataView(this.#window.buffer)
  #windowStart = 0
  #windowBytes = 0
  #buffered = 0
  #flushed = 0
  #count = 0
  readonly #factors = crypto.getRandomValues(new Uint32Array(2)).map((random) => random | 1)
  #slotBits = FIRST_SLOT_BITS
  #keys = new Uint32Array(2 ** FIRST_SLOT_BITS)
  #positions = new Float64Array(2 ** FIRST_SLOT_BITS).fill(NO_POSITION)

  /** The file is created in `dir`. */
  constructor(readonly dir: string) {
    this.#file = openNameless(dir)
  }

  /** Number of blocks; one that was added twice counts once. */
  get count(): number {
    return this.#count
  }

  /** Bytes of all blocks, with their CIDs. */
  get bytes(): number {
    return this.#flushed + this.#buffered - this.#count * LENGTH_BYTES
  }

  /** Add a block. `section` is its CID followed by its bytes, as in an archive. */
  add(section: Uint8Array): void {
    const slot = this.#slotOf(section)
    if (this.#positions[slot] !== NO_POSITION) return
    this.#keys[slot] = this.#keyOf(section)
    this.#positions[slot] = this.#append(section)
    if (++this.#count > this.#keys.length * MAX_FILL) this.#grow()
  }

  /** Returns the bytes of a block, or null if it was not added. */
  get(cid: Cid): Uint8Array | null {
    const position = this.#positions[this.#slotOf(cid.bytes)]!
    return position === NO_POSITION ? null : this.#read(position)
  }

  close(): void {
    closeSync(this.#file)
  }

  #append(section: Uint8Array): number {
    const position = this.#flushed + this.#buffered
    this.#length.writeUInt32LE(section.length - CID_BYTES_LENGTH)
    this.#write(this.#length)
    this.#write(section)
    return position
  }

  #write(bytes: Uint8Array): void {
    if (this.#buffered + bytes.length > BUFFER_BYTES) this.#flush()
    if (bytes.length > BUFFER_BYTES) {
      this.#store(bytes)
    } else {
      this.#buffer.set(bytes, this.#buffered)
      this.#buffered += bytes.length
    }
  }

  #flush(): void {
    this.#store(this.#buffer.subarray(0, this.#buffered))
    this.#buffered = 0
  }

  #store(bytes: Uint8Array): void {
    try {
      writeAt(this.#file, bytes, this.#flushed)
    } catch (error) {
      throw onDisk(error, this.dir)
    }
    this.#flushed += bytes.length
  }

  /** Returns the slot of a block, or the free slot where it belongs. `cid` begins with its CID. */
  #slotOf(cid: Uint8Array): number {
    const key = this.#keyOf(cid)
    const mask = this.#keys.length - 1
    for (let slot = this.#firstSlotOf(key); ; slot = (slot + 1) & mask) {
      const position = this.#positions[slot]!
      if (position === NO_POSITION || (this.#keys[slot] === key && this.#isAt(position, cid))) return slot
    }
  }

  #isAt(position: number, cid: Uint8Array): boolean {
    const start = this.#reach(position) + LENGTH_BYTES
    for (let i = 0; i < CID_BYTES_LENGTH; i++) if (this.#window[start + i] !== cid[i]) return false
    return true
  }

  /** Returns the bytes of the block at a position. */
  #read(position: number): Uint8Array {
    const offset = this.#reach(position)
    const length = this.#windowFields.getUint32(offset, true)
    const start = offset + HEAD_BYTES
    if (start + length <= this.#windowBytes) return this.#window.slice(start, start + length)
    const bytes = new Uint8Array(length)
    for (let read = 0; read < length;) read += this.#readInto(bytes.subarray(read), position + HEAD_BYTES + read)
    return bytes
  }

  /** Make the window contain the head of the block at a position. Returns the offset of the head in the window. */
  #reach(position: number): number {
    const offset = position - this.#windowStart
    if (offset >= 0 && offset + HEAD_BYTES <= this.#windowBytes) return offset
    const isNext = offset > 0 && offset < this.#windowBytes + PROBE_BYTES
    this.#windowBytes = this.#readInto(this.#window.subarray(0, isNext ? WINDOW_BYTES : PROBE_BYTES), position)
    this.#windowStart = position
    return 0
  }

  #readInto(bytes: Uint8Array, position: number): number {
    // Buffered bytes are not in the file yet.
    if (position + bytes.length > this.#flushed) this.#flush()
    return readSync(this.#file, bytes, 0, bytes.length, position)
  }

  #grow(): void {
    const [keys, positions] = [this.#keys, this.#positions]
    const mask = keys.length * 2 - 1
    this.#slotBits++
    this.#keys = new Uint32Array(keys.length * 2)
    this.#positions = new Float64Array(keys.length * 2).fill(NO_POSITION)
    for (const [old, position] of positions.entries()) {
      if (position === NO_POSITION) continue
      let slot = this.#firstSlotOf(keys[old]!)
      while (this.#positions[slot] !== NO_POSITION) slot = (slot + 1) & mask
      this.#keys[slot] = keys[old]!
      this.#positions[slot] = position
    }
  }

  /** Multiply-shift hashing: the upper bits of the key, which depend on all of it. */
  #firstSlotOf(key: number): number {
    return key >>> (KEY_BITS - this.#slotBits)
  }

  #keyOf(cid: Uint8Array): number {
    const [first, second] = this.#factors
    return (Math.imul(wordOf(cid, DIGEST_OFFSET), first!) + Math.imul(wordOf(cid, DIGEST_OFFSET + 4), second!)) >>> 0
  }
}

const wordOf = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
