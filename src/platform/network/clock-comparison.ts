/**
 * Compares the wall clock with those of other services, by the `Date` of responses that arrive anyway. With a wrong
 * clock, apps cannot sign in, other services refuse our tokens, certificates look invalid, and none of them says why.
 * Only services that the operator configured count: a stranger's could say anything.
 */
import { DAY_SECS, HOUR_MILLIS, HOUR_SECS, MINUTE_MILLIS } from '../../base/durations.ts'
import type { Clock } from '../running/clock.ts'
import type { Log } from '../running/log.ts'

/** Proofs of apps may be off by 180 seconds, and relays accept commits from 300 seconds ahead. */
export const WRONG_CLOCK_SECS = 120
/** A host is compared at most this often, and its difference told at most this often. */
const COMPARE_MILLIS = MINUTE_MILLIS
const REPEAT_MILLIS = HOUR_MILLIS
/** The hosts are those of the configuration. Beyond this number, all are forgotten. */
const MAX_HOSTS = 100

/** Error codes of a connection whose certificate is not valid at this moment, and what that means. */
const untimelyCertificates: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: 'its certificate is not valid yet, or the clock of this machine is wrong',
  CERT_HAS_EXPIRED: 'its certificate has expired, or the clock of this machine is wrong',
}

/** Returns what an error says of the time if it is about the validity of a certificate, else null. */
export const certificateWords = (error: unknown): string | null =>
  untimelyCertificates[String((error as { code?: unknown } | null)?.code)] ?? null

interface Compared {
  at: number
  toldAt: number
}

export class ClockComparison {
  readonly #hosts = new Map<string, Compared>()

  constructor(readonly parts: { clock: Clock; log: Log }) {}

  /** A service has answered. */
  answered(host: string, headers: Headers): void {
    const { clock, log } = this.parts
    const now = clock.monotonic()
    const last = this.#hosts.get(host)
    if (last !== undefined && now - last.at < COMPARE_MILLIS) return
    const secs = secsAhead(headers, clock.now())
    const isWrong = secs !== null && Math.abs(secs) > WRONG_CLOCK_SECS
    if (this.#mayTell(host, now, isWrong) && secs !== null)
      log.warn('the clock of this machine differs from the clock of another service', {
        detail: differenceWords(secs, host),
      })
  }

  /** A connection to a service has failed. */
  failed(host: string, error: unknown): void {
    const words = certificateWords(error)
    if (words === null || !this.#mayTell(host, this.parts.clock.monotonic(), true)) return
    this.parts.log.warn('a certificate is not valid according to the clock of this machine', {
      detail: `${host}: ${words}`,
    })
  }

  #mayTell(host: string, now: number, wants: boolean): boolean {
    const toldAt = this.#hosts.get(host)?.toldAt ?? -Infinity
    const tells = wants && now - toldAt >= REPEAT_MILLIS
    if (this.#hosts.size >= MAX_HOSTS) this.#hosts.clear()
    this.#hosts.set(host, { at: now, toldAt: tells ? now : toldAt })
    return tells
  }
}

/**
 * Returns by how many seconds a clock is ahead of that of a response, or null if the response does not tell the time.
 */
export function secsAhead(headers: Headers, now: number): number | null {
  const date = Date.parse(headers.get('date') ?? '')
  // A cache sends the time at which it got the response, and its age. Source: RFC 9111, section 5.1.
  const ageSecs = Number(headers.get('age') ?? 0)
  return Number.isNaN(date) || !(ageSecs >= 0) ? null : Math.round((now - date) / 1000 - ageSecs)
}

const units: readonly [secs: number, name: string][] = [
  [DAY_SECS, 'days'],
  [HOUR_SECS, 'hours'],
  [60, 'minutes'],
]

/**
 * Returns a difference in words, such as `3 days behind plc.directory`, in the largest unit of which there are at least
 * two.
 */
export function differenceWords(secs: number, host: string): string {
  const [unit, name] = units.find(([length]) => Math.abs(secs) >= 2 * length) ?? [1, 's']
  return `${Math.round(Math.abs(secs) / unit)} ${name} ${secs < 0 ? 'behind' : 'ahead of'} ${host}`
}
