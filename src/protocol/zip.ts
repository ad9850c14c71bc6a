/**
 * The records of a ZIP archive that is written as a stream. Entries are not compressed. Records take the ZIP64 form
 * only where sizes, offsets or counts require it, because some programs cannot read ZIP64.
 *
 * Source: PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.3.
 */
import type { Millis } from './identifiers.ts'

const LOCAL_HEADER = 0x04034b50
const DESCRIPTOR = 0x08074b50
const CENTRAL_HEADER = 0x02014b50
const END_64 = 0x06064b50
const LOCATOR_64 = 0x07064b50
const END = 0x06054b50

const LOCAL_HEADER_BYTES = 30
const CENTRAL_HEADER_BYTES = 46
const END_BYTES = 22
const END_64_BYTES = 56
const LOCATOR_64_BYTES = 20
/** The size field of the ZIP64 end record does not count the record's signature and the size field itself. */
const END_64_UNCOUNTED = 12
/** An extra field begins with its id and its size. */
const EXTRA_HEAD_BYTES = 4
const EXTRA_64 = 1
const MAX_16 = 0xffff
const MAX_32 = 0xffffffff

/** Names are UTF-8; the checksum follows the content. */
const UTF8_FLAG = 1 << 11
const DESCRIPTOR_FLAG = 1 << 3
const VERSION = 20
const VERSION_64 = 45
/** Permissions are those of a regular file that its owner may write and all may read. */
const MADE_ON_UNIX = 3 << 8
const FILE_MODE = 0o100644

/** `size` is in bytes. `crc32` is null if it is known only after the content: then a descriptor follows it. */
export interface ZipEntry {
  name: string
  size: number
  crc32: number | null
  modifiedAt: Millis
}

/** An entry that has been written: the offset of its local header, and the checksum of its content. */
export interface WrittenEntry extends ZipEntry {
  offset: number
  checksum: number
}

/** Appends numbers in little-endian order, by their size in bytes. */
class Fields {
  readonly bytes: Buffer
  #at = 0

  constructor(size: number) {
    this.bytes = Buffer.alloc(size)
  }

  add(size: 2 | 4 | 8, ...values: readonly number[]): this {
    for (const value of values) {
      if (size === 8) this.bytes.writeBigUInt64LE(BigInt(value), this.#at)
      else this.bytes.writeUIntLE(value, this.#at, size)
      this.#at += size
    }
    return this
  }

  text(text: Buffer): this {
    this.#at += text.copy(this.bytes, this.#at)
    return this
  }
}

/** The extra field with the numbers that do not fit into a record; empty if there are none. */
function extra64(values: readonly number[]): Buffer {
  if (values.length === 0) return Buffer.alloc(0)
  const size = values.length * 8
  return new Fields(EXTRA_HEAD_BYTES + size).add(2, EXTRA_64, size).add(8, ...values).bytes
}

const isLarge = ({ size }: ZipEntry): boolean => size >= MAX_32
const flagsOf = ({ crc32 }: ZipEntry): number => UTF8_FLAG | (crc32 === null ? DESCRIPTOR_FLAG : 0)

/** Time and date of MS-DOS, in UTC. They begin with 1980, and count every other second. */
function dosTime(at: Millis): [number, number] {
  const date = new Date(Math.max(at, Date.UTC(1980, 0, 1)))
  return [
    (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1),
    ((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate(),
  ]
}

/** The record that precedes the content of an entry. */
export function localHeader(entry: ZipEntry): Uint8Array {
  const name = Buffer.from(entry.name)
  const hasDescriptor = entry.crc32 === null
  const size = hasDescriptor ? 0 : entry.size
  // The extra field also says that the numbers of the descriptor have eight bytes.
  const extra = extra64(isLarge(entry) ? [size, size] : [])
  const shownSize = isLarge(entry) ? MAX_32 : size
  return new Fields(LOCAL_HEADER_BYTES + name.length + extra.length)
    .add(4, LOCAL_HEADER)
    .add(2, isLarge(entry) ? VERSION_64 : VERSION, flagsOf(entry), 0, ...dosTime(entry.modifiedAt))
    .add(4, entry.crc32 ?? 0, shownSize, shownSize)
    .add(2, name.length, extra.length)
    .text(name)
    .text(extra).bytes
}

/** The record that follows the content of an entry whose checksum was not known before. */
export function descriptor(entry: WrittenEntry): Uint8Array {
  const width = isLarge(entry) ? 8 : 4
  return new Fields(8 + 2 * width).add(4, DESCRIPTOR, entry.checksum).add(width, entry.size, entry.size).bytes
}

/** The record of an entry in the directory at the end of the archive. */
export function centralHeader(entry: WrittenEntry): Uint8Array {
  const name = Buffer.from(entry.name)
  const { size, offset, checksum } = entry
  const extra = extra64([...(isLarge(entry) ? [size, size] : []), ...(offset >= MAX_32 ? [offset] : [])])
  const version = extra.length > 0 ? VERSION_64 : VERSION
  return new Fields(CENTRAL_HEADER_BYTES + name.length + extra.length)
    .add(4, CENTRAL_HEADER)
    .add(2, MADE_ON_UNIX | version, version, flagsOf(entry), 0, ...dosTime(entry.modifiedAt))
    .add(4, checksum, Math.min(size, MAX_32), Math.min(size, MAX_32))
    .add(2, name.length, extra.length, 0, 0, 0)
    .add(4, FILE_MODE * 0x10000, Math.min(offset, MAX_32))
    .text(name)
    .text(extra).bytes
}

/** The records that follow the directory of `count` entries, which begins at `offset` and has `size` bytes. */
export function endOfArchive({ count, offset, size }: { count: number; offset: number; size: number }): Uint8Array {
  const shownCount = Math.min(count, MAX_16)
  const end = new Fields(END_BYTES)
    .add(4, END)
    .add(2, 0, 0, shownCount, shownCount)
    .add(4, Math.min(size, MAX_32), Math.min(offset, MAX_32))
    .add(2, 0).bytes
  if (count < MAX_16 && offset < MAX_32 && size < MAX_32) return end
  const end64 = new Fields(END_64_BYTES)
    .add(4, END_64)
    .add(8, END_64_BYTES - END_64_UNCOUNTED)
    .add(2, MADE_ON_UNIX | VERSION_64, VERSION_64)
    .add(4, 0, 0)
    .add(8, count, count, size, offset).bytes
  const locator = new Fields(LOCATOR_64_BYTES)
    .add(4, LOCATOR_64, 0)
    .add(8, offset + size)
    .add(4, 1).bytes
  return Buffer.concat([end64, locator, end])
}
