/**
 * The lease of a continuous backup: which data directory may continue it. `continuous/lease` is replaced on condition
 * that it is unchanged. docs/design/second-machine.md has the whole.
 */
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import { writePrivately } from '../../../base/private-file.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Archive } from './archive.ts'
import { CONTINUOUS } from './continuous-format.ts'

const LEASE = `${CONTINUOUS}lease`
const HOLDER_FILE = 'holdfast.holder'
const RUNS_FILE = 'holdfast.runs'
/** Starts that may have taken the lease. There is more than one only after starts that could not take it. */
const MAX_RUNS = 32
/** A lease that is unchanged for this many times its length has run out, whatever the two clocks do meanwhile. */
const PATIENCE = 1.25

export interface LeaseRecord {
  /** The data directory that may continue the chain. */
  holder: string
  /**
   * Of the process that took it: another one with each start. A copy of the data directory has the same holder, but its
   * starts are others. Absent in leases of earlier versions.
   */
  run?: string
  /** For operators: the name of its machine. */
  name: string
  /** Greater with each holder. */
  epoch: number
  /** The chain that it continues, or that another machine has to; empty before there is one. */
  chain: string
  /** The chain that the holder has begun, until it has a base and counts. */
  begins?: string
  /**
   * Number of a segment that the chain has. No machine takes over with a copy that lacks it, and only segments below it
   * are deleted. Absent in leases of earlier versions.
   */
  through?: number
  /**
   * `async`: the chain may lack acknowledged writes, whatever its last segment says. Absent in leases of earlier
   * versions.
   */
  promise?: 'async' | 'sync'
  /** How long a renewal keeps it valid; 0: until another holder takes it. */
  ttlMillis: number
  /** Greater with each renewal, so that no two contents are the same. */
  beat: number
  /** When it was renewed, by the clock of the holder. */
  at: Millis
}

export interface FoundLease {
  record: LeaseRecord
  tag: string
}

/** This data directory may not continue the chain: another one does. */
export class Superseded extends OperatorError {
  constructor({ holder, name, at }: LeaseRecord, dataDir: string) {
    const renewed = `lease renewed at ${new Date(at).toISOString()}`
    super(
      holder === formerHolder(dataDir)
        ? `another copy of this data directory, on ${name}, continues this server (${renewed}): stop one of the two. If that one no longer exists, delete ${holderFile(dataDir)}, and start "holdfast serve" here`
        : `another machine, ${name}, continues this server (${renewed}): follow it with "holdfast follow"`,
    )
  }
}

export async function readLease(archive: Archive): Promise<FoundLease | null> {
  const found = await archive.tagged(LEASE)
  if (found === null) return null
  const record = recordOf(found.content)
  if (record === null) throw new Error(`${LEASE} is damaged: delete it, unless another machine serves`)
  return { record, tag: found.tag }
}

/** Returns null if there is none, or a damaged one. */
export async function wholeLease(archive: Archive): Promise<LeaseRecord | null> {
  const found = await archive.tagged(LEASE)
  return found && recordOf(found.content)
}

/** Returns null if it is damaged. */
function recordOf(content: Uint8Array): LeaseRecord | null {
  try {
    const record = JSON.parse(Buffer.from(content).toString()) as Partial<LeaseRecord> | null
    if (typeof record?.holder === 'string' && Number.isSafeInteger(record.epoch) && typeof record.chain === 'string')
      return record as LeaseRecord
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return null
}

/**
 * The name under which a data directory has held the lease; null if it never has. Earlier versions may have left an
 * empty file after a loss of power.
 */
export const formerHolder = (dataDir: string): string | null =>
  (existsSync(holderFile(dataDir)) && readFileSync(holderFile(dataDir), 'utf8')) || null

export const holderFile = (dataDir: string): string => join(dataDir, HOLDER_FILE)
const runsFile = (dataDir: string): string => join(dataDir, RUNS_FILE)

/** Whether a process with this data directory, and no copy of it, wrote this. */
export const isOwn = ({ holder, run }: LeaseRecord, dataDir: string): boolean =>
  holder === formerHolder(dataDir) && (run === undefined || formerRuns(dataDir).includes(run))

/**
 * Whether this data directory has taken the lease for the first time, and was killed before it could note under which
 * name.
 */
export const isFirstOwn = ({ run }: LeaseRecord, dataDir: string): boolean =>
  formerHolder(dataDir) === null && run !== undefined && formerRuns(dataDir).includes(run)

/** The lease at the destination, and whether this data directory holds it; null if there is none. */
export async function leaseSeenFrom(
  config: Config,
  archive: Archive,
): Promise<(LeaseRecord & { isOwn: boolean }) | null> {
  const found = await readLease(archive)
  return found && { ...found.record, isOwn: isOwn(found.record, config.dataDir) }
}

const formerRuns = (dataDir: string): string[] =>
  existsSync(runsFile(dataDir)) ? readFileSync(runsFile(dataDir), 'utf8').split('\n') : []

const noteHolder = (dataDir: string, holder: string): void =>
  writePrivately(holderFile(dataDir), holder, { replace: true })
const noteRuns = (dataDir: string, runs: readonly string[]): void =>
  writePrivately(runsFile(dataDir), runs.slice(-MAX_RUNS).join('\n'), { replace: true })

type Place = { config: Config; clock: Clock; archive: Archive }

export class Lease {
  /** Until when no other machine can have taken it, by the monotonic clock. */
  #heldUntil = Infinity

  private constructor(
    readonly place: Place,
    private found: FoundLease,
    /** What an earlier start of this data directory had written; null if another holder had it. */
    readonly former: LeaseRecord | null,
    askedAt: number,
  ) {
    this.#noteRenewal(askedAt)
  }

  get record(): LeaseRecord {
    return this.found.record
  }

  get isHeld(): boolean {
    return this.place.clock.monotonic() < this.#heldUntil
  }

  /**
   * Take the lease from `former`, or create it. Returns null if it has changed meanwhile. For a lease that expires, or
   * a takeover, throws `OperatorError` if the destination does not support conditional requests.
   *
   * `run`: the same for every try of a process. `knownEpoch`: the highest epoch of the chain, which counts if an
   * operator has deleted the lease.
   */
  static async take(
    place: Place,
    former: FoundLease | null,
    {
      run,
      chain,
      begins,
      through,
      promise,
      knownEpoch,
      isTakeover = false,
    }: Pick<LeaseRecord, 'chain' | 'begins' | 'through' | 'promise'> & {
      run: string
      knownEpoch: number
      isTakeover?: boolean
    },
  ): Promise<Lease | null> {
    const { config, clock, archive } = place
    const { dataDir } = config
    const holder = formerHolder(dataDir) ?? crypto.randomUUID()
    const isSame = former !== null && isOwn(former.record, dataDir)
    const ttlMillis = config.backup.takeoverSecs * 1000
    if (ttlMillis > 0 || isTakeover) await archive.requireConditions()
    const askedAt = clock.monotonic()
    const record: LeaseRecord = {
      holder,
      run,
      name: config.node.name ?? hostname(),
      epoch: Math.max(former?.record.epoch ?? 0, knownEpoch) + (isSame ? 0 : 1),
      chain,
      ...(begins !== undefined && { begins }),
      through: through ?? 0,
      ...(promise && { promise }),
      ttlMillis,
      beat: (former?.record.beat ?? 0) + 1,
      at: clock.now(),
    }
    // First, because the lease may be taken although there is no answer. The start that it names stays: others that
    // could not take it may have been many.
    const last = isSame && former.record.run !== undefined ? [former.record.run, run] : [run]
    noteRuns(dataDir, [...formerRuns(dataDir).filter((each) => !last.includes(each)), ...last])
    const tag = await archive.swap(LEASE, encode(record), former?.tag ?? null)
    if (tag === null) return null
    noteRuns(dataDir, [run])
    if (!isSame) noteHolder(dataDir, holder)
    return new Lease(place, { record, tag }, isSame ? former.record : null, askedAt)
  }

  /** Renew it. Returns false if another machine has taken it. */
  async renew(changed: Partial<Pick<LeaseRecord, 'chain' | 'begins' | 'through' | 'promise'>> = {}): Promise<boolean> {
    const { clock, archive } = this.place
    const askedAt = clock.monotonic()
    const record = { ...this.record, ...changed, beat: this.record.beat + 1, at: clock.now() }
    const tag =
      (await archive.swap(LEASE, encode(record), this.found.tag)) ?? (await this.#replaceDamaged(encode(record)))
    if (tag === null) return this.#lookAgain()
    this.found = { record, tag }
    this.#noteRenewal(askedAt)
    return true
  }

  /** Leave it to the process that has it with a copy of this data directory, as if it had not been taken. */
  async giveBack(former: LeaseRecord): Promise<void> {
    await this.place.archive.swap(LEASE, encode({ ...former, beat: this.record.beat + 1 }), this.found.tag)
  }

  /** Look whether another machine has taken it. Returns what that one wrote, or null. */
  async otherHolder(): Promise<LeaseRecord | null> {
    const record = await wholeLease(this.place.archive)
    return record !== null && this.#isOthers(record) ? record : null
  }

  #isOthers({ holder, epoch, run = this.record.run }: LeaseRecord): boolean {
    return holder !== this.record.holder || epoch !== this.record.epoch || run !== this.record.run
  }

  /**
   * Replace a lease that was deleted or damaged. Returns null if there is a valid one, which may be another machine's.
   */
  async #replaceDamaged(content: Uint8Array): Promise<string | null> {
    const { archive } = this.place
    const found = await archive.tagged(LEASE)
    if (found !== null && recordOf(found.content) !== null) return null
    // However often it is read in part, it may be another machine's.
    if (found !== null && this.#mayBeginOthers(found.content))
      throw new Error(`${LEASE} is damaged, or was read in part: delete it, unless another machine serves`)
    const again = await archive.tagged(LEASE)
    if (again?.tag !== found?.tag || (again !== null && !Buffer.from(again.content).equals(found!.content)))
      throw new Error(`${LEASE} was read only in part`)
    return archive.swap(LEASE, content, found?.tag ?? null)
  }

  /** Whether these bytes may be the first ones of a lease that another process has written. */
  #mayBeginOthers(bytes: Uint8Array): boolean {
    const { holder, run } = this.record
    const text = Buffer.from(bytes).toString()
    const own = JSON.stringify({ holder, run }).slice(0, -1)
    return text.startsWith(START) ? !text.startsWith(own) : START.startsWith(text)
  }

  /** The lease may have changed because an earlier renewal of ours succeeded and its response was lost. */
  async #lookAgain(): Promise<boolean> {
    const found = await readLease(this.place.archive)
    if (found !== null && this.#isOthers(found.record)) return false
    if (found !== null) this.found = found
    throw new Error('the lease was renewed too late')
  }

  /** The lease counts from the start of the request that renewed it, however long the request took. */
  #noteRenewal(askedAt: number): void {
    const { ttlMillis } = this.record
    this.#heldUntil = ttlMillis === 0 ? Infinity : askedAt + ttlMillis
  }
}

/** Watches whether the lease of another machine runs out. */
export class LeaseWatch {
  #tag: string | null = null
  #seenAt = 0

  constructor(readonly clock: Pick<Clock, 'monotonic'>) {}

  /** `askedAt`: when the read of `found` began, by the monotonic clock. Returns whether it has run out. */
  note(found: FoundLease, askedAt: number): boolean {
    if (this.#tag !== found.tag) {
      this.#tag = found.tag
      this.#seenAt = this.clock.monotonic()
      return false
    }
    // Count only a read that began after the whole time: a watcher that was frozen itself must not take that for the
    // silence of the holder.
    const { ttlMillis } = found.record
    return ttlMillis > 0 && askedAt - this.#seenAt >= ttlMillis * PATIENCE
  }
}

/** How every lease begins. */
const START = '{"holder":"'
/** `holder` and `run` come first: they tell whose it is if the rest is missing. */
const encode = ({ holder, run, ...rest }: LeaseRecord): Uint8Array =>
  Buffer.from(JSON.stringify({ holder, run, ...rest }))
