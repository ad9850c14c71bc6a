/**
 * Pages of a database in one piece of memory: their count, their numbers (the first page is 1), and their bytes. A list
 * can use the memory of another list that is no longer needed.
 */

export const PAGE_BYTES = 4096
const WORD_BYTES = 4
const FIRST_ROOM = 16

export class PageList {
  #places = new Map<number, number>()
  #memory: Uint8Array<ArrayBuffer>
  /** How many pages there is room for. */
  #room: number

  /** `memory`: of a list that is not needed any more. */
  constructor(memory: Uint8Array<ArrayBuffer> = new Uint8Array()) {
    this.#memory = memory
    this.#room = Math.max(0, Math.floor((memory.byteLength - WORD_BYTES) / (WORD_BYTES + PAGE_BYTES)))
  }

  get size(): number {
    return this.#places.size
  }

  /** Add a page, or replace the one of this number. */
  set(number: number, page: Uint8Array): void {
    let place = this.#places.get(number)
    if (place === undefined) {
      place = this.size
      if (place >= this.#room) this.#grow()
      this.#places.set(number, place)
    }
    this.#memory.set(page, this.#start + place * PAGE_BYTES)
  }

  /** The whole list. What is set afterwards may change it. */
  get bytes(): Uint8Array<ArrayBuffer> {
    if (this.#room === 0) this.#grow()
    const first = this.#start - WORD_BYTES * (1 + this.size)
    const bytes = this.#memory.subarray(first, this.#start + this.size * PAGE_BYTES)
    const words = new DataView(bytes.buffer, bytes.byteOffset)
    words.setUint32(0, this.size)
    let at = WORD_BYTES
    for (const number of this.#places.keys()) {
      words.setUint32(at, number)
      at += WORD_BYTES
    }
    return bytes
  }

  /** Where the pages begin: there is room for all numbers before them. */
  get #start(): number {
    return WORD_BYTES * (1 + this.#room)
  }

  #grow(): void {
    const pages = this.#memory.subarray(this.#start, this.#start + this.size * PAGE_BYTES)
    this.#room = Math.max(FIRST_ROOM, Math.floor(1.5 * this.#room))
    // Clearing new memory would take as long as copying pages into it.
    this.#memory = new Uint8Array(Buffer.allocUnsafeSlow(this.#start + this.#room * PAGE_BYTES).buffer)
    this.#memory.set(pages, this.#start)
  }
}

export function* pagesIn(list: Uint8Array): Generator<{ number: number; page: Uint8Array }> {
  const words = new DataView(list.buffer, list.byteOffset, list.byteLength)
  const count = words.getUint32(0)
  const start = WORD_BYTES * (1 + count)
  for (let index = 0; index < count; index++)
    yield {
      number: words.getUint32(WORD_BYTES * (1 + index)),
      page: list.subarray(start + index * PAGE_BYTES, start + (index + 1) * PAGE_BYTES),
    }
}
