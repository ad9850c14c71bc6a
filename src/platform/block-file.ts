/**
 * Blocks of an archive on their way in: a file without a name, and where in it each block lies.
 *
 * The bytes are on the disk; in memory a block takes a slot of twelve bytes, found by the first four of its digest.
 */
import { closeSync, readSync } from 'node:fs'
import type { Block } from '../protocol/car.ts'
import { cidBytesLength, type Cid } from '../protocol/cid.ts'
import { openNameless, writeAt } from './nameless-file.ts'

const BUFFER_BYTES = 256 * 1024
const FIRST_SLOTS = 4096
/** Of the slots, so many are filled before there are twice as many. */
const MAX_FILL = 0.6
/** A block lies in the file as CID, length, bytes. Most are read with their head at once. */
const LENGTH_BYTES = 4
const HEAD_BYTES = cidBytesLength + LENGTH_BYTES
const READ_AHEAD_BYTES = 1024
/** Codec, hash and its length come first in a CID and are all alike. */
const DIGEST_OFFSET = 4
const NO_POSITION = -1

export class BlockFile {
  readonly #file: number
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  readonly #head = Buffer.allocUnsafe(HEAD_BYTES)
  readonly #probe = Buffer.allocUnsafe(READ_AHEAD_BYTES)
  #buffered = 0
  #flushed = 0
  #count = 0
  #keys = new Uint32Array(FIRST_SLOTS)
  #positions = new Float64Array(FIRST_SLOTS).fill(NO_POSITION)

  /** The file is made in `dir`. */
  constructor(dir: string) {
    this.#file = openNameless(dir)
  }

  /** Blocks held; one that was added twice counts once. */
  get count(): number {
    return this.#count
  }

  add({ cid, bytes }: Block): void {
    const { slot, block } = this.#find(cid)
    if (block !== null) return
    this.#keys[slot] = keyOf(cid)
    this.#positions[slot] = this.#append(cid, bytes)
    if (++this.#count > this.#keys.length * MAX_FILL) this.#grow()
  }

  /** Null when it was not added. */
  get(cid: Cid): Uint8Array | null {
    return this.#find(cid).block
  }

  close(): void {
    closeSync(this.#file)
  }

  #append(cid: Cid, bytes: Uint8Array): number {
    const position = this.#flushed + this.#buffered
    this.#head.set(cid.bytes)
    this.#head.writeUInt32LE(bytes.length, cidBytesLength)
    this.#write(this.#head)
    this.#write(bytes)
    return position
  }

  #write(bytes: Uint8Array): void {
    if (this.#buffered + bytes.length > BUFFER_BYTES) this.#flush()
    if (bytes.length > BUFFER_BYTES) {
      writeAt(this.#file, bytes, this.#flushed)
      this.#flushed += bytes.length
    } else {
      this.#buffer.set(bytes, this.#buffered)
      this.#buffered += bytes.length
    }
  }

  #flush(): void {
    writeAt(this.#file, this.#buffer.subarray(0, this.#buffered), this.#flushed)
    this.#flushed += this.#buffered
    this.#buffered = 0
  }

  /** A block and its slot, or the free slot where it would be. */
  #find(cid: Cid): { slot: number; block: Uint8Array | null } {
    const key = keyOf(cid)
    const mask = this.#keys.length - 1
    for (let slot = key & mask; ; slot = (slot + 1) & mask) {
      const position = this.#positions[slot]!
      if (position === NO_POSITION) return { slot, block: null }
      const block = this.#keys[slot] === key ? this.#readIf(cid, position) : null
      if (block !== null) return { slot, block }
    }
  }

  /** The block at a position, if it has this CID. */
  #readIf(cid: Cid, position: number): Uint8Array | null {
    // What is buffered has not reached the file.
    if (position + READ_AHEAD_BYTES > this.#flushed) this.#flush()
    const ahead = readSync(this.#file, this.#probe, 0, READ_AHEAD_BYTES, position) - HEAD_BYTES
    for (let i = 0; i < cidBytesLength; i++) if (this.#probe[i] !== cid.bytes[i]) return null
    const length = this.#probe.readUInt32LE(cidBytesLength)
    if (length <= ahead) return new Uint8Array(this.#probe.subarray(HEAD_BYTES, HEAD_BYTES + length))
    const bytes = new Uint8Array(length)
    const start = position + HEAD_BYTES
    if (start + length > this.#flushed) this.#flush()
    for (let read = 0; read < length; ) read += readSync(this.#file, bytes, read, length - read, start + read)
    return bytes
  }

  #grow(): void {
    const [keys, positions] = [this.#keys, this.#positions]
    const mask = keys.length * 2 - 1
    this.#keys = new Uint32Array(keys.length * 2)
    this.#positions = new Float64Array(keys.length * 2).fill(NO_POSITION)
    for (const [old, position] of positions.entries()) {
      if (position === NO_POSITION) continue
      let slot = keys[old]! & mask
      while (this.#positions[slot] !== NO_POSITION) slot = (slot + 1) & mask
      this.#keys[slot] = keys[old]!
      this.#positions[slot] = position
    }
  }
}

function keyOf({ bytes }: Cid): number {
  return ((bytes[DIGEST_OFFSET]! << 24) | (bytes[DIGEST_OFFSET + 1]! << 16) | (bytes[DIGEST_OFFSET + 2]! << 8) | bytes[DIGEST_OFFSET + 3]!) >>> 0
}
