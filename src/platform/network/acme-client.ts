/**
 * A client of a certificate authority (RFC 8555). Each answer is bounded in bytes and time. It keeps only nonces, the
 * directory and the URL of the account, all of which the authority can send again.
 */
import type { KeyObject } from 'node:crypto'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { HOUR_MILLIS } from '../../base/durations.ts'
import { parsedJson } from '../../base/parsed-json.ts'
import { printable } from '../../base/printable.ts'
import { base64url } from '../../protocol/base64url.ts'
import {
  acmeAuthorization,
  acmeDirectory,
  acmeOrder,
  acmeProblem,
  acmeRenewalInfo,
  signedRequest,
  type AcmeAuthorization,
  type AcmeDirectory,
  type AcmeOrder,
  type AcmeProblem,
} from '../../protocol/acme.ts'
import { OutboundError, type Outbound } from './outbound.ts'
import { LookupsFull } from './resolver.ts'

const MAX_ANSWER_BYTES = 256 * 1024
const TIMEOUT_MILLIS = 20_000
const MAX_NONCES = 8
const MAX_NONCE_CHARS = 256
/** How often a request is sent if the authority refuses its nonces. */
const MAX_NONCE_TRIES = 4
const MAX_DETAIL_CHARS = 300
/** Longest wait that an authority can impose. */
const MAX_WAIT_MILLIS = 24 * HOUR_MILLIS

/**
 * `unavailable`: no answer, or none that can be used. `limited`: too many requests or certificates. `refused`: the
 * authority understood the request and refuses it.
 */
export type AcmeFaultKind = 'unavailable' | 'limited' | 'refused'

export class AcmeFault extends Error {
  constructor(
    readonly kind: AcmeFaultKind,
    message: string,
    /** The type of the problem without its prefix, such as `badNonce`; empty if there is none. */
    readonly type = '',
    /** As the authority asks; null if it does not. */
    readonly waitMillis: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** An answer, with how long to wait before asking again; null if the authority does not say. */
export type Waiting<T> = T & { waitMillis: number | null }

export interface PlacedOrder extends AcmeOrder {
  url: string
}

export interface AcmeOptions {
  outbound: Outbound
  directoryUrl: string
  /** As in `OutboundRequest`. */
  certificateAuthorities?: string
  /** On the curve P-256. */
  key: KeyObject
  email: string | null
  now(): number
}

interface Answered {
  json: unknown
  text: string
  headers: Headers
}

/** All methods throw `AcmeFault`, and the reason of `signal`. */
export class AcmeClient {
  readonly #options: AcmeOptions
  readonly #nonces: string[] = []
  #directory: AcmeDirectory | null = null
  #account: string | null = null

  constructor(options: AcmeOptions) {
    this.#options = options
  }

  /** `replaces`: the certificate that this one renews, by its name for renewal information. */
  async placeOrder(
    names: readonly string[],
    replaces: string | null,
    signal: AbortSignal,
  ): Promise<Waiting<PlacedOrder>> {
    const { newOrder, renewalInfo } = await this.#knownDirectory(signal)
    const identifiers = names.map((value) => ({ type: 'dns', value }))
    const payload = { identifiers, ...(replaces !== null && renewalInfo !== undefined && { replaces }) }
    const answer = await this.#post(newOrder, payload, signal)
    return { ...this.#order(answer), url: locationOf(answer) }
  }

  async order(url: string, signal: AbortSignal): Promise<Waiting<PlacedOrder>> {
    return { ...this.#order(await this.#post(url, null, signal)), url }
  }

  async authorization(url: string, signal: AbortSignal): Promise<AcmeAuthorization> {
    return checked(acmeAuthorization, await this.#post(url, null, signal))
  }

  /** Say that a challenge can be validated. */
  async accept(challengeUrl: string, signal: AbortSignal): Promise<void> {
    await this.#post(challengeUrl, {}, signal)
  }

  /** `request` is in DER. */
  async finalize(
    { finalize, url }: PlacedOrder,
    request: Uint8Array,
    signal: AbortSignal,
  ): Promise<Waiting<PlacedOrder>> {
    return { ...this.#order(await this.#post(finalize, { csr: base64url(request) }, signal)), url }
  }

  /** Returns the certificate and its chain in PEM. */
  async certificate(url: string, signal: AbortSignal): Promise<string> {
    return (await this.#post(url, null, signal)).text
  }

  /**
   * Returns when to renew a certificate, in milliseconds since the epoch; null if the authority does not advise.
   * `waitMillis`: how long to wait before asking again.
   */
  async renewalWindow(name: string, signal: AbortSignal): Promise<Waiting<{ start: number; end: number }> | null> {
    const { renewalInfo } = await this.#knownDirectory(signal)
    if (renewalInfo === undefined) return null
    const answer = await this.#send(`${renewalInfo}/${name}`, { signal })
    const { suggestedWindow } = checked(acmeRenewalInfo, answer)
    const [start, end] = [Date.parse(suggestedWindow.start), Date.parse(suggestedWindow.end)]
    if (Number.isNaN(start) || Number.isNaN(end) || end < start)
      throw new AcmeFault('unavailable', 'the renewal information has no valid window')
    return { start, end, waitMillis: this.#waitMillis(answer.headers) }
  }

  #order(answer: Answered): Waiting<AcmeOrder> {
    return { ...checked(acmeOrder, answer), waitMillis: this.#waitMillis(answer.headers) }
  }

  async #knownDirectory(signal: AbortSignal): Promise<AcmeDirectory> {
    return (this.#directory ??= checked(acmeDirectory, await this.#send(this.#options.directoryUrl, { signal })))
  }

  /** Returns the URL of the account of the key. An authority that knows the account returns it. RFC 8555, 7.3.1. */
  async #knownAccount(signal: AbortSignal): Promise<string> {
    if (this.#account !== null) return this.#account
    const { email } = this.#options
    const payload = { termsOfServiceAgreed: true, ...(email !== null && { contact: [`mailto:${email}`] }) }
    const { newAccount } = await this.#knownDirectory(signal)
    return (this.#account = locationOf(await this.#signed(newAccount, payload, null, signal)))
  }

  async #post(url: string, payload: object | null, signal: AbortSignal): Promise<Answered> {
    try {
      return await this.#signed(url, payload, await this.#knownAccount(signal), signal)
    } catch (error) {
      // The authority may have lost the account: the next request makes another one.
      if (error instanceof AcmeFault && error.type === 'accountDoesNotExist') this.#account = null
      throw error
    }
  }

  async #signed(url: string, payload: object | null, account: string | null, signal: AbortSignal): Promise<Answered> {
    for (let tries = 1; ; tries++) {
      const nonce = await this.#nonce(signal)
      const body = signedRequest({ key: this.#options.key, account, nonce, url, payload })
      try {
        return await this.#send(url, { body, signal })
      } catch (error) {
        if (!(error instanceof AcmeFault) || error.type !== 'badNonce' || tries === MAX_NONCE_TRIES) throw error
      }
    }
  }

  async #nonce(signal: AbortSignal): Promise<string> {
    const kept = this.#nonces.pop()
    if (kept !== undefined) return kept
    const { newNonce } = await this.#knownDirectory(signal)
    await this.#send(newNonce, { method: 'HEAD', signal })
    const fresh = this.#nonces.pop()
    if (fresh === undefined) throw new AcmeFault('unavailable', 'the certificate authority sent no nonce')
    return fresh
  }

  async #send(
    url: string,
    { body, method, signal }: { body?: string; method?: string; signal: AbortSignal },
  ): Promise<Answered> {
    const { outbound, certificateAuthorities } = this.#options
    try {
      const response = await outbound.fetch(url, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        ...(body !== undefined && { body, headers: { 'content-type': 'application/jose+json' } }),
        certificateAuthorities,
        headersTimeoutMillis: TIMEOUT_MILLIS,
        bodyTimeoutMillis: TIMEOUT_MILLIS,
        maxBytes: MAX_ANSWER_BYTES,
        signal,
      })
      const { headers, status } = response
      const nonce = headers.get('replay-nonce') ?? ''
      if (/^[\w-]+$/.test(nonce) && nonce.length <= MAX_NONCE_CHARS && this.#nonces.length < MAX_NONCES)
        this.#nonces.push(nonce)
      const text = await response.text()
      const json = parsedJson(text) ?? null
      if (response.ok) return { json, text, headers }
      throw this.#faultOf(status, json, headers)
    } catch (error) {
      // The authority may have moved, and something else may have answered in its place.
      if (!(error instanceof AcmeFault) || error.type === '') this.#directory = this.#account = null
      if (!(error instanceof OutboundError || error instanceof LookupsFull)) throw error
      // The URL may be one that the authority has sent.
      const where = URL.parse(url)?.host ?? 'an address of the certificate authority'
      throw new AcmeFault('unavailable', `${where}: ${error.message}`, '', null, { cause: error })
    }
  }

  #faultOf(status: number, json: unknown, headers: Headers): AcmeFault {
    const problem = Value.Check(acmeProblem, json) ? json : {}
    const type = (problem.type ?? '').replace('urn:ietf:params:acme:error:', '')
    const waitMillis = this.#waitMillis(headers)
    if (type === 'rateLimited' || status === 429 || (status === 503 && waitMillis !== null))
      return new AcmeFault('limited', wordsOf(problem), type, waitMillis)
    // A nonce that is refused again and again says nothing about the order.
    const kind = status >= 500 || type === 'badNonce' ? 'unavailable' : 'refused'
    return new AcmeFault(kind, type === '' ? `it returned ${status}` : wordsOf(problem), type, waitMillis)
  }

  /** RFC 9110, 10.2.3: seconds, or a date. */
  #waitMillis(headers: Headers): number | null {
    const text = headers.get('retry-after')
    if (text === null) return null
    const millis = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - this.#options.now()
    return Number.isNaN(millis) ? null : Math.min(Math.max(0, millis), MAX_WAIT_MILLIS)
  }
}

/** Returns a problem in words for the operator: they are the authority's, on one line. */
export const wordsOf = ({ type = '', detail = '' }: AcmeProblem): string =>
  printable(detail === '' ? type : detail).slice(0, MAX_DETAIL_CHARS) || 'it gave no reason'

function checked<Schema extends TSchema>(schema: Schema, { json }: Answered): Static<Schema> {
  if (Value.Check(schema, json)) return json
  const [first] = Value.Errors(schema, json)
  throw new AcmeFault('unavailable', `a response of the certificate authority is malformed at "${first?.path ?? ''}"`)
}

function locationOf({ headers }: Answered): string {
  const location = headers.get('location') ?? ''
  if (location.startsWith('https://') && URL.canParse(location)) return location
  throw new AcmeFault('unavailable', 'a response of the certificate authority has no Location')
}
