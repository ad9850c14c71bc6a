/**
 * The lease of a continuous backup: which data directory may continue it. `continuous/lease` is replaced only on
 * condition that it is unchanged. docs/design/second-machine.md describes the whole.
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
/** Most starts to remember that may have taken the lease. More than one only after starts that could not take it. */
const MAX_RUNS = 32
/** A lease that is unchanged for this many times its duration has expired, whatever the two clocks do meanwhile. */
const PATIENCE = 1.25

export interface LeaseRecord {
  /** The data directory that may continue the chain. */
  holder: string
  /**
   * Identifies the process that took the lease; every start is another one. A copy of the data directory has the same
   * holder but other starts. Absent in leases of earlier versions.
   */
  run?: string
  /** Name of the holder's machine, for operators. */
  name: string
  /** Rises with each new holder. */
  epoch: number
  /** The chain that the holder continues, or its successor has to; empty before there is one. */
  chain: string
  /** A chain that the holder has begun, and that does not count until it has a base. */
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
  /** How long a renewal keeps the lease valid; 0: until another holder takes it. */
  ttlMillis: number
  /** Rises with each renewal, so that no two contents are the same. */
  beat: number
  /** When the lease was renewed, by the clock of the holder. */
  at: Millis
}

export interface FoundLease {
  record: LeaseRecord
  tag: string
}

/** This data directory may not continue the chain, because another one does. */
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

/** Returns null if there is no lease, or a damaged one. */
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
 * Returns the name under which this data directory has held the lease; null if it never has. Earlier versions may have
 * left an empty file after a loss of power.
 */
export const formerHolder = (dataDir: string): string | null =>
  (existsSync(holderFile(dataDir)) && readFileSync(holderFile(dataDir), 'utf8')) || null

export const holderFile = (dataDir: string): string => join(dataDir, HOLDER_FILE)
const runsFile = (dataDir: string): string => join(dataDir, RUNS_FILE)

/** Whether a process with this data directory, not with a copy of it, wrote this record. */
export const isOwn = ({ holder, run }: LeaseRecord, dataDir: string): boolean =>
  holder === formerHolder(dataDir) && (run === undefined || formerRuns(dataDir).includes(run))

/**
 * Whether this data directory has taken the lease for the first time, and its process was killed before it could note
 * the name of the holder.
 */
export const isFirstOwn = ({ run }: LeaseRecord, dataDir: string): boolean =>
  formerHolder(dataDir) === null && run !== undefined && formerRuns(dataDir).includes(run)

/** Returns the lease at the destination, and whether this data directory holds it; null if there is none. */
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
  /** Until when no other machine can have taken the lease, by the monotonic clock. */
  #heldUntil = Infinity

  private constructor(
    readonly place: Place,
    private found: FoundLease,
    /** What an earlier start of this data directory had written; null if another holder had the lease. */
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
   * Take the lease from `former`, or create it. Returns null if it has changed meanwhile. If the lease expires, or is
   * taken over, throws `OperatorError` if the destination does not support conditional requests.
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
    // Note the run first, because the lease may be taken although no answer arrives. Keep the run that the lease names,
    // however many starts since then could not take it.
    const last = isSame && former.record.run !== undefined ? [former.record.run, run] : [run]
    noteRuns(dataDir, [...formerRuns(dataDir).filter((each) => !last.includes(each)), ...last])
    const tag = await archive.swap(LEASE, encode(record), former?.tag ?? null)
    if (tag === null) return null
    noteRuns(dataDir, [run])
    if (!isSame) noteHolder(dataDir, holder)
    return new Lease(place, { record, tag }, isSame ? former.record : null, askedAt)
  }

  /** Renew the lease. Returns false if another machine has taken it. */
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

  /** Give the lease back to the process with a copy of this data directory, as if it had not been taken. */
  async giveBack(former: LeaseRecord): Promise<void> {
    await this.place.archive.swap(LEASE, encode({ ...former, beat: this.record.beat + 1 }), this.found.tag)
  }

  /** Returns the record of another machine that has taken the lease, or null. */
  async otherHolder(): Promise<LeaseRecord | null> {
    const record = await wholeLease(this.place.archive)
    return record !== null && this.#isOthers(record) ? record : null
  }

  #isOthers({ holder, epoch, run = this.record.run }: LeaseRecord): boolean {
    return holder !== this.record.holder || epoch !== this.record.epoch || run !== this.record.run
  }

  /**
   * Replace a lease that was deleted or damaged. Returns null if there is a valid lease, which may be another
   * machine's.
   */
  async #replaceDamaged(content: Uint8Array): Promise<string | null> {
    const { archive } = this.place
    const found = await archive.tagged(LEASE)
    if (found !== null && recordOf(found.content) !== null) return null
    // The rest may show another machine's lease, however often these bytes are read in part.
    if (found !== null && this.#mayBeginOthers(found.content))
      throw new Error(`${LEASE} is damaged, or was read in part: delete it, unless another machine serves`)
    const again = await archive.tagged(LEASE)
    if (again?.tag !== found?.tag || (again !== null && !Buffer.from(again.content).equals(found!.content)))
      throw new Error(`${LEASE} was read only in part`)
    return archive.swap(LEASE, content, found?.tag ?? null)
  }

  /** Whether these bytes may be the beginning of a lease that another process has written. */
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

/** Watches whether another machine's lease expires. */
export class LeaseWatch {
  #tag: string | null = null
  #seenAt = 0

  constructor(readonly clock: Pick<Clock, 'monotonic'>) {}

  /** `askedAt`: when the read of `found` began, by the monotonic clock. Returns whether the lease has expired. */
  note(found: FoundLease, askedAt: number): boolean {
    if (this.#tag !== found.tag) {
      this.#tag = found.tag
      this.#seenAt = this.clock.monotonic()
      return false
    }
    // Count only a read that began after the whole time had passed: a watcher that was frozen must not mistake its own
    // pause for the holder's silence.
    const { ttlMillis } = found.record
    return ttlMillis > 0 && askedAt - this.#seenAt >= ttlMillis * PATIENCE
  }
}

/** The beginning of every lease. */
const START = '{"holder":"'
/** `holder` and `run` come first: they show whose lease it is even if the rest is missing. */
const encode = ({ holder, run, ...rest }: LeaseRecord): Uint8Array =>
  Buffer.from(JSON.stringify({ holder, run, ...rest }))
