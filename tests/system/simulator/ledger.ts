/**
 * What clients asked for and were told. Each write of a record has a text of its own, so whatever is read later says
 * which write it comes from.
 */

export type Told = 'pending' | 'acknowledged' | 'refused' | 'unknown'

export interface Write {
  did: string
  /** Null until the server has named it. */
  path: string | null
  /** What the record says; null if the write deletes it. */
  text: string | null
  /** What the server has said the record is. */
  cid: string | null
  told: Told
  begunAt: number
  /** When the client was told. */
  endedAt: number
  by: string
  /** How many failovers there were before it was asked. */
  era: number
}

export class Ledger {
  readonly byText = new Map<string, Write>()
  readonly #byPath = new Map<string, Write[]>()
  #texts = 0
  /** How many failovers there were. What was asked before one, and is acknowledged after it, may be lost. */
  era = 0

  constructor(readonly seed: number) {}

  newText(): string {
    return `write ${++this.#texts}`
  }

  begin(write: Pick<Write, 'did' | 'path' | 'text' | 'begunAt' | 'by'>): Write {
    const begun: Write = { ...write, cid: null, told: 'pending', endedAt: Infinity, era: this.era }
    if (write.text !== null) this.byText.set(write.text, begun)
    if (write.path !== null) this.writesOf(write.did, write.path).push(begun)
    return begun
  }

  end(write: Write, answer: Told, now: number, named?: { path: string; cid: string }): void {
    const told = answer === 'acknowledged' && write.era !== this.era ? 'unknown' : answer
    write.told = told
    if (told !== 'unknown') write.endedAt = now
    if (named === undefined) return
    if (write.path === null) this.writesOf(write.did, named.path).push(write)
    write.path = named.path
    write.cid = named.cid
  }

  /** What was promised after an instant is lost, or not. So is what is asked already, and promised later. */
  forgetPromises(since: number): void {
    this.era++
    for (const writes of this.#byPath.values())
      for (const write of writes)
        if (write.endedAt > since && write.told === 'acknowledged') {
          write.told = 'unknown'
          write.endedAt = Infinity
        }
  }

  writesOf(did: string, path: string): Write[] {
    const key = `${did}/${path}`
    const known = this.#byPath.get(key)
    if (known !== undefined) return known
    const made: Write[] = []
    this.#byPath.set(key, made)
    return made
  }

  get paths(): { did: string; path: string }[] {
    return [...this.#byPath.keys()].map((key) => {
      const at = key.indexOf('/')
      return { did: key.slice(0, at), path: key.slice(at + 1) }
    })
  }

  /**
   * Why a read cannot have found this text, or nothing if that is null, between two instants; null if it can. A write
   * takes effect at one instant between its beginning and its end, or perhaps at any later one if its client was never
   * told.
   */
  faultOf(did: string, path: string, text: string | null, from: number, to: number): string | null {
    const writes = this.writesOf(did, path)
    const isLater = (one: Write, than: Write | null) =>
      one.told === 'acknowledged' && one.endedAt < from && (than === null || one.begunAt > than.endedAt)
    const possible = writes.filter((write) => write.text === text && write.begunAt <= to)
    const fits = (write: Write | null) => {
      if (write?.told === 'refused') return false
      return !writes.some((other) => other !== write && isLater(other, write))
    }
    if (text === null && fits(null)) return null
    if (possible.some(fits)) return null
    const what = text === null ? 'nothing is there' : `"${text}" is there`
    const [refused] = possible.filter(({ told }) => told === 'refused')
    if (refused !== undefined) return `${what} at ${path}, but ${refused.by} was told that this was not done`
    const newest = writes.findLast((write) => isLater(write, null))
    return `${what} at ${path}, but ${newest?.by ?? 'somebody'} was told of ${newest?.text === null ? 'a deletion' : `"${newest?.text}"`} after that`
  }
}
