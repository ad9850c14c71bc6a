/**
 * Tells crawlers that there are new events (`com.atproto.sync.requestCrawl`).
 *
 * A crawler is asked at once, and then at most once per window. Events inside a window are announced when it ends,
 * which covers the last event of a burst too. No caller waits for these requests, and they are not stored, because
 * crawlers are asked after a restart anyway. Only a crawler that cannot be reached gets a durable step.
 */
import { HOUR_SECS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Log } from '../../../platform/running/log.ts'
import type { Outbound } from '../../../platform/network/outbound.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { isIpAddress, isPublicAddress } from '../../../protocol/ip-address.ts'

export interface CrawlTiming {
  /** Minimum time between two requests to one crawler. */
  windowMillis: number
  /** Waits before the second attempt, the third, … */
  retryDelaysMillis: readonly number[]
  timeoutMillis: number
}

const timing: CrawlTiming = { windowMillis: 30_000, retryDelaysMillis: [500, 1000], timeoutMillis: 10_000 }

/** `rejected`: the crawler refused. `exhausted`: it could not be reached. */
export type CrawlOutcome = 'ok' | 'rejected' | 'exhausted'

export interface CrawlersOptions {
  urls: readonly string[]
  /** The host at which crawlers reach this server. */
  hostname: string
  outbound: Outbound
  log: Log
  now: () => Millis
  timing: CrawlTiming
  onOutcome: (outcome: CrawlOutcome) => void
  /** Called if the crawler must be asked again later, whether or not there are new events. */
  onExhausted: (url: string) => void
}

/** The last request to a crawler, and its answer. */
export interface CrawlRequest extends CrawlAttempt {
  at: Millis
}

interface CrawlAttempt {
  outcome: CrawlOutcome
  detail: string
}

/** What one crawler said when it was asked. */
export interface CrawlAnswer {
  host: string
  accepted: boolean
  detail: string
}

export class Crawlers {
  readonly #crawlers: readonly Crawler[]
  #isStarted = false

  constructor(options: CrawlersOptions) {
    this.#crawlers = options.urls.map((url) => new Crawler(url, options))
  }

  /**
   * Call once the server accepts connections and is the one that announces events. Nothing is announced before, because
   * commands also add events, without a server that a crawler could read.
   */
  start(): void {
    this.#isStarted = true
    this.announce()
  }

  /** Announce nothing until the next `start`, because another server does. */
  rest(): void {
    this.#isStarted = false
    for (const crawler of this.#crawlers) crawler.rest()
  }

  /** Announce new events. Returns at once. */
  announce(): void {
    if (this.#isStarted) for (const crawler of this.#crawlers) crawler.announce()
  }

  /** Ask every crawler once, now, whatever the state of its window. */
  ask(): Promise<CrawlAnswer[]> {
    return Promise.all(this.#crawlers.map((crawler) => crawler.ask()))
  }

  /**
   * Ask one crawler, or join the request of its window. Throws if it cannot be reached. Does nothing if it is no longer
   * configured.
   */
  async retry(url: string): Promise<void> {
    await this.#crawlers.find((crawler) => crawler.url === url)?.retry()
  }

  /** The last request to each crawler since the start, by its URL. */
  get requests(): ReadonlyMap<string, CrawlRequest> {
    return new Map(
      this.#crawlers.flatMap(({ url, last }): [string, CrawlRequest][] => (last === null ? [] : [[url, last]])),
    )
  }

  stop(): void {
    for (const crawler of this.#crawlers) crawler.stop()
  }
}

class Crawler {
  readonly #options: CrawlersOptions
  readonly #stopped = new AbortController()
  #window: Timer | null = null
  #isDirty = false
  last: CrawlRequest | null = null
  /** The series of attempts that opened the window. */
  #series: Promise<CrawlAttempt> = Promise.resolve({ outcome: 'ok', detail: '' })

  constructor(
    readonly url: string,
    options: CrawlersOptions,
  ) {
    this.#options = options
  }

  announce(): void {
    if (this.#stopped.signal.aborted) return
    if (this.#window !== null) {
      this.#isDirty = true
      return
    }
    this.#begin()
  }

  rest(): void {
    this.#isDirty = false
  }

  async retry(): Promise<void> {
    if (this.#window === null) this.#begin()
    const { outcome, detail } = await this.#series
    if (outcome === 'exhausted') throw new Error(detail)
  }

  #begin(): void {
    this.#isDirty = false
    this.#window = setTimeout(() => this.#windowEnds(), this.#options.timing.windowMillis)
    this.#window.unref()
    this.#series = this.#request()
  }

  stop(): void {
    this.#stopped.abort()
    if (this.#window !== null) clearTimeout(this.#window)
  }

  #windowEnds(): void {
    this.#window = null
    if (this.#isDirty) this.announce()
  }

  async ask(): Promise<CrawlAnswer> {
    const { host } = new URL(this.url)
    const attempt = await this.#attempt()
    this.#options.onOutcome(attempt.outcome)
    return { host, accepted: attempt.outcome === 'ok', detail: attempt.detail }
  }

  async #request(): Promise<CrawlAttempt> {
    const { timing, log, onOutcome, onExhausted } = this.#options
    let last: CrawlAttempt = { outcome: 'exhausted', detail: 'the server is shutting down' }
    for (const delayMillis of [0, ...timing.retryDelaysMillis]) {
      if (delayMillis > 0) await Bun.sleep(delayMillis)
      if (this.#stopped.signal.aborted) return last
      last = await this.#attempt()
      log.debug('crawl requested', { url: this.url, ...last })
      if (last.outcome === 'exhausted') continue
      onOutcome(last.outcome)
      return last
    }
    log.warn('crawler unreachable', { url: this.url })
    onOutcome('exhausted')
    if (!this.#stopped.signal.aborted) onExhausted(this.url)
    return last
  }

  async #attempt(): Promise<CrawlAttempt> {
    const attempt = await this.#send()
    this.last = { ...attempt, at: this.#options.now() }
    return attempt
  }

  async #send(): Promise<CrawlAttempt> {
    const { hostname, outbound, timing } = this.#options
    try {
      const response = await outbound.fetch(`${this.url.replace(/\/$/, '')}/xrpc/com.atproto.sync.requestCrawl`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ hostname }),
        headersTimeoutMillis: timing.timeoutMillis,
        signal: this.#stopped.signal,
      })
      await response.body?.cancel()
      const outcome = response.status < 400 ? 'ok' : response.status < 500 ? 'rejected' : 'exhausted'
      return { outcome, detail: `HTTP ${response.status}` }
    } catch (error) {
      return { outcome: 'exhausted', detail: (error as Error).message }
    }
  }
}

const localName = /^(?:localhost|.+\.(?:localhost|test|local|internal))$/

/** Whether the name or address is local to this machine or network, where no crawler could reach it. */
function isLocalHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIpAddress(address) ? !isPublicAddress(address) : localName.test(hostname)
}

/** Returns the crawlers that could reach this server: none if its name is local. */
export const crawlersFor = ({ publicUrl, crawlers }: Pick<Config, 'publicUrl' | 'crawlers'>): readonly string[] =>
  isLocalHost(new URL(publicUrl).hostname) ? [] : crawlers.urls

/** Retries the request to a crawler that could not be reached. */
export const crawlStep: StepKind<{ url: string }> = {
  name: 'crawl',
  concurrency: 4,
  maxSteps: 100,
  // No limit: the events will still be there to read.
  maxTries: null,
  firstWaitSecs: 60,
  maxWaitSecs: HOUR_SECS,
  keepsEarlier: true,
  take: (ctx, { payload: { url } }) => crawlersOf(ctx).retry(url),
}

async function retryLater({ db, steps, log }: Context, url: string): Promise<void> {
  try {
    await db.transaction((tx) =>
      steps.add(tx, crawlStep, { key: url, payload: { url }, waitSecs: crawlStep.firstWaitSecs }),
    )
  } catch (error) {
    log.error('could not store the retry of a crawl request', { url, error })
  }
}

export const crawlersOf = perContext((ctx: Context) => {
  const { clock, config, upstream, log, metrics } = ctx
  const { host } = new URL(config.publicUrl)
  return new Crawlers({
    urls: crawlersFor(config),
    hostname: host,
    outbound: upstream,
    log,
    now: () => clock.now(),
    timing,
    onOutcome: (outcome) => metrics.count('relay_crawl_requests_total', { outcome }),
    onExhausted: (url) => void retryLater(ctx, url),
  })
})
