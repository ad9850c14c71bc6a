/** Sessions that are opened with app passwords, which any client may use, extend or end, at any node. */
import type { Holder } from './clients.ts'
import type { Ledger, Register } from './ledger.ts'

/** Sessions that are used: the newest ones, whether or not they have ended. */
const USED = 4

export interface Session {
  holder: Holder
  /** Of its app password. */
  name: string
  accessJwt: string
  refreshJwt: string
  /** Whether it is `live` or `ended`. */
  state: Register
  /** How many failovers there were before it was opened. */
  era: number
  /** A refresh token is exchanged by one client at a time. */
  isExtended: boolean
}

export class Sessions {
  readonly #all: Session[] = []
  #names = 0

  constructor(readonly ledger: Ledger) {}

  newName(): string {
    return `app-${++this.#names}`
  }

  get used(): readonly Session[] {
    return this.#all.slice(-USED)
  }

  opened(opened: Pick<Session, 'holder' | 'name' | 'accessJwt' | 'refreshJwt' | 'era'>): void {
    this.#all.push({ ...opened, state: this.ledger.sessionOf(opened.name), isExtended: false })
  }

  /** Whether it can have been so at some instant between two. One may be lost in a failover. */
  mayBe({ state, era }: Session, what: 'live' | 'ended', from: number, to: number): boolean {
    return (what === 'ended' && era !== this.ledger.era) || state.mayBe(what, from, to)
  }
}
