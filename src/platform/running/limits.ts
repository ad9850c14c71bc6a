/**
 * Rate limits: a table of rules and the counters behind them.
 *
 * A window starts with the first request that counts; a refused request is not counted, so that hammering does not
 * extend the block. Counters live in memory and are bounded. Windows are intervals: setting the clock changes none.
 */
import { DAY_SECS, HOUR_SECS, MINUTE_SECS } from '../../base/durations.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import type { Client } from '../../base/fair-queue.ts'
import type { Clock } from './clock.ts'
import type { Config } from '../configuration/config.ts'
import { SharedSlot, type SharedSlots } from '../readers/shared-windows.ts'
import type { SharedLimits, SharedWindow } from './shared-limits.ts'

type LimitConfig = Pick<Config, 'rateLimit'>

interface Rule {
  windowSecs: number
  /** 0 switches the rule off. */
  points(config: LimitConfig): number
  /**
   * For limits of all clients together: the part of the remaining points that one network may have used. The more
   * networks ask, the less each of them gets, and a network that has used nothing yet always finds some left.
   */
  ofRest?: number
  /**
   * For limits on guesses of a secret, or on mails to strangers: on a cluster, each request is added to the sum of all
   * nodes before it is let through.
   */
  isExact?: true
  /** Only one node does what the rule limits, so the other nodes need not know. */
  isLocal?: true
}

const MINUTES_5 = 5 * MINUTE_SECS
const MINUTES_10 = 10 * MINUTE_SECS

/** A provider may have used as much of the rest as this many networks. It has 256 networks, or 65,536 of IPv6. */
const PARTS_OF_PROVIDER = 10

/** Points that each write of a record takes from the account's budget (`repoWrite`), public or not. */
export const writePoints = { create: 3, update: 2, put: 2, delete: 1 } as const
/**
 * Bytes of an event, or of records in a space, that one of these points pays for, including references to blobs.
 * Without this price, small writes with well-chosen record keys would make events of two megabytes, and lists of blobs
 * fifteen megabytes of references.
 */
export const POINT_BYTES = 32 * 1024

/** Keys kept per rule; the oldest are dropped first. */
const MAX_KEYS = 100_000

/** Every limiter of the server, named after what it limits. Endpoints that share a budget share a name. */
const rules = {
  globalIp: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.globalIpPer5min }],
  createAccount: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.createAccountPer5min, isExact: true }],
  createSession: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.createSessionPer5min }],
  resetPassword: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.resetPasswordPer5min, isExact: true }],
  updateHandle: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.updateHandlePer5min }],
  // Changes of an account that are events for the whole network: of its status, of its identity, and of a document that
  // its owner publishes. Relays limit each server, and so does the PLC directory. By account.
  statusChange: [
    { windowSecs: MINUTES_5, points: () => 20 },
    { windowSecs: DAY_SECS, points: () => 200 },
  ],
  transferAccept: [
    { windowSecs: MINUTES_5, points: (config) => config.rateLimit.transferAcceptPer5min, isExact: true },
  ],
  // All addresses together: a code has 31 bits, and an attacker may have many addresses.
  transferAcceptTotal: [{ windowSecs: MINUTES_5, points: () => 1000, ofRest: 0.05, isExact: true }],
  agentClaimConfirm: [
    { windowSecs: MINUTES_5, points: (config) => config.rateLimit.agentClaimConfirmPer5min, isExact: true },
  ],
  // Registrations create rows, and need no credential.
  agentIdentity: [{ windowSecs: MINUTES_5, points: () => 60 }],
  // All addresses together, by way to register: it bounds the registrations that wait to be confirmed.
  agentIdentityTotal: [{ windowSecs: MINUTES_5, points: () => 10_000, ofRest: 0.01 }],
  // The answer tells whether an address has an account here.
  agentServiceAuth: [{ windowSecs: MINUTES_5, points: () => 30 }],
  // Wrong codes, by account: an attacker may have many addresses.
  agentUserCode: [{ windowSecs: MINUTES_5, points: () => 10, isExact: true }],
  // Each token adds an event to the record of the agent. By registration. A token lasts five minutes.
  agentToken: [
    { windowSecs: MINUTES_5, points: () => 100 },
    { windowSecs: DAY_SECS, points: () => 2000 },
  ],
  // Calls by which agents and delegates change something elsewhere, or the preferences. Each adds an event to the
  // record of what they did. By account.
  recordedCall: [
    { windowSecs: MINUTES_5, points: () => 500 },
    { windowSecs: DAY_SECS, points: () => 10_000 },
  ],
  // Each child is an account, for which no invite is needed. By parent.
  makeChild: [
    { windowSecs: HOUR_SECS, points: () => 30 },
    { windowSecs: DAY_SECS, points: () => 60 },
  ],
  // Invitations to act for an account: each may cause a mail. By account.
  inviteDelegate: [{ windowSecs: DAY_SECS, points: () => 20 }],
  recovery: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.recoveryPer5min, isExact: true }],
  // Each is stored for five minutes, with the metadata of its client. Servers of apps push for all of their users.
  pushRequest: [{ windowSecs: MINUTES_5, points: () => 500 }],
  oauthConsentCreate: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.oauthConsentCreatePer5min }],
  oauthConsentAction: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.oauthConsentActionPer5min }],
  // By account: a stranger may open pages that name an account from many addresses.
  loginApprovalPush: [{ windowSecs: MINUTES_10, points: () => 5 }],
  // The same for claims of agents.
  agentAskPush: [
    { windowSecs: HOUR_SECS, points: () => 10 },
    { windowSecs: DAY_SECS, points: () => 30 },
  ],
  // For each request, the server asks other services.
  accountReach: [{ windowSecs: MINUTES_5, points: () => 20 }],
  // By code, which cannot be guessed; each reads some rows.
  appeal: [{ windowSecs: MINUTES_5, points: () => 60 }],
  // Reports of accounts of other servers, by the address of their server. Each may open a case.
  foreignReport: [
    { windowSecs: HOUR_SECS, points: () => 100 },
    { windowSecs: DAY_SECS, points: () => 500 },
  ],
  waitlist: [{ windowSecs: MINUTES_5, points: (config) => config.rateLimit.waitlistPer5min }],
  // All addresses together: only an operator removes entries from the list.
  waitlistTotal: [{ windowSecs: DAY_SECS, points: () => 10_000, ofRest: 0.01 }],
  repoWrite: [
    { windowSecs: HOUR_SECS, points: (config) => config.rateLimit.writePointsHourly },
    { windowSecs: DAY_SECS, points: (config) => config.rateLimit.writePointsDaily },
  ],
  // Polls of apps that follow what an account has in spaces; some of them are signed. By account.
  spaceRead: [{ windowSecs: MINUTES_5, points: () => 3000 }],
  operatorGuess: [{ windowSecs: MINUTES_5, points: () => 30 }],
  getRepo: [{ windowSecs: MINUTES_5, points: () => 6000 }],
  // Each reads the whole account. By account.
  exportAccount: [
    { windowSecs: HOUR_SECS, points: () => 10 },
    { windowSecs: DAY_SECS, points: () => 30 },
  ],
  // Each may be as large as everything that the account may store. By account.
  importAccount: [
    { windowSecs: HOUR_SECS, points: () => 10 },
    { windowSecs: DAY_SECS, points: () => 30 },
  ],
  deleteAccount: [{ windowSecs: MINUTES_5, points: () => 50 }],
  requestPasswordReset: [
    { windowSecs: HOUR_SECS, points: () => 15 },
    { windowSecs: DAY_SECS, points: () => 50 },
  ],
  requestMail: [
    { windowSecs: HOUR_SECS, points: () => 5 },
    { windowSecs: DAY_SECS, points: () => 15 },
  ],
  // By unconfirmed address: an attacker can make accounts, and give each the address of a stranger.
  unconfirmedAddress: [
    { windowSecs: HOUR_SECS, points: () => 20, isExact: true },
    { windowSecs: DAY_SECS, points: () => 60, isExact: true },
  ],
  // The part of `unconfirmedAddress` for people who have proven nothing. The rest is left to the holder of the account.
  unconfirmedByAnyone: [
    { windowSecs: HOUR_SECS, points: () => 10, isExact: true },
    { windowSecs: DAY_SECS, points: () => 30, isExact: true },
  ],
  signInNotice: [{ windowSecs: DAY_SECS, points: () => 3 }],
  accountNotice: [
    { windowSecs: HOUR_SECS, points: () => 10 },
    { windowSecs: DAY_SECS, points: () => 30 },
  ],
  takenAddress: [
    { windowSecs: HOUR_SECS, points: () => 5 },
    { windowSecs: DAY_SECS, points: () => 15 },
  ],
  rotateRepoKey: [{ windowSecs: MINUTES_5, points: () => 30 }],
  // Each deposit adds a row to the log of the account.
  depositShare: [
    { windowSecs: HOUR_SECS, points: () => 60 },
    { windowSecs: DAY_SECS, points: () => 300 },
  ],
  // For each, the server asks the relay for a handle, and the relay gives it 100 of them an hour.
  registerPush: [
    { windowSecs: HOUR_SECS, points: () => 30 },
    { windowSecs: DAY_SECS, points: () => 100 },
  ],
  // Connections of peers over QUIC, by address and of all together: each handshake takes about a millisecond. On a
  // cluster, only one node has the endpoint.
  irohConnection: [{ windowSecs: 10, points: () => 60, isLocal: true }],
  irohConnectionTotal: [{ windowSecs: 10, points: () => 200, ofRest: 1, isLocal: true }],
  // Bytes that all peers together may have echoed; 8 MiB take half a second of processor time.
  irohEchoTotal: [{ windowSecs: 10, points: () => 8 * 1024 ** 2, ofRest: 1, isLocal: true }],
  // Each signs in at another server, with a password that may be a guess.
  planMove: [
    { windowSecs: MINUTES_5, points: () => 10 },
    { windowSecs: DAY_SECS, points: () => 50 },
  ],
  // What the holder of an account that moves here tells its old server. By account.
  answerMove: [{ windowSecs: MINUTES_5, points: () => 20 }],
  uploadBlob: [{ windowSecs: DAY_SECS, points: () => 1000 }],
  // Each writes all preferences, up to 150 kB, into the log and into continuous backups. By account.
  putPreferences: [
    { windowSecs: MINUTES_5, points: () => 200 },
    { windowSecs: DAY_SECS, points: () => 2000 },
  ],
  reserveSigningKey: [{ windowSecs: MINUTE_SECS, points: () => 5 }],
} satisfies Record<string, readonly Rule[]>

export type LimitName = keyof typeof rules
export const limitNames = Object.keys(rules) as LimitName[]

/** Limits that reader threads charge too. */
const sharedWithReaders: ReadonlySet<LimitName> = new Set(['globalIp', 'getRepo'])

/**
 * Points to take from one limiter, from the budget of `key`: an address, a DID, a client. One point unless `cost` says
 * more.
 */
export interface Charge {
  name: LimitName
  key: string
  cost?: number
  /** How many budgets the key has, because it stands for several clients. One if omitted. */
  times?: number
  /** The client, for rules with `ofRest`. */
  from?: Client
}

/** The state of a limiter, as the response headers report it. */
export interface LimitState {
  name: LimitName
  allowed: boolean
  limit: number
  remaining: number
  /** Time until the window ends. */
  resetMillis: number
  windowSecs: number
}

/** The windows of one rule, by key. Rotates once all windows in the older generation have expired. */
class Windows {
  readonly #windows = new BoundedCache<SharedWindow>(MAX_KEYS)
  #turnAt: number | null = null

  constructor(readonly millis: number) {}

  /** Returns the current window of the key, or a new one. */
  at(key: string, now: number): SharedWindow {
    if (this.#turnAt === null || now >= this.#turnAt) {
      this.#windows.turn()
      this.#turnAt = now + this.millis
    }
    const kept = this.#windows.get(key)
    if (kept && kept.endsAt > now) return kept
    const window = { used: 0, endsAt: now + this.millis, millis: this.millis }
    this.#windows.set(key, window)
    return window
  }

  get size(): number {
    return this.#windows.size
  }
}

/** A charge to one rule of a limiter. */
interface Entry {
  name: LimitName
  key: string
  cost: number
  rule: Rule
  limit: number
  window: SharedWindow
  /** Points that this node may take now. */
  room: number
}

/** How often a request waits for a sum, at most. */
const MAX_WAITS = 40
/** When a request may be repeated that is refused because its node has used up its share of the remaining points. */
const SHARE_MILLIS = 1000

export class Limits {
  readonly #windows = new Map<Rule, Windows>()
  /** Null unless several nodes count together. */
  readonly #shared: SharedLimits | null
  /** Windows that this thread shares with reader threads; null if there are none. */
  slots: SharedSlots | null = null

  constructor(
    readonly config: LimitConfig,
    readonly clock: Pick<Clock, 'monotonic'>,
    shared: SharedLimits | null = null,
  ) {
    this.#shared = shared
  }

  /**
   * Take points from every rule of the limiters, or from none if one of them has too few left. Returns the state of the
   * rule with the smallest share of points left, or null if no rule applies.
   */
  charge(...charges: readonly Charge[]): LimitState | null {
    const now = this.clock.monotonic()
    const windows = this.#windowsOf(charges, now)
    if (windows.length === 0) return null
    const allowed = windows.every(isAffordable)
    if (allowed) for (const entry of windows) this.#take(entry)
    return windows.map((entry) => stateOf(entry, allowed, now)).reduce(tighter)
  }

  /**
   * For charges that were refused. On a cluster, charges them again once this node has learned whether there are
   * points, unless it knew that already. Returns null if it did.
   */
  chargeOnceKnown(...charges: readonly Charge[]): Promise<LimitState | null> | null {
    return this.#shared !== null && this.#short(charges).length > 0 ? this.#onceKnown(this.#shared, charges) : null
  }

  /** As `charge`, which on a cluster refuses by what this node knows; this asks the other nodes before it refuses. */
  async chargeShared(...charges: readonly Charge[]): Promise<LimitState | null> {
    const state = this.charge(...charges)
    return (state?.allowed === false ? await this.chargeOnceKnown(...charges) : null) ?? state
  }

  async #onceKnown(shared: SharedLimits, charges: readonly Charge[]): Promise<LimitState | null> {
    for (let waits = 0; waits < MAX_WAITS; waits++) {
      const short = this.#short(charges)
      if (short.length === 0) break
      const small = short.filter(({ cost, limit, rule }) => cost <= shared.largest(limit, rule))
      if (small.length === 0) {
        const state = await this.#reserve(shared, charges, short)
        if (state !== null) return state
        continue
      }
      for (const { name, rule, key, window } of small) shared.ask(ruleName(name, rule), key, window)
      await shared.learned()
    }
    return this.charge(...charges)
  }

  /**
   * Counts charges that cost more than the share of a node in the sum itself. Returns null if one of them does not fit,
   * or another charge no longer does.
   */
  async #reserve(
    shared: SharedLimits,
    charges: readonly Charge[],
    large: readonly Entry[],
  ): Promise<LimitState | null> {
    const outcomes = await Promise.all(
      large.map(async (entry) => ({
        ...entry,
        isGranted: await shared.reserve(ruleName(entry.name, entry.rule), entry.key, entry.window, entry),
      })),
    )
    const now = this.clock.monotonic()
    const windows = this.#windowsOf(charges, now)
    const others = windows.filter(({ window }) => !large.some((entry) => entry.window === window))
    if (outcomes.every(({ isGranted }) => isGranted) && others.every(isAffordable)) {
      for (const entry of others) this.#take(entry)
      return windows.map((entry) => stateOf(entry, true, now)).reduce(tighter)
    }
    for (const { name, rule, key, window, cost, isGranted } of outcomes)
      if (isGranted) shared.giveBack(ruleName(name, rule), key, window, cost)
    return null
  }

  /** Takes the points of something that was done already, or as many as are left. Returns as `charge` does. */
  spend(charge: Charge): LimitState | null {
    const now = this.clock.monotonic()
    const windows = this.#windowsOf([charge], now)
    if (windows.length === 0) return null
    for (const entry of windows)
      this.#take({ ...entry, cost: Math.min(entry.cost, Math.max(0, entry.limit - entry.window.used)) })
    return windows.map((entry) => stateOf(entry, true, now)).reduce(tighter)
  }

  /** Returns windows with points left, but too few in the share of this node; none if one of the charges is spent. */
  #short(charges: readonly Charge[]): Entry[] {
    const windows = this.#windowsOf(charges, this.clock.monotonic())
    return windows.some(isSpent) ? [] : windows.filter((entry) => !isAffordable(entry))
  }

  /** On a cluster, learns what the other nodes have charged, for a limit to which only failures are charged. */
  async learn(name: LimitName, key: string): Promise<void> {
    if (this.#shared === null) return
    const at = this.clock.monotonic()
    for (const { rule, window } of this.#windowsOf([{ name, key }], at)) {
      this.#shared.ask(ruleName(name, rule), key, window)
      for (let waits = 0; waits < MAX_WAITS && !this.#shared.isLearned(window, at); waits++)
        await this.#shared.learned()
    }
  }

  /** As in `SharedLimits`. */
  async meet(): Promise<void> {
    await this.#shared?.meet()
  }

  async stop(): Promise<void> {
    await this.#shared?.stop()
  }

  /** Take back what was charged: the request is charged elsewhere, or the guess was right. */
  takeBack(...charges: readonly Charge[]): void {
    for (const entry of this.#windowsOf(charges, this.clock.monotonic())) this.#take({ ...entry, cost: -entry.cost })
  }

  /**
   * Returns the state of a limiter that has no points left for one of the charges, or null if it has some. Takes no
   * points.
   */
  spent(...charges: readonly Charge[]): LimitState | null {
    const state = this.charge(...charges.map((charge) => ({ ...charge, cost: 0 })))
    return state !== null && state.remaining === 0 ? { ...state, allowed: false } : null
  }

  /** Number of keys with a counter, summed over all rules. */
  get size(): number {
    return this.#windows.values().reduce((total, { size }) => total + size, 0)
  }

  #windowsOf(charges: readonly Charge[], now: number): Entry[] {
    if (!this.config.rateLimit.enabled) return []
    const entries: Entry[] = []
    for (const { name, key, cost = 1, times = 1, from } of charges)
      for (const rule of rules[name] as readonly Rule[]) {
        const limit = rule.points(this.config) * times
        if (limit === 0) continue
        const entry = this.#entry({ name, key, cost, rule, limit }, now)
        entries.push(entry)
        if (from === undefined || rule.ofRest === undefined) continue
        const left = Math.max(0, limit - entry.window.used)
        for (const [network, part] of partsOf(from, rule.ofRest))
          entries.push(
            this.#entry({ name, key: `${key} of ${network}`, cost, rule, limit: Math.ceil(left * part) }, now),
          )
      }
    return entries
  }

  #entry(charged: Pick<Entry, 'name' | 'key' | 'cost' | 'rule' | 'limit'>, now: number): Entry {
    const window = this.#window(charged, now)
    const { limit, rule } = charged
    const shared = rule.isLocal ? null : this.#shared
    return { ...charged, window, room: shared?.room(window, limit, rule) ?? limit - window.used }
  }

  #take({ name, rule, key, window, cost, limit }: Entry): void {
    if (window instanceof SharedSlot) window.take(cost)
    else window.used += cost
    if (cost !== 0 && !rule.isLocal)
      this.#shared?.took(ruleName(name, rule), key, window, { cost, limit, isExact: rule.isExact })
  }

  #window({ name, rule, key }: Pick<Entry, 'name' | 'rule' | 'key'>, now: number): SharedWindow {
    const millis = rule.windowSecs * 1000
    if (this.slots !== null && sharedWithReaders.has(name)) return this.slots.at(`${name} ${key}`, now, millis)
    let windows = this.#windows.get(rule)
    if (!windows) this.#windows.set(rule, (windows = new Windows(millis)))
    return windows.at(key, now)
  }
}

/** Returns the networks of a client, each with the part of the remaining points that it may have used. */
function partsOf({ network, provider }: Client, ofRest: number): readonly (readonly [string, number])[] {
  const own = [network, ofRest] as const
  return network === provider ? [own] : [own, [provider, Math.min(1, ofRest * PARTS_OF_PROVIDER)]]
}

const isAffordable = ({ cost, room }: Entry): boolean => cost <= room
/** Whether all nodes together have too few points left. */
const isSpent = ({ cost, limit, window }: Entry): boolean => cost > limit - window.used

const stateOf = ({ name, cost, room, rule, limit, window }: Entry, allowed: boolean, now: number): LimitState => ({
  name,
  allowed: allowed || cost <= room,
  limit,
  remaining: Math.max(0, limit - window.used),
  resetMillis: !allowed && cost > room && cost <= limit - window.used ? SHARE_MILLIS : window.endsAt - now,
  windowSecs: rule.windowSecs,
})

const ruleName = (name: LimitName, { windowSecs }: Rule) => `${name} ${windowSecs}`

export const tighter = (a: LimitState, b: LimitState): LimitState => {
  if (a.allowed !== b.allowed) return a.allowed ? b : a
  return b.remaining / b.limit < a.remaining / a.limit ? b : a
}
