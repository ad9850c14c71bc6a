/** Blocks of a repository from all sources. A block is found only under its own CID. */
import { decodeFirst, decode, type DataObject } from '../../../protocol/cbor.ts'
import { readCar } from '../../../protocol/car.ts'
import { cidOfCbor, type Cid } from '../../../protocol/cid.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { BlockFile } from '../../../platform/files/block-file.ts'

/** The index of a repository in a space is one block. */
const bounds = { maxHeaderBytes: 4096, maxBlockBytes: 64 * 1024 * 1024 }

/** Where a block was found, in words. */
export type Source = 'records' | 'nodes' | 'event log' | 'archive' | 'backup'

export class BlockPool {
  readonly #files = new Map<Source, BlockFile>()

  constructor(readonly dir: string) {}

  /** Add a block. Returns its CID, which may differ from the one that it was stored under. */
  add(source: Source, bytes: Uint8Array): Cid {
    const cid = cidOfCbor(bytes)
    let file = this.#files.get(source)
    if (file === undefined) this.#files.set(source, (file = new BlockFile(this.dir)))
    file.add(Buffer.concat([cid.bytes, bytes]))
    return cid
  }

  get(cid: Cid): Uint8Array | null {
    return this.locate(cid)?.bytes ?? null
  }

  /** Returns the block from the first source that has it, in the order in which they were added. */
  locate(cid: Cid): { bytes: Uint8Array; source: Source } | null {
    for (const [source, file] of this.#files) {
      const bytes = file.get(cid)
      if (bytes !== null) return { bytes, source }
    }
    return null
  }

  /** Adds the blocks of an archive as far as it can be read. Returns its roots. */
  async addCar(source: Source, car: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Cid[]> {
    let found: Cid[] = []
    try {
      const { roots, pages } = await readCar(car, bounds)
      found = roots
      for await (const page of pages) for (const { bytes } of page) this.add(source, bytes)
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
    }
    return found
  }

  /** Adds the blocks of an event as far as it can be read. Returns its body, or null if it cannot be read. */
  async addEvent(frame: Uint8Array): Promise<DataObject | null> {
    try {
      const body = decode(decodeFirst(frame).rest) as DataObject
      if (body['blocks'] instanceof Uint8Array) await this.addCar('event log', [body['blocks']])
      return body
    } catch (error) {
      if (error instanceof Malformed) return null
      throw error
    }
  }

  close(): void {
    for (const file of this.#files.values()) file.close()
  }
}
