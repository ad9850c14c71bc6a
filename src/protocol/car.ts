/**
 * CAR v1 archives: a header with roots, then blocks, each as `varint length, CID, bytes`.
 *
 * Both directions stream pages of blocks in constant memory: the writer fills chunks of 64 KiB, the reader holds one
 * block and one chunk. The reader treats its input as untrusted: it bounds what it buffers and checks the hash of each
 * block.
 *
 * Source: IPLD "CARv1"; atproto "Repository", "CAR File Serialization".
 */
import { decode, encode, WrittenBytes } from './cbor.ts'
import { Cid, CID_BYTES_LENGTH, cidText, hasCidPrefix, isBlockOf } from './cid.ts'
import { Malformed } from './malformed.ts'

export interface Block {
  cid: Cid
  bytes: Uint8Array
}

/** Blocks, or the bytes of complete CAR sections. */
type Page = readonly Block[] | Uint8Array
type Pages = Iterable<Page> | AsyncIterable<Page>
type Roots = Cid | readonly Cid[] | null

const CHUNK_BYTES = 64 * 1024
const HEADER_VERSION = 1

// Writing

/** A whole archive of few blocks, for an event. The encoder writes it directly into the frame of the event. */
export class SmallCar extends WrittenBytes {
  readonly #header: Uint8Array
  readonly #blocks: readonly Block[]
  readonly length: number

  constructor(root: Cid | null, blocks: readonly Block[]) {
    super()
    this.#header = headerOf(root)
    this.#blocks = blocks
    this.length = this.#header.length
    for (const block of blocks) this.length += sectionLength(block)
  }

  override writeTo(target: Uint8Array, start: number): void {
    target.set(this.#header, start)
    let at = start + this.#header.length
    for (const block of this.#blocks) at = writeSection(target, at, block)
  }

  get bytes(): Uint8Array {
    const bytes = new Uint8Array(this.length)
    this.writeTo(bytes, 0)
    return bytes
  }
}

/** Returns a whole archive of few blocks in one array. */
export const carOf = (root: Cid | null, blocks: readonly Block[]): Uint8Array => new SmallCar(root, blocks).bytes

/**
 * An archive as a stream of chunks near 64 KiB. A larger block, or larger framed sections, form a chunk of their own.
 */
export async function* writeCar(roots: Roots, pages: Pages): AsyncGenerator<Uint8Array> {
  const header = headerOf(roots)
  // A yielded chunk belongs to the consumer of the stream, so its part of the buffer is never written again.
  let buffer = newBuffer(CHUNK_BYTES)
  buffer.set(header)
  let [start, end] = [0, header.length]
  const chunk = () => buffer.subarray(start, (start = end))
  for await (const page of pages) {
    if (page instanceof Uint8Array) {
      if (end + page.length > buffer.length) {
        if (end > start) yield chunk()
        yield page
      } else {
        buffer.set(page, end)
        end += page.length
      }
      continue
    }
    for (const block of page) {
      const length = sectionLength(block)
      if (end + length > buffer.length) {
        if (end > start) yield chunk()
        buffer = newBuffer(Math.max(length, CHUNK_BYTES))
        start = end = 0
      }
      end = writeSection(buffer, end, block)
    }
  }
  if (end > start) yield chunk()
}

/** Not zeroed, because the writer fills it from the start, and not taken from the pool that small buffers share. */
const newBuffer = (bytes: number): Uint8Array => Buffer.allocUnsafeSlow(bytes)

function headerOf(roots: Roots): Uint8Array {
  if (roots === null) return rootlessHeader
  if (!(roots instanceof Cid)) return headerOfAll(roots)
  const header = oneRoot.slice()
  header.set(roots.bytes, oneRootAt)
  return header
}

function headerOfAll(roots: readonly Cid[]): Uint8Array {
  const header = encode({ roots: [...roots], version: HEADER_VERSION })
  const framed = new Uint8Array(varintLength(header.length) + header.length)
  framed.set(header, writeVarint(framed, 0, header.length))
  return framed
}

/** The header of an archive without a root. */
export const rootlessHeader = headerOfAll([])
/**
 * The header of an archive with one root, as nearly all have, with a placeholder for the CID, and the offset of the
 * CID.
 */
const noCid = new Uint8Array(CID_BYTES_LENGTH).fill(0xff)
const oneRoot = headerOfAll([new Cid(noCid)])
const oneRootAt = Buffer.from(oneRoot).indexOf(noCid)

function sectionLength(block: Block): number {
  const length = CID_BYTES_LENGTH + block.bytes.length
  return varintLength(length) + length
}

/** Returns a block as a section of an archive. */
export function sectionOf(block: Block): Uint8Array {
  const section = new Uint8Array(sectionLength(block))
  writeSection(section, 0, block)
  return section
}

/** Returns the beginning of a section: its length and the CID, which precede the bytes of the block. */
export function sectionHead(cid: Cid, blockBytes: number): Uint8Array {
  const length = CID_BYTES_LENGTH + blockBytes
  const head = new Uint8Array(varintLength(length) + CID_BYTES_LENGTH)
  head.set(cid.bytes, writeVarint(head, 0, length))
  return head
}

function writeSection(target: Uint8Array, start: number, block: Block): number {
  const at = writeVarint(target, start, CID_BYTES_LENGTH + block.bytes.length)
  target.set(block.cid.bytes, at)
  target.set(block.bytes, at + CID_BYTES_LENGTH)
  return at + CID_BYTES_LENGTH + block.bytes.length
}

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 0x80; rest >>>= 7) length++
  return length
}

function writeVarint(target: Uint8Array, start: number, value: number): number {
  let at = start
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) target[at++] = (rest & 0x7f) | 0x80
  target[at++] = rest
  return at
}

// Reading

export interface CarBounds {
  /** Largest header, in bytes. */
  maxHeaderBytes: number
  /** Largest block, in bytes, without its CID. */
  maxBlockBytes: number
}

/** Room for a header with dozens of roots, and for a block as large as the largest commit event. */
const carBounds: CarBounds = { maxHeaderBytes: 4096, maxBlockBytes: 2_000_000 }

export interface Car {
  roots: Cid[]
  /** Verified blocks, in the order of the archive, one page for each received chunk. Throws `Malformed`. */
  pages: AsyncGenerator<Block[]>
}

/** An archive as sections, without an object per block, for a caller that reads many blocks and keeps none. */
export interface SectionedCar {
  roots: Cid[]
  /**
   * Verified sections, each a CID and its block, one page for each received chunk. A section is a view that is valid
   * until the next one. A page must be consumed before the next one is asked for. Throws `Malformed`.
   */
  pages: AsyncGenerator<Iterable<Uint8Array>>
}

/** Read the header of an archive. Blocks are read as the caller asks for them. Throws `Malformed`. */
export async function readCar(
  source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  bounds: CarBounds = carBounds,
): Promise<Car> {
  const { roots, pages } = await readSections(source, bounds)
  return { roots, pages: blocksOf(pages) }
}

async function* blocksOf(pages: SectionedCar['pages']): AsyncGenerator<Block[]> {
  for await (const sections of pages) {
    yield Array.from(sections, (section) => ({
      cid: new Cid(section.slice(0, CID_BYTES_LENGTH)),
      bytes: section.slice(CID_BYTES_LENGTH),
    }))
  }
}

/** Like `readCar`, in sections. Throws `Malformed`. */
export async function readSections(
  source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  bounds: CarBounds = carBounds,
): Promise<SectionedCar> {
  const reader = new SectionReader(source)
  const header = await reader.next(bounds.maxHeaderBytes)
  if (header === null) throw new Malformed('CAR is empty')
  const roots = parseHeader(header)
  return { roots, pages: readPages(reader, bounds.maxBlockBytes) }
}

function parseHeader(bytes: Uint8Array): Cid[] {
  const header = decode(bytes) as { version?: unknown; roots?: unknown } | null
  if (header?.version !== HEADER_VERSION) throw new Malformed('CAR version is not 1')
  const { roots } = header
  if (!Array.isArray(roots) || !roots.every((root) => root instanceof Cid))
    throw new Malformed('CAR header has no list of roots')
  return roots
}

async function* readPages(reader: SectionReader, maxBlockBytes: number): SectionedCar['pages'] {
  const maxSectionBytes = maxBlockBytes + CID_BYTES_LENGTH
  for (let first = await reader.next(maxSectionBytes); first !== null; first = await reader.next(maxSectionBytes)) {
    yield readPage(reader, first, maxSectionBytes)
  }
}

function* readPage(reader: SectionReader, first: Uint8Array, maxSectionBytes: number): Generator<Uint8Array> {
  for (let section: Uint8Array | null = first; section !== null; section = reader.buffered(maxSectionBytes)) {
    checkSection(section)
    yield section
  }
}

function checkSection(section: Uint8Array): void {
  if (section.length < CID_BYTES_LENGTH || !hasCidPrefix(section, 0))
    throw new Malformed('CAR block has no CID of a known kind')
  if (!isBlockOf(section, section.subarray(CID_BYTES_LENGTH)))
    throw new Malformed(`CAR block does not match its CID ${cidText(section)}`)
}

const MAX_VARINT_BYTES = 4
const FIRST_BUFFER_BYTES = 2 * CHUNK_BYTES

/** Cuts a stream of chunks into sections. Each result is a view that is valid until the next call. */
class SectionReader {
  readonly #chunks: Iterator<Uint8Array> | AsyncIterator<Uint8Array>
  #buffer = new Uint8Array(FIRST_BUFFER_BYTES)
  #start = 0
  #end = 0

  constructor(source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
    this.#chunks = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  }

  /** Returns the next section, after waiting for the chunks that it needs; null at the end. */
  async next(maxBytes: number): Promise<Uint8Array | null> {
    for (;;) {
      const section = this.buffered(maxBytes)
      if (section !== null) return section
      const chunk = await this.#chunks.next()
      if (chunk.done) {
        if (this.#start === this.#end) return null
        throw new Malformed('CAR ends early')
      }
      this.#append(chunk.value)
    }
  }

  /** Returns the next section if all of it has arrived. Checks its length as soon as the length is known. */
  buffered(maxBytes: number): Uint8Array | null {
    const buffer = this.#buffer
    let at = this.#start
    let length = 0
    for (let i = 0; ; i++) {
      if (i === MAX_VARINT_BYTES) throw new Malformed('CAR section length is too large')
      if (at === this.#end) return null
      const byte = buffer[at++] as number
      length |= (byte & 0x7f) << (7 * i)
      if (byte < 0x80) {
        if (byte === 0 && i > 0) throw new Malformed('CAR section length not in its shortest form')
        break
      }
    }
    if (length === 0) throw new Malformed('CAR section is empty')
    if (length > maxBytes) throw new Malformed(`CAR section of ${length} bytes, at most ${maxBytes} allowed`)
    if (at + length > this.#end) return null
    this.#start = at + length
    return buffer.subarray(at, this.#start)
  }

  #append(chunk: Uint8Array): void {
    const held = this.#end - this.#start
    if (this.#end + chunk.length > this.#buffer.length) {
      const needed = held + chunk.length
      const target =
        needed > this.#buffer.length ? new Uint8Array(Math.max(needed, this.#buffer.length * 2)) : this.#buffer
      if (target === this.#buffer) target.copyWithin(0, this.#start, this.#end)
      else target.set(this.#buffer.subarray(this.#start, this.#end))
      this.#buffer = target
      this.#start = 0
      this.#end = held
    }
    this.#buffer.set(chunk, this.#end)
    this.#end += chunk.length
  }
}
