/**
 * The connection to the push relay. There is one, which is opened for the first request and then kept. The relay knows
 * this server by the key of its QUIC endpoint, so no message carries a credential.
 * - One request at a time: all work with the relay takes turns (`alone`), so the consequences of one answer are stored
 *   before the next request.
 * - A request is sent once more, on a new connection, if the connection was lost, but not if it timed out: the relay
 *   may still be processing it.
 * - The server enrolls only if the relay says that it has to, and then repeats the request once.
 */
import { HOUR_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { Semaphore, SemaphoreFull } from '../../../base/semaphore.ts'
import type { Secret } from '../../../base/secret.ts'
import type { PeerConnection, Peer, Peers } from '../../../platform/network/peers.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { Log } from '../../../platform/running/log.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import {
  formatRelayRequest,
  MAX_FRAME_BYTES,
  readRelayAnswer,
  RELAY_ALPN,
  type RelayAnswer,
  type RelayRequest,
} from '../../../protocol/push/relay-frames.ts'

/** The relay could not be reached: the request did not arrive, or was not accepted. */
export class RelayUnreachable extends Error {}
/** The request was sent, but may not have arrived. */
export class RelayUnanswered extends Error {}
/** The relay answered with something that is no answer in its protocol. */
export class RelayRefused extends Error {}
/** The request became pointless before it was sent. */
export class RelayTooLate extends Error {}
/** The relay must not be asked now. */
export class RelayWait extends Error {
  constructor(
    reason: string,
    readonly waitMillis: number,
  ) {
    super(reason)
  }
}

export interface RelayTiming {
  dialMillis: number
  exchangeMillis: number
  /** If nothing arrives from the relay for this long, not even an acknowledgement, the connection is dead. */
  silenceMillis: number
  /** Time limit of a turn, including connections, enrollment and retries. */
  turnMillis: number
  /** How long work may wait for its turn. The wait and the turn together are shorter than a try of a step may be. */
  waitMillis: number
  /** How long the relay is not asked after it refused to enroll this server. */
  deniedMillis: number
}

export const relayTiming: RelayTiming = {
  dialMillis: 15_000,
  exchangeMillis: 30_000,
  silenceMillis: 5000,
  turnMillis: 95_000,
  waitMillis: 15_000,
  deniedMillis: HOUR_MILLIS,
}

/**
 * Most work that waits for its turn. More would mean a fault: only two queues and the tests of operators use the relay.
 */
const MAX_WAITING = 20
/** Wait after the relay said that this server enrolls too often. */
const ENROLL_WAIT_MILLIS = MINUTE_MILLIS
const BUSY_MILLIS = 1000
/** A timer may be early by this much. */
const TIMER_SLACK_MILLIS = 10

interface CourierOptions {
  /** Null while this server has no endpoint. */
  peers: () => Peers | null
  relay: Peer
  enrollmentCode: Secret<string> | null
  clock: Clock
  log: Log
  timing: RelayTiming
}

/** Called at each step, for a person who watches. */
export type Watch = (step: 'dial' | 'enroll', detail: string) => void

interface AskOptions {
  watch?: Watch
  goodUntil?: Millis
}

type Job = Required<AskOptions>

export interface RelayState {
  isConnected: boolean
  answeredAt: Millis | null
  /** Why requests fail, and since when; null if the last one was answered, or there was none. */
  failure: { reason: string; since: Millis } | null
}

export class RelayClient {
  readonly #options: CourierOptions
  readonly #turns = new Semaphore(1, MAX_WAITING)
  #connection: PeerConnection | null = null
  #isStopped = false
  /** End of the turn, on the monotonic clock. */
  #deadline = -Infinity
  /** On the monotonic clock. */
  #deniedUntil = -Infinity
  #answeredAt: Millis | null = null
  #failure: RelayState['failure'] = null

  constructor(options: CourierOptions) {
    this.#options = options
  }

  get state(): RelayState {
    return { isConnected: this.#connection !== null, answeredAt: this.#answeredAt, failure: this.#failure }
  }

  /** Run work with the relay when it is its turn. Throws `RelayWait` if the wait is too long. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const { clock, timing } = this.#options
    const latest = clock.monotonic() + timing.waitMillis
    try {
      return await this.#turns.run(() => {
        const now = clock.monotonic()
        if (now > latest) throw new RelayWait('others were talking to the push relay', BUSY_MILLIS)
        this.#deadline = now + timing.turnMillis
        return work()
      })
    } catch (error) {
      throw error instanceof SemaphoreFull
        ? new RelayWait('too many wait to talk to the push relay', BUSY_MILLIS)
        : error
    }
  }

  /** Retry even though the relay refused to enroll this server, at an operator's request. */
  forgetDenial(): void {
    this.#deniedUntil = -Infinity
  }

  /**
   * Connect to the relay, unless there is a connection. Call it from within `inTurn`. Throws `RelayUnreachable` or
   * `RelayWait`.
   */
  async connect(watch: Watch = () => {}): Promise<void> {
    await this.#noting(() => this.#connected(watch))
  }

  /**
   * Returns the answer to a request. Call it from within `inTurn`. The request is not sent after `goodUntil`. Throws
   * `RelayUnreachable`, `RelayUnanswered`, `RelayRefused`, `RelayWait` or `RelayTooLate`.
   */
  async ask(request: RelayRequest, { watch = () => {}, goodUntil = Infinity }: AskOptions = {}): Promise<RelayAnswer> {
    const answer = await this.#noting(async () => {
      const job = { watch, goodUntil }
      const first = await this.#request(request, job)
      if (!saysNotEnrolled(first)) return first
      await this.#enroll(job)
      return this.#request(request, job)
    })
    this.#failure = null
    return answer
  }

  /** Run work with the relay, unless the relay must not be asked now, and record why it fails. */
  async #noting<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options
    const deniedMillis = this.#deniedUntil - clock.monotonic()
    if (deniedMillis > 0) throw new RelayWait('the push relay has refused to enroll this server', deniedMillis)
    try {
      return await work()
    } catch (error) {
      if (error instanceof RelayTooLate) throw error
      this.#failure = { reason: (error as Error).message, since: this.#failure?.since ?? clock.now() }
      throw error
    }
  }

  close(): void {
    this.#isStopped = true
    this.#connection?.close()
    this.#connection = null
  }

  async #enroll(job: Job): Promise<void> {
    const { enrollmentCode, clock, log, timing } = this.#options
    const request = { type: 'enroll', claimCode: enrollmentCode?.reveal() ?? null } as const
    const { type } = await this.#request(request, job).catch((error: unknown) => {
      throw error instanceof RelayUnanswered || error instanceof RelayRefused
        ? new RelayUnreachable(error.message)
        : error
    })
    job.watch('enroll', type)
    if (type === 'throttled')
      throw new RelayWait('the push relay does not accept enrollments at the moment', ENROLL_WAIT_MILLIS)
    if (type === 'denied') {
      this.#deniedUntil = clock.monotonic() + timing.deniedMillis
      const reason = enrollmentCode === null ? 'it requires a code' : 'its code is unknown, spent or expired'
      log.error('the push relay refuses to enroll this server: check notifications.enrollment_code', { reason })
      throw new RelayWait('the push relay has refused to enroll this server', timing.deniedMillis)
    }
    if (type !== 'ok') throw new RelayUnreachable(`the push relay answered an enrollment with ${type}`)
    log.info('enrolled at the push relay')
  }

  async #request(request: RelayRequest, job: Job): Promise<RelayAnswer> {
    const { clock, log } = this.#options
    const bytes = formatRelayRequest(request)
    const answer = (await this.#exchange(bytes, job)) ?? (await this.#exchange(bytes, job))
    if (answer === null) throw new RelayUnanswered('the connection to the push relay was lost twice')
    this.#answeredAt = clock.now()
    const read = readRelayAnswer(answer)
    if (read.ok) return read.answer
    log.error('invalid response from the push relay', { detail: read.shape })
    throw new RelayRefused(`the push relay responded with ${read.shape}`)
  }

  /** Returns null if the connection was lost before the answer arrived. */
  async #exchange(bytes: Uint8Array, job: Job): Promise<Uint8Array | null> {
    const { clock, log, timing } = this.#options
    const connection = await this.#connected(job.watch)
    if (clock.now() >= job.goodUntil) throw new RelayTooLate('the time for the request was over')
    const timeoutMillis = this.#within(timing.exchangeMillis)
    const overAt = clock.monotonic() + timeoutMillis
    try {
      return await connection.exchange(bytes, {
        maxBytes: MAX_FRAME_BYTES,
        timeoutMillis,
        silenceMillis: timing.silenceMillis,
      })
    } catch (error) {
      log.debug('request to the push relay failed', { error })
      connection.close()
      if (this.#connection === connection) this.#connection = null
      if (clock.monotonic() >= overAt - TIMER_SLACK_MILLIS)
        throw new RelayUnanswered('the push relay took too long to answer')
      return null
    }
  }

  async #connected(watch: Watch): Promise<PeerConnection> {
    if (this.#connection !== null) return this.#connection
    const { peers, relay, timing } = this.#options
    const endpoint = peers()
    if (endpoint === null || this.#isStopped) throw new RelayUnreachable('this server has no QUIC endpoint')
    try {
      const connection = await endpoint.dial(relay, RELAY_ALPN, this.#within(timing.dialMillis))
      this.#keep(connection)
      watch('dial', 'connected')
      return connection
    } catch (error) {
      const { message } = error as Error
      watch('dial', message)
      throw new RelayUnreachable(`the push relay cannot be reached: ${message}`, { cause: error })
    }
  }

  #keep(connection: PeerConnection): void {
    if (this.#isStopped) {
      connection.close()
      throw new Error('the server is stopping')
    }
    this.#connection = connection
  }

  /** Returns `millis`, or the rest of the turn if that is shorter. Throws `RelayUnreachable` if the turn is over. */
  #within(millis: number): number {
    const left = Math.min(millis, this.#deadline - this.#options.clock.monotonic())
    if (left <= 0) throw new RelayUnreachable('the push relay took too long')
    return left
  }
}

const saysNotEnrolled = (answer: RelayAnswer): boolean =>
  answer.type === 'notEnrolled' || (answer.type === 'pushed' && answer.outcome === 'notEnrolled')
