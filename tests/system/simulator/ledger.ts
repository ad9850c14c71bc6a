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

/** That a client set something. */
export interface Setting {
  value: string
  told: Told
  begunAt: number
  endedAt: number
  era: number
}

/** Something of an account that is set as a whole: whether it is active, or its handle. */
export class Register {
  readonly #settings: Setting[]

  constructor(
    readonly ledger: Ledger,
    initial: string,
  ) {
    const told = 'acknowledged'
    this.#settings = [{ value: initial, told, begunAt: -Infinity, endedAt: -Infinity, era: 0 }]
  }

  begin(value: string, begunAt: number): Setting {
    const setting: Setting = { value, told: 'pending', begunAt, endedAt: Infinity, era: this.ledger.era }
    this.#settings.push(setting)
    return setting
  }

  end(setting: Setting, answer: Told, now: number): void {
    setting.told = answer === 'acknowledged' && setting.era !== this.ledger.era ? 'unknown' : answer
    if (setting.told !== 'unknown') setting.endedAt = now
  }

  forgetPromises(since: number): void {
    for (const setting of this.#settings)
      if (setting.endedAt > since && setting.told === 'acknowledged') {
        setting.told = 'unknown'
        setting.endedAt = Infinity
      }
  }

  /** Whether it can have had the value at some instant between two. */
  mayBe(value: string, from: number, to: number): boolean {
    const isLater = (one: Setting, than: Setting) =>
      one.told === 'acknowledged' && one.endedAt < from && one.begunAt > than.endedAt
    return this.#settings.some(
      (setting) =>
        setting.value === value &&
        setting.told !== 'refused' &&
        setting.begunAt <= to &&
        !this.#settings.some((other) => isLater(other, setting)),
    )
  }
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

  readonly #registers = new Map<string, Register>()

  /** Whether the account is active. */
  activity(did: string): Register {
    return this.#registerOf(`${did} activity`, 'active')
  }

  /** The key with which the account signs, as a did:key. */
  keyOf(did: string, initial: string): Register {
    return this.#registerOf(`${did} key`, initial)
  }

  /** Whether the session of an app password is live. */
  sessionOf(name: string): Register {
    return this.#registerOf(`${name} session`, 'live')
  }

  handleOf({ name, did }: { name: string; did: string }): Register {
    return this.#registerOf(`${did} handle`, `${name}.test`)
  }

  #registerOf(name: string, initial: string): Register {
    const known = this.#registers.get(name)
    if (known !== undefined) return known
    const made = new Register(this, initial)
    this.#registers.set(name, made)
    return made
  }

  /** What was promised after an instant is lost, or not. So is what is asked already, and promised later. */
  forgetPromises(since: number): void {
    this.era++
    for (const register of this.#registers.values()) register.forgetPromises(since)
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
